#include "app/schedulers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sched/clockwork/clockwork_scheduler.h"

namespace foliot {

const std::vector<Policy>& policies() {
  static const std::vector<Policy> all{
      {.name = "clockwork",
       .summary = "the policy of the Clockwork paper",
       .make = [](const Cluster& cluster) { return clockwork::make_clockwork_scheduler(cluster); }},
  };
  return all;
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const Policy& policy : policies()) names.push_back(policy.name);
  return names;
}

Result<Policy> find_policy(const std::string& name) {
  const auto found =
      std::find_if(policies().begin(), policies().end(), [&](const Policy& policy) { return policy.name == name; });
  if (found != policies().end()) return *found;
  return Status::not_found(
      fmt::format("there is no scheduler '{}'; there are: {}", name, fmt::join(policy_names(), ", ")));
}

}  // namespace foliot
