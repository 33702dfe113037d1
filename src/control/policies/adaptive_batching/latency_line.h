// LatencyLine: quantile regression of EXEC time over batch size (Clipper, section
// 3.3): the line below which about 99 % of the last measurements lie.
#ifndef FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_LATENCY_LINE_H_
#define FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_LATENCY_LINE_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "foundation/base/time.h"

namespace foliot::adaptive_batching {

class LatencyLine {
 public:
  void add(uint32_t batch_size, Duration measured);
  // The largest batch expected to take no longer than this; 1 before anything was
  // measured.
  double batch_within(Duration objective) const;

 private:
  static constexpr size_t kWindow = 20;
  struct Sample {
    double batch_size;
    double seconds;
  };
  struct Line {
    double intercept;
    double slope;
  };
  // The asymmetric (pinball) loss of the 0.99 quantile, which the regression minimises.
  double loss(const Line& line) const;

  std::deque<Sample> samples_;
  Line line_{0, 0};
};

}  // namespace foliot::adaptive_batching

#endif  // FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_LATENCY_LINE_H_
