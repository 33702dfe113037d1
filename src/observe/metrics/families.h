// Builders for the Prometheus families of this server, and the boundaries of their
// histograms.
#ifndef FOLIOT_OBSERVE_METRICS_FAMILIES_H_
#define FOLIOT_OBSERVE_METRICS_FAMILIES_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "foundation/core/action.h"

namespace foliot {

inline auto& counter_family(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
inline auto& gauge_family(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
inline auto& histogram_family(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// A name of several words as a label's value: "too_late".
inline std::string label_value(std::string_view name) {
  std::string value(name);
  std::ranges::replace(value, ' ', '_');
  return value;
}

// 10^first to 10^last seconds, `steps` buckets in each factor of ten.
inline prometheus::Histogram::BucketBoundaries duration_boundaries(int first, int last, int steps) {
  prometheus::Histogram::BucketBoundaries boundaries;
  for (int i = first * steps; i <= last * steps; ++i) boundaries.push_back(std::pow(10.0, double(i) / steps));
  return boundaries;
}

// Both sides of zero, 1 us to 1 s, three in each factor of ten.
inline prometheus::Histogram::BucketBoundaries error_boundaries() {
  prometheus::Histogram::BucketBoundaries boundaries;
  for (int i = 18; i >= 0; --i) boundaries.push_back(-std::pow(10.0, -6.0 + i / 3.0));
  boundaries.push_back(0);
  for (int i = 0; i <= 18; ++i) boundaries.push_back(std::pow(10.0, -6.0 + i / 3.0));
  return boundaries;
}

inline prometheus::Histogram::BucketBoundaries batch_boundaries() {
  return {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, kBatchSizeMax};
}

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_FAMILIES_H_
