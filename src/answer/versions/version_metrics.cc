#include "answer/versions/version_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace foliot {
namespace {

using prometheus::MetricType;

prometheus::MetricFamily family(const char* name, const char* help, MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

void add(prometheus::MetricFamily& family, const std::pair<std::string, uint64_t>& version, double value,
         const std::string& label = {}, const std::string& label_value = {}) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label = {{"model", version.first}, {"version", std::to_string(version.second)}};
  if (!label.empty()) metric.label.push_back({label, label_value});
  (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
}

}  // namespace

std::string VersionMetrics::text() const {
  watch_.forget_gone();
  auto copies = family("foliot_shadow_calls_total", "Copies of calls for a shadow, by their end", MetricType::Counter);
  auto seconds = family("foliot_shadow_seconds_total", "Latencies of these copies together", MetricType::Counter);
  for (const auto& [version, shadow] : watch_.shadows()) {
    add(copies, version, static_cast<double>(shadow.agree), "result", "agree");
    add(copies, version, static_cast<double>(shadow.disagree), "result", "disagree");
    add(copies, version, static_cast<double>(shadow.failed), "result", "failed");
    add(copies, version, static_cast<double>(shadow.skipped), "result", "skipped");
    add(seconds, version, shadow.latency.to_seconds());
  }
  auto evidence = family("foliot_canary_evidence", "That a canary is worse; from 80 on it is taken out of the split",
                         MetricType::Gauge);
  for (const SplitWatch::Evidence& each : watch_.evidence()) {
    for (size_t i = 0; i < each.tests.size(); ++i) {
      add(evidence, {each.name, each.version}, each.tests[i], "test", std::string(CanaryTrial::kNames[i]));
    }
  }
  auto rollbacks = family("foliot_canary_rollbacks_total", "Canaries taken out of the split", MetricType::Counter);
  for (const auto& [version, count] : watch_.rollbacks()) add(rollbacks, version, static_cast<double>(count));
  std::vector<prometheus::MetricFamily> shown;
  for (prometheus::MetricFamily* each : {&copies, &seconds, &evidence, &rollbacks}) {
    if (!each->metric.empty()) shown.push_back(std::move(*each));
  }
  return prometheus::TextSerializer().Serialize(shown);
}

}  // namespace foliot
