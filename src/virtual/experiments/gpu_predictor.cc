#include "virtual/experiments/gpu_predictor.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <utility>

#include "planning/profiling/overlap_training.h"

namespace foliot {
namespace {

// Added to the run's seed: its samples are none of the arrivals' numbers.
constexpr uint64_t kPredictorSeed = 16;

}  // namespace

// All sets of so many of the models.
std::vector<std::vector<uint32_t>> sets_of_models(uint32_t size, uint32_t models) {
  std::vector<std::vector<uint32_t>> sets;
  for (uint32_t bits = 0; bits < 1U << models; ++bits) {
    if (std::popcount(bits) != static_cast<int>(size)) continue;
    std::vector<uint32_t>& set = sets.emplace_back();
    for (uint32_t model = 0; model < models; ++model) {
      if ((bits >> model & 1) != 0) set.push_back(model);
    }
  }
  return sets;
}

// One predictor for all pairs, triples and quadruples (section 5.5), and Abacus' own features
// beside it.
std::shared_ptr<const OverlapPredictor> learn_gpu_predictor(ExperimentRun& run, const std::vector<GpuModel>& models) {
  Random random(kPredictorSeed + run.seed());
  std::vector<OverlapSample> samples;
  for (const uint32_t size : {2u, 3u, 4u}) {
    const uint32_t of_each = run.size(size == 2 ? 2000 : 600, 100);
    for (const std::vector<uint32_t>& set : sets_of_models(size, static_cast<uint32_t>(models.size()))) {
      for (uint32_t i = 0; i < of_each; ++i) samples.push_back(sample_group(models, set, random));
    }
  }
  std::vector<ProfiledModel> profiles;
  for (const GpuModel& model : models) profiles.push_back(model.profile());
  LearnedOverlap learned =
      learn_overlap(profiles, kGpuLanes, samples, {.mlp = {.epochs = run.size(40u, 10u)}, .compare = true}, random);
  for (const uint32_t size : {2u, 3u, 4u}) {
    double sum = 0;
    double count = 0;
    for (const uint32_t position : learned.held_out) {
      const OverlapSample& sample = samples[position];
      if (sample.parts.size() != size) continue;
      const Duration predicted = learned.predictor.predict(std::span<const OverlapPredictor::Part>(sample.parts));
      sum += std::abs(predicted.to_seconds() / sample.together.to_seconds() - 1);
      ++count;
    }
    run.find({.what = fmt::format("prediction error, held out, {} models", size),
              .paper = size == 2   ? "5.7 %"
                       : size == 3 ? "4.9 %"
                                   : "6.4 %",
              .goal = "<= 5.7 %",
              .here = fmt::format("{:.1f} %", 100 * sum / count),
              .met = sum <= 0.057 * count});
  }
  run.find({.what = "prediction error, held out, all, with the paper's features",
            .paper = "5.7 %",
            .goal = "-",
            .here = fmt::format("{:.1f} %; by the longest segment alone {:.1f} %", 100 * learned.errors.abacus,
                                100 * learned.errors.untrained)});
  return std::make_shared<const OverlapPredictor>(std::move(learned.predictor));
}

}  // namespace foliot
