// SamplingPlan: which operator groups of pairs of models are measured, in which order, and when
// there are enough (Abacus, section 5.4). The groups follow from the models and a seed alone, so
// profiling goes on where it was by the number of samples.
#ifndef FOLIOT_PLANNING_PROFILING_SAMPLING_PLAN_H_
#define FOLIOT_PLANNING_PROFILING_SAMPLING_PLAN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "control/controller/overlap_predictor.h"

namespace foliot {

class SamplingPlan {
 public:
  struct Model {
    uint32_t operators = 1;
    uint32_t buckets = 1;
  };
  // REQUIRES: at least two models.
  SamplingPlan(std::vector<Model> models, uint64_t seed);

  // By positions, the first before the second.
  const std::vector<std::pair<uint32_t, uint32_t>>& pairs() const { return pairs_; }
  // The group of this number: pairs take turns, and so do the buckets of each.
  std::vector<OverlapPredictor::Part> group(uint64_t number) const;

 private:
  std::vector<Model> models_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
  uint64_t seed_;
};

// Whether more samples make a predictor better: the error on what was held out fell by a tenth of
// itself in one of the last two rounds.
class FallingError {
 public:
  // Of the next round.
  bool still_falls(double error);

 private:
  double best_ = 0;  // 0: none yet
  uint32_t rounds_without_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PROFILING_SAMPLING_PLAN_H_
