#include "answer/selection/selection_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace foliot {
namespace {

using ApplicationValue = double (*)(const ApplicationStatistics&);
using ApplicationModelValue = double (*)(const ApplicationStatistics::Model&);

void add_value(prometheus::MetricFamily& family, const std::string& application, const std::string* model,
               double value) {
  prometheus::ClientMetric metric;
  metric.label.push_back({"application", application});
  if (model != nullptr) metric.label.push_back({"model", *model});
  (family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  family.metric.push_back(std::move(metric));
}

prometheus::MetricFamily application_family(const char* name, const char* help, prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

}  // namespace

std::string SelectionMetrics::text() const {
  using prometheus::MetricType;
  using Model = ApplicationStatistics::Model;
  const SelectedInference::Statistics all = inference_.application_statistics();
  std::vector<prometheus::MetricFamily> families;
  if (all.empty()) return "";
  const auto of_each = [&](const char* name, const char* help, MetricType type, ApplicationValue value) {
    auto& family = families.emplace_back(application_family(name, help, type));
    for (const auto& [application, statistics] : all) add_value(family, application->name, nullptr, value(statistics));
  };
  const auto of_each_model = [&](const char* name, const char* help, MetricType type, ApplicationModelValue value) {
    auto& family = families.emplace_back(application_family(name, help, type));
    for (const auto& [application, statistics] : all) {
      for (size_t i = 0; i < statistics.models.size(); ++i) {
        add_value(family, application->name, &application->models[i], value(statistics.models[i]));
      }
    }
  };
  using Of = ApplicationStatistics;
  of_each("foliot_application_answers_total", "Answers of applications", MetricType::Counter,
          [](const Of& of) { return static_cast<double>(of.answers); });
  of_each("foliot_application_refusals_total", "Calls of applications that no model answered and that got no default",
          MetricType::Counter, [](const Of& of) { return static_cast<double>(of.refusals); });
  of_each("foliot_application_defaults_total", "Answers with the default output, of some rows at least",
          MetricType::Counter, [](const Of& of) { return static_cast<double>(of.defaults); });
  of_each("foliot_application_partial_total", "Answers without those of some models that were asked",
          MetricType::Counter, [](const Of& of) { return static_cast<double>(of.partial); });
  of_each("foliot_application_expired_total", "Calls that were due before all models that they asked had ended",
          MetricType::Counter, [](const Of& of) { return static_cast<double>(of.expired); });
  of_each("foliot_application_feedback_total", "Answers that had feedback", MetricType::Counter,
          [](const Of& of) { return static_cast<double>(of.feedbacks); });
  of_each("foliot_application_unshared_total",
          "Feedback that other front ends will not know, since too much waited for Redis", MetricType::Counter,
          [](const Of& of) { return static_cast<double>(of.unshared); });
  const auto of_own = [&](const char* name, const char* help, MetricType type, ApplicationValue value) {
    auto family = application_family(name, help, type);
    for (const auto& [application, statistics] : all) {
      if (application->own != nullptr) add_value(family, application->name, nullptr, value(statistics));
    }
    if (!family.metric.empty()) families.push_back(std::move(family));
  };
  of_own("foliot_application_policy_in_force", "1 while a policy in Python selects, 0 while its fallback does",
         MetricType::Gauge, [](const Of& of) { return of.own_in_force ? 1.0 : 0.0; });
  of_own("foliot_application_policy_failures_total", "Failures of a policy in Python, which was started again",
         MetricType::Counter, [](const Of& of) { return static_cast<double>(of.own_failures); });
  of_own("foliot_application_policy_unlearned_total", "Feedback that only the fallback of a policy in Python learned",
         MetricType::Counter, [](const Of& of) { return static_cast<double>(of.own_unlearned); });
  of_each("foliot_application_contexts", "Contexts with a state of their own", MetricType::Gauge,
          [](const Of& of) { return static_cast<double>(of.contexts); });
  of_each_model("foliot_application_selections_total", "Calls for which the model was asked", MetricType::Counter,
                [](const Model& model) { return static_cast<double>(model.selections); });
  of_each_model("foliot_application_missing_total", "Calls for which it was asked and gave no answer in time",
                MetricType::Counter, [](const Model& model) { return static_cast<double>(model.missing); });
  of_each_model("foliot_application_losses_total", "Losses of the model that feedback brought", MetricType::Counter,
                [](const Model& model) { return static_cast<double>(model.feedbacks); });
  of_each_model("foliot_application_loss_total", "Their sum", MetricType::Counter,
                [](const Model& model) { return model.losses; });
  of_each_model("foliot_application_weight", "Probability or weight of the model, outside of contexts",
                MetricType::Gauge, [](const Model& model) { return model.weight; });
  auto& inputs = families.emplace_back(application_family(
      "foliot_application_inputs_bytes", "Inputs that models may still read when a call is due", MetricType::Gauge));
  inputs.metric.emplace_back().gauge.value = static_cast<double>(inference_.inputs_bytes());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace foliot
