#include "planning/profiling/overlap_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr uint32_t kAbacusFeatures = 5;  // of each model

struct Split {
  std::vector<MlpSample> training;
  std::vector<MlpSample> held_out;
};

Split split(std::vector<MlpSample> samples, const std::vector<bool>& is_held_out) {
  Split result;
  for (size_t i = 0; i < samples.size(); ++i) {
    (is_held_out[i] ? result.held_out : result.training).push_back(std::move(samples[i]));
  }
  return result;
}

double untrained_error(std::span<const MlpSample> samples) {
  double sum = 0;
  for (const MlpSample& sample : samples) sum += std::abs(1 - static_cast<double>(sample.wanted)) / sample.wanted;
  return sum / static_cast<double>(samples.size());
}

}  // namespace

std::vector<MlpSample> correction_samples(std::span<const ProfiledModel> models, uint32_t lane_count,
                                          std::span<const OverlapSample> samples) {
  std::vector<MlpSample> result;
  const auto inputs = static_cast<std::ptrdiff_t>(models.size() * OverlapPredictor::kFeatures);
  for (const OverlapSample& sample : samples) {
    OverlapPredictor::Features features;
    OverlapPredictor::features(models, lane_count, sample.parts, features);
    const Duration longest = OverlapPredictor::longest(models, lane_count, sample.parts);
    // What was profiled as nothing cannot be corrected.
    const double alone = std::max(longest, Duration::microseconds(1)).to_seconds();
    result.push_back(
        {{features.begin(), features.begin() + inputs}, static_cast<float>(sample.together.to_seconds() / alone)});
  }
  return result;
}

std::vector<MlpSample> duration_samples(std::span<const ProfiledModel> models, std::span<const OverlapSample> samples) {
  double sum = 0;
  for (const OverlapSample& sample : samples) sum += sample.together.to_seconds();
  const double mean = sum / static_cast<double>(std::max<size_t>(samples.size(), 1));
  std::vector<MlpSample> result;
  for (const OverlapSample& sample : samples) {
    MlpSample& made = result.emplace_back();
    made.inputs.resize(models.size() * kAbacusFeatures);
    made.wanted = static_cast<float>(sample.together.to_seconds() / mean);
    for (const OverlapPredictor::Part& part : sample.parts) {
      const ProfiledModel& model = models[part.model];
      float* const own = made.inputs.data() + size_t{part.model} * kAbacusFeatures;
      own[0] = 1;
      own[1] = static_cast<float>(part.range.first) / static_cast<float>(model.operators);
      own[2] = static_cast<float>(std::min(part.range.last, model.operators)) / static_cast<float>(model.operators);
      // Buckets are of growing batch sizes or lengths: one number stands for both.
      own[3] = static_cast<float>(part.bucket + 1) / static_cast<float>(model.ends.size());
      own[4] = own[3] * own[3];
    }
  }
  return result;
}

LearnedOverlap learn_overlap(std::vector<ProfiledModel> models, uint32_t lane_count,
                             std::span<const OverlapSample> samples, const OverlapTraining& training, Random& random) {
  FOLIOT_CHECK(samples.size() >= 10);
  std::vector<bool> is_held_out(samples.size());
  std::vector<uint32_t> held_out;
  for (uint32_t i = 0; i < samples.size(); ++i) {
    // Both parts have some.
    is_held_out[i] = i == 0 || (i != 1 && random.uniform() < training.held_out);
    if (is_held_out[i]) held_out.push_back(i);
  }
  OverlapErrors errors;
  const Split own = split(correction_samples(models, lane_count, samples), is_held_out);
  Mlp mlp(static_cast<uint32_t>(models.size()) * OverlapPredictor::kFeatures, random);
  mlp.train(own.training, training.mlp, random);
  errors.correction = mlp.error(own.held_out);
  errors.untrained = untrained_error(own.held_out);
  if (training.compare) {
    const Split abacus = split(duration_samples(models, samples), is_held_out);
    Mlp other(static_cast<uint32_t>(models.size()) * kAbacusFeatures, random);
    other.train(abacus.training, training.mlp, random);
    errors.abacus = other.error(abacus.held_out);
  }
  return {OverlapPredictor(lane_count, std::move(models), std::move(mlp)), errors, std::move(held_out)};
}

Status check_quality(double spread, const OverlapErrors& errors, double bound) {
  if (spread > bound) {
    return Status::unavailable(fmt::format(
        "repeats of a group differ by {:.1f} %, more than {:.1f} %: the machine is noisy; measure while nothing else "
        "runs",
        100 * spread, 100 * bound));
  }
  // The negation is true for what is no number, too.
  if (!(errors.correction <= bound)) {
    return Status::unavailable(fmt::format(
        "the error on held-out groups is {:.1f} %, more than {:.1f} %: groups were too few, or noise in them is not "
        "seen for want of repeats; raise --samples or --repeats, and measure while nothing else runs",
        100 * errors.correction, 100 * bound));
  }
  return Status();
}

double gain_of(std::span<const ProfiledModel> models, const OverlapSample& sample) {
  Duration alone;
  for (const OverlapPredictor::Part& part : sample.parts) alone += models[part.model].alone(part.bucket, 0, part.range);
  return alone.to_seconds() / sample.together.to_seconds();
}

}  // namespace foliot
