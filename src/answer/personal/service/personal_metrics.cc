#include "answer/personal/service/personal_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>
#include <vector>

namespace foliot {
namespace {

using PersonalStatisticsOf = PersonalModels::Statistics;

prometheus::ClientMetric& add_metric(prometheus::MetricFamily& family, const PersonalStatisticsOf& of) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label.push_back({"model", of.model});
  return metric;
}

prometheus::MetricFamily refused_calls(const std::vector<PersonalStatisticsOf>& all) {
  prometheus::MetricFamily family{.name = "foliot_personal_refused_total",
                                  .help = "Calls refused, by reason",
                                  .type = prometheus::MetricType::Counter,
                                  .metric = {}};
  for (const PersonalStatisticsOf& of : all) {
    for (size_t i = 1; i < of.counters->refused.size(); ++i) {
      const uint64_t count = of.counters->refused[i];
      if (count == 0) continue;
      prometheus::ClientMetric& metric = add_metric(family, of);
      metric.label.push_back({"reason", std::string(to_string(static_cast<Refusal>(i)))});
      metric.counter.value = static_cast<double>(count);
    }
  }
  return family;
}

// Where the features of items came from, of models that have them computed.
prometheus::MetricFamily feature_sources(const std::vector<PersonalStatisticsOf>& all) {
  prometheus::MetricFamily family{.name = "foliot_personal_features_total",
                                  .help = "Items of calls, by where their features came from",
                                  .type = prometheus::MetricType::Counter,
                                  .metric = {}};
  for (const PersonalStatisticsOf& of : all) {
    if (of.features == nullptr) continue;
    const FeatureSource::Counters& counters = of.features->counters();
    for (const auto& [from, count] : {std::pair("known", &counters.known), std::pair("cache", &counters.cached),
                                      std::pair("model", &counters.computed)}) {
      prometheus::ClientMetric& metric = add_metric(family, of);
      metric.label.push_back({"from", from});
      metric.counter.value = static_cast<double>(count->load());
    }
  }
  return family;
}

prometheus::MetricFamily read_durations(const std::vector<PersonalStatisticsOf>& all) {
  prometheus::MetricFamily family{.name = "foliot_personal_topk_seconds",
                                  .help = "Time that a call of topK took of a thread",
                                  .type = prometheus::MetricType::Histogram,
                                  .metric = {}};
  for (const PersonalStatisticsOf& of : all) {
    prometheus::ClientMetric::Histogram& histogram = add_metric(family, of).histogram;
    const auto& durations = of.counters->read_durations;
    for (size_t i = 0; i < durations.size(); ++i) {
      const bool is_last = i + 1 == durations.size();
      histogram.sample_count += durations[i];
      histogram.bucket.push_back({.cumulative_count = histogram.sample_count,
                                  .upper_bound = is_last ? std::numeric_limits<double>::infinity()
                                                         : PersonalCounters::kReadMicroseconds[i] / 1e6});
    }
    histogram.sample_sum = static_cast<double>(of.counters->read_nanoseconds) * 1e-9;
  }
  return family;
}

}  // namespace

std::string PersonalMetrics::text() const {
  using prometheus::MetricType;
  const std::vector<PersonalStatisticsOf> all = models_.statistics();
  if (all.empty()) return "";
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const char* name, const char* help, MetricType type, auto value) {
    prometheus::MetricFamily family{.name = name, .help = help, .type = type, .metric = {}};
    for (const PersonalStatisticsOf& of : all) {
      prometheus::ClientMetric& metric = add_metric(family, of);
      (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = static_cast<double>(value(of));
    }
    families.push_back(std::move(family));
  };
  using Of = const PersonalStatisticsOf&;
  add("foliot_personal_predictions_total", "Calls of predict that were answered", MetricType::Counter,
      [](Of of) { return of.counters->predictions.load(); });
  add("foliot_personal_topk_total", "Calls of topK that were answered", MetricType::Counter,
      [](Of of) { return of.counters->top_ks.load(); });
  add("foliot_personal_observations_total", "Observations that were acknowledged", MetricType::Counter,
      [](Of of) { return of.counters->observations.load(); });
  add("foliot_personal_forgotten_total", "Users that were forgotten", MetricType::Counter,
      [](Of of) { return of.counters->forgotten.load(); });
  add("foliot_personal_errors_total", "Calls that were wrong or over a limit", MetricType::Counter,
      [](Of of) { return of.counters->errors.load(); });
  add("foliot_personal_outside_total", "Observations with values beyond the range that counts", MetricType::Counter,
      [](Of of) { return of.learned.outside; });
  add("foliot_personal_users_outside", "Users that have values beyond the range that was learned", MetricType::Gauge,
      [](Of of) { return of.learned.users_outside; });
  add("foliot_personal_waiting_changes", "Changes that wait for the disk", MetricType::Gauge,
      [](Of of) { return of.counters->waiting.load(); });
  add("foliot_personal_users", "Users with observations", MetricType::Gauge, [](Of of) { return of.learned.users; });
  add("foliot_personal_users_in_memory", "Users in memory", MetricType::Gauge,
      [](Of of) { return of.memory ? of.memory->in_memory : of.learned.users; });
  add("foliot_personal_users_in_store", "Users that are in RocksDB alone", MetricType::Gauge,
      [](Of of) { return of.memory ? of.memory->in_store : 0; });
  add("foliot_personal_user_misses_total", "Users that were looked for in RocksDB", MetricType::Counter,
      [](Of of) { return of.memory ? of.memory->misses : 0; });
  add("foliot_personal_snapshots_total", "Snapshots written", MetricType::Counter, [](Of of) { return of.snapshots; });
  add("foliot_personal_loss", "Squared error of the last observations, before they were learned", MetricType::Gauge,
      [](Of of) { return of.learned.overall.recent(); });
  add("foliot_personal_pool_loss", "The same of the validation pool", MetricType::Gauge,
      [](Of of) { return of.learned.pool.recent(); });
  add("foliot_personal_retrain", "1: the version is to be retrained", MetricType::Gauge,
      [](Of of) { return of.learned.retrain.empty() ? 0 : 1; });
  add("foliot_personal_finds_drift", "0: too few observations yet to find that items have drifted", MetricType::Gauge,
      [](Of of) { return of.learned.finds_drift ? 1 : 0; });
  families.push_back(feature_sources(all));
  families.push_back(refused_calls(all));
  families.push_back(read_durations(all));
  prometheus::MetricFamily waiting{.name = "foliot_personal_waiting_reads",
                                   .help = "Calls of predict and topK that wait for a thread, of all models",
                                   .type = MetricType::Gauge,
                                   .metric = {}};
  waiting.metric.emplace_back().gauge.value = static_cast<double>(models_.waiting_reads());
  families.push_back(std::move(waiting));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace foliot
