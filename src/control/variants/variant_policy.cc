#include "control/variants/variant_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

using Outcome = VariantChoice::Outcome;

// What all policies do: checks, queries by model, and the suggestion.
class CheckingPolicy : public VariantPolicy {
 public:
  VariantChoice get_variant(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked,
                            TimePoint now) const final {
    if (!(asked.accuracy >= 0 && asked.accuracy <= 1)) return {.outcome = Outcome::kBadAccuracy};
    if (asked.latency <= Duration()) return {.outcome = Outcome::kBadLatency};
    if (asked.variant) return of_variant(registry, *asked.variant, asked, now);
    const VariantChoice choice = choose(registry, task, asked, now);
    if (choice.chosen() || registry.registered(task).least_accurate(matching(asked))) return choice;
    const std::optional<uint32_t> nearest = registry.registered(task).nearest(asked.accuracy, asked.latency);
    VariantChoice suggestion{.outcome = Outcome::kNoneMatches};
    if (nearest) suggestion.variant = registry.variants(task)[*nearest];
    return suggestion;
  }

 protected:
  virtual VariantChoice choose(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked,
                               TimePoint now) const = 0;

  static VariantIndex::Query matching(const VariantRequirements& asked) {
    return {.accuracy_least = asked.accuracy, .latency_most = asked.latency, .cost_most = asked.cost_picodollars};
  }
  static VariantChoice on(const VariantRegistry& registry, VariantId variant, const VariantRegistry::Instance& instance,
                          TimePoint now) {
    return {.outcome = Outcome::kLoaded,
            .variant = variant,
            .device = instance.device,
            .answered = std::max(now, instance.begins) + registry.variant(variant).latency()};
  }
  // On the least utilised device, within `limit` of now; kNoneInTime if there is none.
  static VariantChoice load(const VariantRegistry& registry, VariantId variant, Duration limit, TimePoint now) {
    const Variant& facts = registry.variant(variant);
    const std::optional<DeviceId> device = registry.loading_device(variant);
    if (!device || facts.load + facts.latency() > limit) return {.outcome = Outcome::kNoneInTime};
    return {.outcome = Outcome::kToLoad,
            .variant = variant,
            .device = *device,
            .answered = now + facts.load + facts.latency()};
  }
  // The Active one that costs least, on its least loaded device.
  static std::optional<VariantChoice> active(const VariantRegistry& registry, TaskId task,
                                             const VariantRequirements& asked, TimePoint now) {
    const std::optional<uint32_t> found = registry.active(task).cheapest(matching(asked));
    if (!found) return std::nullopt;
    const VariantId variant = registry.variants(task)[*found];
    for (const VariantRegistry::Instance& instance : registry.instances(variant)) {
      if (instance.state == InstanceState::kActive) return on(registry, variant, instance, now);
    }
    return std::nullopt;
  }
  // The one that is answered first if it is loaded now, in at most `limit`.
  static VariantChoice quickest_load(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked,
                                     Duration limit, TimePoint now) {
    VariantIndex::Query query = matching(asked);
    // The cost in this index is the time.
    query.cost_most = std::min(limit.nanoseconds(), VariantIndex::kNoCostLimit);
    const std::optional<uint32_t> found = registry.loadable(task).cheapest(query);
    if (!found) return {.outcome = Outcome::kNoneInTime};
    const VariantId variant = registry.variants(task)[*found];
    if (registry.variant(variant).query_picodollars() > asked.cost_picodollars)
      return {.outcome = Outcome::kNoneInTime};
    return load(registry, variant, limit, now);
  }

 private:
  VariantChoice of_variant(const VariantRegistry& registry, VariantId variant, const VariantRequirements& asked,
                           TimePoint now) const {
    if (!registry.has(variant)) return {.outcome = Outcome::kNoneMatches};
    if (registry.variant(variant).latency() > asked.latency || registry.variant(variant).accuracy < asked.accuracy) {
      return {.outcome = Outcome::kNoneMatches, .variant = variant};
    }
    if (!registry.instances(variant).empty()) {
      return on(registry, variant, registry.instances(variant).front(), now);
    }
    return load(registry, variant, Duration::max(), now);
  }
};

class InfaasPolicy : public CheckingPolicy {
  VariantChoice choose(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked,
                       TimePoint now) const override {
    if (const std::optional<VariantChoice> found = active(registry, task, asked, now)) return *found;
    return quickest_load(registry, task, asked, Duration::max(), now);
  }
};

class PredictedPolicy : public CheckingPolicy {
 protected:
  VariantChoice choose(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked,
                       TimePoint now) const override {
    VariantIndex::Query query = matching(asked);
    query.ready_most = now + asked.latency;
    if (const std::optional<uint32_t> found = registry.loaded(task).cheapest(query)) {
      return first_of(registry, task, *found, now);
    }
    return quickest_load(registry, task, asked, asked.latency, now);
  }
  static VariantChoice first_of(const VariantRegistry& registry, TaskId task, uint32_t position, TimePoint now) {
    const VariantId variant = registry.variants(task)[position];
    return on(registry, variant, registry.instances(variant).front(), now);
  }
};

class ScaledPolicy : public PredictedPolicy {
  // Doubles in a thousand queries without a wait that is too long.
  static constexpr double kGrowth = 1.0007;
  static constexpr double kShareMost = 0.5;
  static constexpr double kShareLeast = 1.0 / 1024;

  VariantChoice choose(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked,
                       TimePoint now) const override {
    adapt(registry, task, asked, now);
    VariantIndex::Query query = matching(asked);
    query.ready_most = now + asked.latency.scaled(share_);
    if (const std::optional<uint32_t> found = registry.loaded(task).most_accurate(query)) {
      return first_of(registry, task, *found, now);
    }
    return PredictedPolicy::choose(registry, task, asked, now);
  }
  // Queues are to take at most half of the time. Where they took more, the machine is less predictable than what is
  // left allows for.
  void adapt(const VariantRegistry& registry, TaskId task, const VariantRequirements& asked, TimePoint now) const {
    if (asked.latency == Duration::max()) return;
    VariantIndex::Query query = matching(asked);
    query.latency_most = asked.latency / 2;
    const std::optional<uint32_t> cheapest = registry.loaded(task).cheapest(query);
    if (!cheapest) return;
    const VariantId variant = registry.variants(task)[*cheapest];
    const bool waited = registry.instances(variant).front().begins - now > asked.latency / 2;
    share_ = waited ? std::max(share_ / 2, kShareLeast) : std::min(share_ * kGrowth, kShareMost);
  }

  mutable double share_ = kShareMost;  // of the time, in which the more accurate variant is to answer
};

}  // namespace

Result<std::unique_ptr<VariantPolicy>> make_variant_policy(std::string_view name) {
  if (name == "infaas") return std::unique_ptr<VariantPolicy>(std::make_unique<InfaasPolicy>());
  if (name == "predicted") return std::unique_ptr<VariantPolicy>(std::make_unique<PredictedPolicy>());
  if (name == "scaled") return std::unique_ptr<VariantPolicy>(std::make_unique<ScaledPolicy>());
  return Status::not_found(
      fmt::format("there is no policy '{}' for variants; there are infaas, predicted and scaled", name));
}

Status status_of(const VariantChoice& choice, const VariantRegistry& registry, TaskId task,
                 const VariantRequirements& asked) {
  const std::string& name = registry.task_name(task);
  const auto wanted = [&] {
    return asked.latency == Duration::max() ? fmt::format("an accuracy of at least {}", asked.accuracy)
                                            : fmt::format("an accuracy of at least {} within {} ms", asked.accuracy,
                                                          asked.latency.to_milliseconds());
  };
  switch (choice.outcome) {
    case Outcome::kLoaded:
    case Outcome::kToLoad: return Status();
    case Outcome::kBadAccuracy:
      return Status::invalid_argument(
          fmt::format("task '{}': accuracy is {}, and must be within [0, 1]", name, asked.accuracy));
    case Outcome::kBadLatency:
      return Status::invalid_argument(
          fmt::format("task '{}': latency is {} ms, and must be above 0", name, asked.latency.to_milliseconds()));
    case Outcome::kNoneInTime:
      return Status::unavailable(
          fmt::format("task '{}': no variant with {} is free in time; ask again later", name, wanted()));
    case Outcome::kNoneMatches: break;
  }
  if (!choice.variant) return Status::not_found(fmt::format("task '{}' has no variants; register a model", name));
  const Variant& nearest = registry.variant(*choice.variant);
  return Status::not_found(fmt::format("task '{}' has no variant with {}; the nearest is '{}': accuracy {}, {} ms",
                                       name, wanted(), nearest.name, nearest.accuracy,
                                       nearest.latency().to_milliseconds()));
}

}  // namespace foliot
