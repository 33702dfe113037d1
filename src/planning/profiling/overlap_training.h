// Learning an OverlapPredictor from samples, and how good it is on samples that it has not seen.
//
// Beside the predictor's own features, which correct what was profiled, Abacus' are learned, which
// predict the duration itself (section 5.3: a bitmap of models; first and last operator, batch
// size and sequence length of each), by an Mlp of the same size. What they are worth is reported;
// they are not used.
#ifndef FOLIOT_PLANNING_PROFILING_OVERLAP_TRAINING_H_
#define FOLIOT_PLANNING_PROFILING_OVERLAP_TRAINING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "control/controller/mlp.h"
#include "control/controller/overlap_predictor.h"
#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "planning/profiling/overlap_sample.h"

namespace foliot {

// In the form in which the predictor's Mlp learns them.
std::vector<MlpSample> correction_samples(std::span<const ProfiledModel> models, uint32_t lane_count,
                                          std::span<const OverlapSample> samples);
// With Abacus' features; what is wanted is the duration, in units of the mean of all.
std::vector<MlpSample> duration_samples(std::span<const ProfiledModel> models, std::span<const OverlapSample> samples);

struct OverlapTraining {
  double held_out = 0.2;  // share of the samples
  MlpTraining mlp{};
  bool compare = true;  // learn Abacus' features, too
};

// Mean absolute relative errors of held-out samples (Abacus, equation 1).
struct OverlapErrors {
  double correction = 0;
  double abacus = 0;     // 0: not compared
  double untrained = 0;  // of the first term alone
};

struct LearnedOverlap {
  OverlapPredictor predictor;
  OverlapErrors errors;
  std::vector<uint32_t> held_out;  // positions of these samples
};

// REQUIRES: at least 10 samples.
LearnedOverlap learn_overlap(std::vector<ProfiledModel> models, uint32_t lane_count,
                             std::span<const OverlapSample> samples, const OverlapTraining& training, Random& random);

// Whether the predictor may be used: both the mean spread of repeats and the error of groups that it has not seen are
// at most `bound`, a share of what a group takes. Errors: kUnavailable with the figure, its likely cause and the
// remedy.
Status check_quality(double spread, const OverlapErrors& errors, double bound);

// How many times as long parts take one after the other, on all lanes, as together.
double gain_of(std::span<const ProfiledModel> models, const OverlapSample& sample);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PROFILING_OVERLAP_TRAINING_H_
