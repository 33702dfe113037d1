// BatchLimit: the most rows of the next batch of one model on one device, learned from
// the durations of the last ones (Clipper, section 3.3).
#ifndef FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_BATCH_LIMIT_H_
#define FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_BATCH_LIMIT_H_

#include <cstdint>
#include <span>

#include "control/policies/adaptive_batching/latency_line.h"
#include "foundation/base/time.h"

namespace foliot::adaptive_batching {

enum class Method : uint8_t {
  kAimd,                // one more until the objective is exceeded, then a tenth less
  kQuantileRegression,  // what a line through the 99th percentile allows
};

class BatchLimit {
 public:
  explicit BatchLimit(Method method) : method_(method) {}

  // Position in `batch_sizes` of the largest compiled size within the limit.
  uint32_t batch_index(std::span<const uint32_t> batch_sizes) const;
  double rows() const { return rows_; }

  // A batch of this compiled size took so long.
  void record(uint32_t batch_size, Duration measured, Duration objective, std::span<const uint32_t> batch_sizes);

 private:
  Method method_;
  double rows_ = 1;
  LatencyLine line_;
};

}  // namespace foliot::adaptive_batching

#endif  // FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_BATCH_LIMIT_H_
