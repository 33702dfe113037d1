// OverlapPredictor: how long a group of EXEC segments takes that begin at once beside each
// other: what they take alone, one after another, times a correction that an Mlp has learned
// (Abacus, section 5).
//
// Features of each model that it knows: whether it is in the group, where its segment begins
// and ends as shares of its operators, how long its whole EXEC takes (which stands for batch
// size and sequence length), and the segment's share of the sum. The correction is what the
// group takes as a share of that sum; it is at least what the longest segment takes alone.
//
// Groups with a model that it does not know, or with one twice, are expected to gain nothing.
//
// Threading: predict() from any thread; no allocation.
#ifndef FOLIOT_CONTROLLER_OVERLAP_PREDICTOR_H_
#define FOLIOT_CONTROLLER_OVERLAP_PREDICTOR_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "controller/duration_model.h"
#include "controller/mlp.h"

namespace foliot {

class OverlapPredictor {
 public:
  static constexpr uint32_t kModelsMax = 16;
  static constexpr uint32_t kFeatures = 5;  // of each model
  using Features = std::array<float, kModelsMax * kFeatures>;

  // REQUIRES: up to kModelsMax models; mlp.inputs() is kFeatures for each.
  OverlapPredictor(std::vector<ModelId> models, Mlp mlp);

  void predict(std::span<const std::span<const ExecSegment>> groups, std::span<Duration> durations) const;

  // False if a model is none of these or comes twice.
  static bool features(std::span<const ModelId> models, std::span<const ExecSegment> group, Features& to);

 private:
  Duration predict(std::span<const ExecSegment> group) const;

  std::vector<ModelId> models_;
  Mlp mlp_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROLLER_OVERLAP_PREDICTOR_H_
