#include "answer/selection/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace foliot {
namespace {

constexpr std::array<RegisteredSelectionPolicy, 8> kSelectionPolicies{{{"static", false, &make_static},
                                                                       {"split", false, &make_split},
                                                                       {"epsilon_greedy", false, &make_epsilon_greedy},
                                                                       {"ucb1", false, &make_ucb1},
                                                                       {"thompson", false, &make_thompson},
                                                                       {"exp3", false, &make_exp3},
                                                                       {"exp4", true, &make_exp4},
                                                                       {"majority", true, &make_majority}}};

}  // namespace

std::span<const RegisteredSelectionPolicy> selection_policies() { return kSelectionPolicies; }

Result<RegisteredSelectionPolicy> find_selection_policy(std::string_view name) {
  const auto found = std::ranges::find(kSelectionPolicies, name, &RegisteredSelectionPolicy::name);
  if (found != kSelectionPolicies.end()) return *found;
  std::string known;
  for (const RegisteredSelectionPolicy& policy : kSelectionPolicies) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", policy.name);
  }
  return Status::not_found(fmt::format("unknown policy '{}'; known are {}", name, known));
}

}  // namespace foliot
