#include "answer/cache/cache_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace foliot {
namespace {

prometheus::MetricFamily family(const char* name, const char* help, uint64_t value, prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  prometheus::ClientMetric metric;
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = static_cast<double>(value);
  family.metric.push_back(std::move(metric));
  return family;
}

}  // namespace

std::string CacheMetrics::text() const {
  using prometheus::MetricType;
  const CacheStatistics statistics = cache_.cache_statistics();
  return prometheus::TextSerializer().Serialize(
      {family("foliot_prediction_cache_bytes", "Memory of the predictions that are kept", statistics.bytes,
              MetricType::Gauge),
       family("foliot_prediction_cache_predictions", "Predictions that are kept", statistics.predictions,
              MetricType::Gauge),
       family("foliot_prediction_cache_evictions_total", "Predictions that went for others", statistics.evictions,
              MetricType::Counter)});
}

}  // namespace foliot
