// Scaling problems for tests and benchmarks.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_TEST_PROBLEMS_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_TEST_PROBLEMS_H_

#include <string>
#include <vector>

#include "control/fleet/scalers/scaling_problem.h"
#include "foundation/base/random.h"

namespace foliot {

// The paper's Table 2, with no LOADs that count: what Table 3 is of.
inline ScalingProblem table_2(double load, int64_t slo_ms) {
  const auto variant = [](const char* name, int64_t ms, double saturation, int64_t dollars) {
    return ScalableVariant{.name = name,
                           .architecture = "resnet50",
                           .price = dollars * 1'000'000,
                           .saturation = saturation,
                           .latency = Duration::milliseconds(ms),
                           .load = Duration::seconds(1)};
  };
  return {.variants = {variant("A", 200, 5, 1), variant("B", 20, 100, 3), variant("C", 15, 800, 16)},
          .load = load,
          .slo = Duration::milliseconds(slo_ms),
          .lambda = 0};
}

// With instances that run, and resources of three types.
inline ScalingProblem random_problem(Random& random, int architectures, int variants_each) {
  ScalingProblem problem{.variants = {},
                         .resources = {{"cpu cores", 400 + static_cast<int64_t>(random.below(4000))},
                                       {"inferentia cores", static_cast<int64_t>(random.below(64))},
                                       {"gpu memory", static_cast<int64_t>(random.below(640))}},
                         .load = 10 + 2000 * random.uniform() * random.uniform(),
                         .slo = Duration::milliseconds(50 + static_cast<int64_t>(random.below(250))),
                         .lambda = 0.1};
  for (int a = 0; a < architectures; ++a) {
    const double work = 0.3 + 3 * random.uniform();
    for (int v = 0; v < variants_each; ++v) {
      const uint64_t type = random.below(3);
      ScalableVariant variant{
          .name = std::to_string(a) + "-" + std::to_string(v), .architecture = std::to_string(a), .needs = {0, 0, 0}};
      const double speed[] = {8, 90, 300};
      const double price[] = {4, 100, 400};
      variant.saturation = speed[type] / work * (0.5 + random.uniform());
      variant.price = static_cast<int64_t>(price[type] * (0.5 + random.uniform()) * work);
      variant.latency =
          Duration::from_seconds((type == 0 ? 1.2 : 2.0) / variant.saturation * (1 + 3 * random.uniform()));
      variant.load = Duration::from_seconds(0.6 + 10 * random.uniform());
      variant.needs[type] = type == 0 ? 4 : type == 1 ? 1 : 1 + static_cast<int64_t>(random.below(4));
      if (random.below(6) == 0) variant.running = 1 + static_cast<int64_t>(random.below(3));
      problem.variants.push_back(variant);
    }
  }
  for (const ScalableVariant& variant : problem.variants) {  // what runs has room
    for (size_t r = 0; r < variant.needs.size(); ++r) problem.resources[r].total += variant.needs[r] * variant.running;
  }
  return problem;
}

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_TEST_PROBLEMS_H_
