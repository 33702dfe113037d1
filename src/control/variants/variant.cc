#include "control/variants/variant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace foliot {

MicroDollarsPerSecond per_second_of_hourly(double dollars) {
  if (dollars <= 0) return 0;
  return std::max<int64_t>(1, std::llround(dollars * 1e6 / 3600));
}

Duration Variant::latency_of(uint32_t rows) const {
  for (const BatchLatency& measured : latencies) {
    if (measured.batch >= rows) return measured.latency;
  }
  return latencies.back().latency;
}

int64_t Variant::query_picodollars() const { return std::llround(static_cast<double>(price) * 1e6 / saturation); }

Status check_variant(const Variant& variant) {
  const auto wrong = [&](const std::string& what) {
    return Status::invalid_argument(fmt::format("variant '{}': {}", variant.name, what));
  };
  if (variant.name.empty()) return Status::invalid_argument("a variant needs a name");
  if (!(variant.accuracy >= 0 && variant.accuracy <= 1)) {
    return wrong(fmt::format("accuracy is {}, and must be within [0, 1]", variant.accuracy));
  }
  if (variant.latencies.empty()) return wrong("no latency was measured; measure at least that of batch size 1");
  uint32_t last = 0;
  for (const BatchLatency& measured : variant.latencies) {
    if (measured.batch <= last) return wrong("batch sizes must ascend, from at least 1");
    if (measured.latency <= Duration()) {
      return wrong(fmt::format("the latency of batch size {} must be above 0", measured.batch));
    }
    last = measured.batch;
  }
  if (variant.load < Duration()) return wrong("the duration of LOAD must not be negative");
  if (!(variant.saturation > 0) || !std::isfinite(variant.saturation)) {
    return wrong(fmt::format("saturation is {} queries per second, and must be above 0", variant.saturation));
  }
  if (variant.price < 0) return wrong(fmt::format("price is {}, and must not be negative", variant.price));
  return Status();
}

double saturation_within(const std::vector<BatchLatency>& latencies, Duration slo) {
  double best = 0;
  for (const BatchLatency& measured : latencies) {
    if (best > 0 && measured.latency > slo / 2) break;
    best = std::max(best, measured.batch / measured.latency.to_seconds());
  }
  return best;
}

}  // namespace foliot
