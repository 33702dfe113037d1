// OverlapSample: a group of segments, and how long it took.
#ifndef FOLIOT_PLANNING_PROFILING_OVERLAP_SAMPLE_H_
#define FOLIOT_PLANNING_PROFILING_OVERLAP_SAMPLE_H_

#include <vector>

#include "control/controller/overlap_predictor.h"
#include "foundation/base/time.h"

namespace foliot {

struct OverlapSample {
  std::vector<OverlapPredictor::Part> parts;  // of different models
  Duration together;
  float spread = 0;  // standard deviation of repeats, as a share of `together`
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PROFILING_OVERLAP_SAMPLE_H_
