#include "planning/profiling/sampling_plan.h"

#include <array>

#include "foundation/base/check.h"
#include "foundation/base/random.h"
#include "planning/profiling/group_sampling.h"

namespace foliot {

SamplingPlan::SamplingPlan(std::vector<Model> models, uint64_t seed) : models_(std::move(models)), seed_(seed) {
  FOLIOT_CHECK(models_.size() >= 2);
  for (uint32_t first = 0; first < models_.size(); ++first) {
    for (uint32_t second = first + 1; second < models_.size(); ++second) pairs_.emplace_back(first, second);
  }
}

std::vector<OverlapPredictor::Part> SamplingPlan::group(uint64_t number) const {
  const auto [first, second] = pairs_[number % pairs_.size()];
  const uint64_t turn = number / pairs_.size();
  Random random(seed_ + number);
  const std::array operators{models_[first].operators, models_[second].operators};
  const std::vector<OperatorRange> ranges = draw_ranges(operators, random);
  const uint32_t of_first = models_[first].buckets, of_second = models_[second].buckets;
  return {{first, static_cast<uint32_t>(turn % of_first), ranges[0]},
          {second, static_cast<uint32_t>(turn / of_first % of_second), ranges[1]}};
}

bool FallingError::still_falls(double error) {
  constexpr double kFall = 0.9;
  constexpr uint32_t kRoundsWithoutMax = 2;
  rounds_without_ = best_ == 0 || error < best_ * kFall ? 0 : rounds_without_ + 1;
  if (best_ == 0 || error < best_) best_ = error;
  return rounds_without_ < kRoundsWithoutMax;
}

}  // namespace foliot
