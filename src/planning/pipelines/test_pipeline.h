// Pipelines and traces that tests and benchmarks of this room plan for.
#ifndef FOLIOT_PLANNING_PIPELINES_TEST_PIPELINE_H_
#define FOLIOT_PLANNING_PIPELINES_TEST_PIPELINE_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/time.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/query_trace.h"

namespace foliot {

// Batch sizes 1, 2, 4, ... `batch_most`: base + rows * each.
inline StageKind linear_kind(std::string name, double price, Duration base, Duration each, uint32_t batch_most = 64) {
  StageKind kind{std::move(name), price, {}, {0}};
  for (uint32_t size = 1; size <= batch_most; size *= 2) {
    kind.batch_sizes.push_back(size);
    while (kind.durations_ns.size() <= size) kind.durations_ns.push_back((base + each * size).nanoseconds());
  }
  return kind;
}

// One after another; stage i is needed by stage i + 1.
inline PlannedPipeline chain(const std::vector<std::vector<StageKind>>& kinds) {
  PlannedPipeline pipeline{"chain", {}};
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    PlannedStage stage{std::string(1, static_cast<char>('a' + i)), {}, {}, 1, 1, kinds[i]};
    if (i > 0) {
      stage.parents = {i - 1};
      stage.needs = {{i - 1}};
    }
    pipeline.stages.push_back(std::move(stage));
  }
  return pipeline;
}

// Gamma-distributed gaps.
inline std::vector<Duration> gamma_arrivals(double rate, double variation, Duration length, uint64_t seed) {
  Random random(seed);
  std::vector<Duration> arrivals;
  for (Duration at;;) {
    at += Duration::from_seconds(random.gamma_with_variation(variation) / rate);
    if (at > length) return arrivals;
    arrivals.push_back(at);
  }
}

// Four stages of which the second has batches of up to 32: whole ones serve seven times as many as batches of one.
inline PlannedPipeline four_stages() {
  const auto of = [](int64_t milliseconds) { return Duration::milliseconds(milliseconds); };
  return chain({{linear_kind("cpu", 1, of(1), of(2), 8)},
                {linear_kind("gpu", 3, of(8), of(1), 32)},
                {linear_kind("cpu", 1, of(1), of(4), 8)},
                {linear_kind("cpu", 1, of(1), of(1), 8)}});
}

// Arrivals in so many seconds, exponentially distributed gaps. "step", "ramp" and "spike" have up to `most` times the
// rate at times; others are steady.
inline std::vector<Duration> shaped_arrivals(const std::string& shape, double rate, double most, double seconds,
                                             Random& random) {
  const auto factor_at = [&](double at) {
    if (shape == "step") return at >= 100 && at < 200 ? most : 1;
    if (shape == "ramp") return 1 + (most - 1) * std::max(0.0, 1 - std::abs(at - 150) / 100);
    if (shape == "spike") return at >= 100 && std::fmod(at, 100) < 10 ? most : 1;
    return 1.0;
  };
  std::vector<Duration> arrivals;
  for (double at = 0;;) {
    at += random.gamma_with_variation(1) / (rate * factor_at(at));
    if (at > seconds) return arrivals;
    arrivals.push_back(Duration::from_seconds(at));
  }
}

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_TEST_PIPELINE_H_
