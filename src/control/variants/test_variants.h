// Variants for tests and benchmarks.
#ifndef FOLIOT_CONTROL_VARIANTS_TEST_VARIANTS_H_
#define FOLIOT_CONTROL_VARIANTS_TEST_VARIANTS_H_

#include <string>
#include <utility>

#include "control/variants/variant.h"
#include "control/variants/variant_policy.h"
#include "control/variants/variant_registry.h"
#include "foundation/base/random.h"

namespace foliot {

// $1 per second for each unit of `dollars`.
inline Variant test_variant(std::string name, double accuracy, int64_t latency_ms, double saturation, double dollars,
                            int64_t load_ms = 1000, std::string kind = "cpu") {
  Variant variant;
  variant.name = std::move(name);
  variant.architecture = "resnet50";
  variant.kind = std::move(kind);
  variant.accuracy = accuracy;
  variant.latencies = {{1, Duration::milliseconds(latency_ms)}};
  variant.load = Duration::milliseconds(load_ms);
  variant.memory_bytes = 100;
  variant.saturation = saturation;
  variant.price = static_cast<MicroDollarsPerSecond>(dollars * 1e6);
  return variant;
}

// As a zoo has them: the more accurate, the slower, with noise; of three kinds.
inline Variant random_variant(std::string name, Random& random) {
  Variant variant;
  variant.name = std::move(name);
  variant.architecture = "m" + std::to_string(random.below(22));
  const uint64_t kind = random.below(3);
  variant.kind = kind == 0 ? "cpu" : kind == 1 ? "inferentia" : "gpu";
  const double quality = random.uniform();
  variant.accuracy = 0.56 + 0.26 * quality;
  const double ms = (2 + 150 * quality * random.uniform()) / (1 + 4 * static_cast<double>(kind));
  variant.latencies = {{1, Duration::from_milliseconds(ms)}};
  variant.load = Duration::from_seconds(0.5 + 10 * random.uniform());
  variant.memory_bytes = 100;
  variant.saturation = 1000 / ms * (1 + 3 * random.uniform());
  variant.price = 27 + static_cast<int64_t>(kind) * 300 + static_cast<int64_t>(random.below(100));
  return variant;
}

// The same as make_variant_policy("infaas" or "predicted"), reading all variants of the task.
inline VariantChoice brute_force(bool predicted, const VariantRegistry& registry, TaskId task,
                                 const VariantRequirements& asked, TimePoint now) {
  VariantChoice best{.outcome = VariantChoice::Outcome::kNoneInTime};
  int64_t best_cost = VariantIndex::kNoCostLimit;
  for (const VariantId id : registry.variants(task)) {
    const Variant& variant = registry.variant(id);
    if (variant.accuracy < asked.accuracy || variant.latency() > asked.latency) continue;
    for (const VariantRegistry::Instance& instance : registry.instances(id)) {
      const TimePoint answered = std::max(now, instance.begins) + variant.latency();
      const bool usable = predicted ? answered <= now + asked.latency : instance.state == InstanceState::kActive;
      if (!usable || variant.query_picodollars() >= best_cost) continue;
      best_cost = variant.query_picodollars();
      best = {VariantChoice::Outcome::kLoaded, id, instance.device, answered};
    }
  }
  if (best.chosen()) return best;
  for (const VariantId id : registry.variants(task)) {
    const Variant& variant = registry.variant(id);
    const Duration start = variant.load + variant.latency();
    if (variant.accuracy < asked.accuracy || variant.latency() > asked.latency) continue;
    if ((predicted && start > asked.latency) || start.nanoseconds() >= best_cost) continue;
    if (const auto device = registry.loading_device(id)) {
      best_cost = start.nanoseconds();
      best = {VariantChoice::Outcome::kToLoad, id, *device, now + start};
    }
  }
  return best;
}

}  // namespace foliot

#endif  // FOLIOT_CONTROL_VARIANTS_TEST_VARIANTS_H_
