#include "control/policies/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "control/policies/adaptive_batching/adaptive_batching_policy.h"
#include "control/policies/clockwork/clockwork_policy.h"
#include "control/policies/deferred/deferred_policy.h"
#include "control/policies/dynamic_batching/dynamic_batching_policy.h"
#include "control/policies/edf/edf_policy.h"
#include "control/policies/fcfs/fcfs_policy.h"
#include "control/policies/flex/flex_policy.h"
#include "control/policies/foliot/foliot_policy.h"
#include "control/policies/inferline/inferline_policy.h"
#include "control/policies/overlap/overlap_policy.h"
#include "control/policies/sjf/sjf_policy.h"

namespace foliot {

const std::vector<RegisteredPolicy>& policies() {
  static const std::vector<RegisteredPolicy> all{
      {.name = "adaptive_batching",
       .summary = "Clipper: batches grow until they take too long (AIMD), and wait for company",
       .make = [](const Cluster& cluster) { return adaptive_batching::make_adaptive_batching_policy(cluster); }},
      {.name = "adaptive_batching_quantile",
       .summary = "Clipper: batches as large as quantile regression of their latency allows",
       .make =
           [](const Cluster& cluster) {
             return adaptive_batching::make_adaptive_batching_policy(
                 cluster, {.method = adaptive_batching::Method::kQuantileRegression});
           }},
      {.name = "clockwork",
       .summary = "the policy of the Clockwork paper",
       .make = [](const Cluster& cluster) { return clockwork::make_clockwork_policy(cluster); }},
      {.name = "deferred",
       .summary = "Symphony: batches wait for company until the last moment",
       .make = [](const Cluster& cluster) { return deferred::make_deferred_policy(cluster); }},
      {.name = "dynamic_batching",
       .summary = "Triton: preferred batch sizes and a longest delay",
       .make = [](const Cluster& cluster) { return dynamic_batching::make_dynamic_batching_policy(cluster); }},
      {.name = "edf",
       .summary = "earliest deadline first, one request at a time, with query drop",
       .make = [](const Cluster& cluster) { return edf::make_edf_policy(cluster); }},
      {.name = "fcfs",
       .summary = "first come first served, one request at a time, with query drop",
       .make = [](const Cluster& cluster) { return fcfs::make_fcfs_policy(cluster); }},
      {.name = "flex",
       .summary = "SHEPHERD: the largest batch that meets its deadlines goes first",
       .make = [](const Cluster& cluster) { return flex::make_flex_policy(cluster); }},
      {.name = "foliot",
       .summary = "Foliot's own: batches weighed against each other, LOADs by what they save",
       .make = [](const Cluster& cluster) { return foliot_policy::make_foliot_policy(cluster); }},
      {.name = "foliot_consolidating",
       .summary = "foliot, with as few devices at work as the deadlines allow",
       .make =
           [](const Cluster& cluster) { return foliot_policy::make_foliot_policy(cluster, {.consolidate = true}); }},
      {.name = "inferline",
       .summary = "InferLine: oldest first, batches as large as what waits, on replicas that targets pin",
       .make = [](const Cluster& cluster) { return inferline::make_inferline_policy(cluster); }},
      {.name = "overlap",
       .summary = "Abacus: queries beside each other, in groups of operators of predicted duration",
       .make = [](const Cluster& cluster) { return overlap::make_overlap_policy(cluster); }},
      {.name = "sjf",
       .summary = "shortest job first, one request at a time, with query drop",
       .make = [](const Cluster& cluster) { return sjf::make_sjf_policy(cluster); }},
  };
  return all;
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const RegisteredPolicy& policy : policies()) names.push_back(policy.name);
  return names;
}

Result<RegisteredPolicy> find_policy(const std::string& name) {
  const auto found = std::find_if(policies().begin(), policies().end(),
                                  [&](const RegisteredPolicy& policy) { return policy.name == name; });
  if (found != policies().end()) return *found;
  return Status::not_found(
      fmt::format("there is no scheduler '{}'; there are: {}", name, fmt::join(policy_names(), ", ")));
}

}  // namespace foliot
