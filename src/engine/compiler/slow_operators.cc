#include "engine/compiler/slow_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "foundation/base/units.h"

namespace foliot {
namespace {

constexpr size_t kNamedMax = 4;
// An operator is slow that takes so many times what it should.
constexpr int64_t kSlowRatio = 10;

}  // namespace

std::vector<std::string> find_slow_operators(const Plan& plan, const PlanDurations& durations,
                                             const OperatorRates& rates) {
  std::vector<std::pair<Duration, std::string>> slow;
  for (size_t i = 0; i < plan.operators.size(); ++i) {
    const Operator& step = plan.operators[i];
    const Duration taken = durations.operators[i];
    const Duration expected = rates.expect(plan, step);
    if (expected == Duration() || taken < kSlowOperatorMin || taken < expected * kSlowRatio) continue;
    slow.emplace_back(taken,
                      fmt::format("node '{}' ({}, batch {}) takes {}, {:.0f} times what this machine needs for a plain "
                                  "operator of its size; its kernel {} is slow here",
                                  step.name, to_string(step.kind), plan.batch_size, format_duration(taken),
                                  taken.to_seconds() / expected.to_seconds(), step.kernel));
  }
  std::ranges::stable_sort(slow, std::greater(), [](const auto& each) { return each.first; });
  std::vector<std::string> sentences;
  for (size_t i = 0; i < slow.size() && i < kNamedMax; ++i) sentences.push_back(std::move(slow[i].second));
  if (slow.size() > kNamedMax) {
    sentences.push_back(fmt::format(
        "{} other operators are as slow; foliot compile --report lists all with their times", slow.size() - kNamedMax));
  }
  return sentences;
}

}  // namespace foliot
