#include "controller/overlap_predictor.h"

#include <algorithm>

#include "base/check.h"

namespace foliot {
namespace {

// Of a whole EXEC, so that the feature is of the size of the others.
constexpr double kUsualSeconds = 0.05;

}  // namespace

OverlapPredictor::OverlapPredictor(std::vector<ModelId> models, Mlp mlp)
    : models_(std::move(models)), mlp_(std::move(mlp)) {
  FOLIOT_CHECK(models_.size() <= kModelsMax && mlp_.inputs() == models_.size() * kFeatures);
}

bool OverlapPredictor::features(std::span<const ModelId> models, std::span<const ExecSegment> group, Features& to) {
  to.fill(0);
  Duration sum;
  for (const ExecSegment& segment : group) sum += segment.alone;
  for (const ExecSegment& segment : group) {
    const auto found = std::ranges::find(models, segment.shape.model);
    if (found == models.end()) return false;
    float* const own = to.data() + static_cast<size_t>(found - models.begin()) * kFeatures;
    if (own[0] != 0) return false;
    const double operators = segment.operator_count;
    own[0] = 1;
    own[1] = static_cast<float>(segment.range.first / operators);
    own[2] = static_cast<float>(std::min(segment.range.last, segment.operator_count) / operators);
    own[3] = static_cast<float>(segment.whole.to_seconds() / kUsualSeconds);
    own[4] = static_cast<float>(segment.alone.to_seconds() / sum.to_seconds());
  }
  return true;
}

Duration OverlapPredictor::predict(std::span<const ExecSegment> group) const {
  Duration sum;
  Duration longest;
  for (const ExecSegment& segment : group) {
    sum += segment.alone;
    longest = std::max(longest, segment.alone);
  }
  Features own;
  if (group.size() < 2 || sum <= Duration() || !features(models_, group, own)) return sum;
  return std::max(longest, sum.scaled(mlp_.predict(std::span(own.data(), mlp_.inputs()))));
}

void OverlapPredictor::predict(std::span<const std::span<const ExecSegment>> groups,
                               std::span<Duration> durations) const {
  for (size_t i = 0; i < groups.size(); ++i) durations[i] = predict(groups[i]);
}

}  // namespace foliot
