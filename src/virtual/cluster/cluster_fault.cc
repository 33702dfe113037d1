#include "virtual/cluster/cluster_fault.h"

#include <algorithm>
#include <cmath>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr Duration kDelayMax = Duration::milliseconds(400);

bool of_a_worker(ClusterFaultKind kind) {
  return kind == ClusterFaultKind::kLeave || kind == ClusterFaultKind::kFail || kind == ClusterFaultKind::kSlow;
}

// As many short ones as long ones, by orders of magnitude.
Duration draw_length(const RandomClusterFaults& options, Random& random) {
  const double ratio = options.length_max.to_seconds() / options.length_min.to_seconds();
  return options.length_min.scaled(std::pow(ratio, random.uniform()));
}

}  // namespace

std::string_view to_string(ClusterFaultKind kind) {
  switch (kind) {
    case ClusterFaultKind::kReset: return "reset";
    case ClusterFaultKind::kPartition: return "partition";
    case ClusterFaultKind::kOneWay: return "one_way";
    case ClusterFaultKind::kDelay: return "delay";
    case ClusterFaultKind::kFreeze: return "freeze";
    case ClusterFaultKind::kKill: return "kill";
    case ClusterFaultKind::kCrash: return "crash";
    case ClusterFaultKind::kLeave: return "leave";
    case ClusterFaultKind::kFail: return "fail";
    case ClusterFaultKind::kSlow: return "slow";
    case ClusterFaultKind::kModel: return "model";
  }
  FOLIOT_CHECK(false);
}

std::optional<ClusterFaultKind> parse_cluster_fault_kind(std::string_view name) {
  for (uint8_t kind = 0; kind <= static_cast<uint8_t>(kClusterFaultKindLast); ++kind) {
    if (to_string(static_cast<ClusterFaultKind>(kind)) == name) return static_cast<ClusterFaultKind>(kind);
  }
  return std::nullopt;
}

std::vector<ClusterFault> draw_cluster_faults(const RandomClusterFaults& options, uint32_t workers, uint32_t frontends,
                                              uint32_t further_controllers, uint32_t models, Duration from, Duration to,
                                              Random& random) {
  std::vector<ClusterFaultKind> kinds = options.kinds;
  for (uint8_t kind = 0; options.kinds.empty() && kind <= static_cast<uint8_t>(kClusterFaultKindLast); ++kind) {
    kinds.push_back(static_cast<ClusterFaultKind>(kind));
  }
  const uint32_t nodes = 1 + workers + frontends + further_controllers;
  std::vector<ClusterFault> faults;
  for (uint32_t i = 0; i < options.count; ++i) {
    ClusterFault fault;
    fault.kind = kinds[random.below(kinds.size())];
    fault.at = from + (to - from).scaled(random.uniform());
    fault.length = std::min(draw_length(options, random), to - fault.at);
    fault.node = static_cast<uint32_t>(of_a_worker(fault.kind) ? 1 + random.below(workers) : random.below(nodes));
    fault.other = static_cast<uint32_t>((fault.node + 1 + random.below(nodes - 1)) % nodes);
    fault.model = static_cast<uint32_t>(random.below(models));
    fault.variant = static_cast<uint32_t>(random.below(3));
    fault.delay = kDelayMax.scaled(std::pow(random.uniform(), 3));
    faults.push_back(fault);
  }
  std::ranges::stable_sort(faults, {}, &ClusterFault::at);
  return faults;
}

}  // namespace foliot
