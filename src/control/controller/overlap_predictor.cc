#include "control/controller/overlap_predictor.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Of a whole EXEC, so that the feature is of the size of the others.
constexpr double kUsualSeconds = 0.05;
// Nothing that runs beside others takes so much longer.
constexpr float kCorrectionMax = 32;

uint32_t width_of_group(uint32_t lane_count, size_t segments) {
  return width_index(group_width(lane_count, static_cast<uint32_t>(segments)), lane_count);
}

}  // namespace

Duration ProfiledModel::alone(uint32_t bucket, uint32_t width_index, OperatorRange range) const {
  const std::vector<float>& own = ends[bucket][width_index];
  const auto until = [&own](uint32_t end) { return end == 0 ? 0.0F : own[std::min<size_t>(end, own.size()) - 1]; };
  return Duration::nanoseconds(static_cast<int64_t>(until(range.last) - until(range.first)));
}

OverlapPredictor::OverlapPredictor(uint32_t lane_count, std::vector<ProfiledModel> models, Mlp mlp)
    : lane_count_(lane_count), models_(std::move(models)), mlp_(std::move(mlp)) {
  FOLIOT_CHECK(models_.size() <= kModelsMax && mlp_.inputs() == models_.size() * kFeatures);
  for (const ProfiledModel& model : models_) {
    for (const auto& widths : model.ends) {
      FOLIOT_CHECK(widths.size() == width_count(lane_count_));
      for (const auto& ends : widths) FOLIOT_CHECK(ends.size() == model.operators && model.operators > 0);
    }
  }
}

std::optional<uint32_t> OverlapPredictor::find(const ModelInfo& model) const {
  const auto found = std::ranges::find(models_, model.content, &ProfiledModel::content);
  if (model.content.empty() || found == models_.end() || found->ends.size() != model.buckets.size()) return {};
  return static_cast<uint32_t>(found - models_.begin());
}

Duration OverlapPredictor::longest(std::span<const ProfiledModel> models, uint32_t lane_count,
                                   std::span<const Part> group) {
  const uint32_t width = width_of_group(lane_count, group.size());
  Duration longest;
  for (const Part& part : group) longest = std::max(longest, models[part.model].alone(part.bucket, width, part.range));
  return longest;
}

void OverlapPredictor::features(std::span<const ProfiledModel> models, uint32_t lane_count, std::span<const Part> group,
                                Features& to) {
  to.fill(0);
  const double most = longest(models, lane_count, group).to_seconds();
  const uint32_t width = width_of_group(lane_count, group.size());
  for (const Part& part : group) {
    const ProfiledModel& model = models[part.model];
    float* const own = to.data() + part.model * kFeatures;
    const double operators = model.operators;
    own[0] = 1;
    own[1] = static_cast<float>(part.range.first / operators);
    own[2] = static_cast<float>(std::min(part.range.last, model.operators) / operators);
    own[3] = static_cast<float>(model.alone(part.bucket, width, {}).to_seconds() / kUsualSeconds);
    own[4] = most > 0 ? static_cast<float>(model.alone(part.bucket, width, part.range).to_seconds() / most) : 0;
  }
}

Duration OverlapPredictor::predict(std::span<const Part> group) const {
  Features own;
  features(models_, lane_count_, group, own);
  const Duration alone = longest(models_, lane_count_, group);
  const float correction = mlp_.predict(std::span(own.data(), mlp_.inputs()));
  // Also of what is no number.
  return correction > 1 ? alone.scaled(std::min(correction, kCorrectionMax)) : alone;
}

bool OverlapPredictor::parts_of(std::span<const ExecSegment> group, std::span<const std::optional<uint32_t>> known,
                                std::span<Part> parts) const {
  uint32_t seen = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const ExecSegment& segment = group[i];
    const ModelId model = segment.shape.model;
    if (model.value() >= known.size() || !known[model.value()]) return false;
    const uint32_t position = *known[model.value()];
    const bool is_as_profiled = segment.operator_count == models_[position].operators && segment.shape.batch_index == 0;
    if (!is_as_profiled || (seen >> position & 1) != 0) return false;
    seen |= 1U << position;
    parts[i] = {position, segment.shape.bucket.value(), segment.range};
  }
  return true;
}

void OverlapPredictor::predict(std::span<const std::span<const ExecSegment>> groups,
                               std::span<const std::optional<uint32_t>> known, std::span<Duration> durations) const {
  std::array<Part, kModelsMax> parts;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::span<const ExecSegment> group = groups[i];
    durations[i] = Duration();
    for (const ExecSegment& segment : group) durations[i] += segment.alone;
    const bool can_be = group.size() > 1 && group.size() <= std::min(kModelsMax, lane_count_);
    if (!can_be || !parts_of(group, known, parts)) continue;
    const auto own = std::span<const Part>(parts.data(), group.size());
    Duration profiled;
    for (const Part& part : own) profiled += models_[part.model].alone(part.bucket, 0, part.range);
    // The machine may be slower or faster now than where it was profiled.
    if (profiled > Duration()) durations[i] = predict(own).scaled(durations[i].to_seconds() / profiled.to_seconds());
  }
}

}  // namespace foliot
