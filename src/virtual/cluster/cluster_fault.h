// ClusterFault: what goes wrong in a simulated cluster, where, when and for how long; and
// schedules of faults drawn from a seed.
#ifndef FOLIOT_VIRTUAL_CLUSTER_CLUSTER_FAULT_H_
#define FOLIOT_VIRTUAL_CLUSTER_CLUSTER_FAULT_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/time.h"

namespace foliot {

enum class ClusterFaultKind : uint8_t {
  kReset,      // a link is reset, in the middle of a frame perhaps
  kPartition,  // nothing passes between two nodes
  kOneWay,     // nothing passes from one to the other
  kDelay,      // all that a node sends and receives is late
  kFreeze,     // a process stands still, and goes on
  kKill,       // a process ends, and another is started
  kCrash,      // so does its machine: peers see nothing of it
  kLeave,      // a worker finishes what it has, and another is started
  kFail,       // LOADs, EXECs or both fail on a worker
  kSlow,       // a worker's LOADs and EXECs take ten times as long
  kModel,      // a model is added, updated or removed, or pipelines and tasks are, on each worker in its own time
};
inline constexpr ClusterFaultKind kClusterFaultKindLast = ClusterFaultKind::kModel;
std::string_view to_string(ClusterFaultKind kind);  // "reset", "partition", "one_way", ...
std::optional<ClusterFaultKind> parse_cluster_fault_kind(std::string_view name);

// Nodes by number: the first controller is 0, then the workers, the front ends, and further controllers.
struct ClusterFault {
  ClusterFaultKind kind = ClusterFaultKind::kReset;
  Duration at;
  Duration length;
  uint32_t node = 0;
  uint32_t other = 0;  // of two
  uint32_t model = 0;
  // kFail: which of LOAD and EXEC; kModel: 0 removes, or else adds or updates.
  uint32_t variant = 0;
  Duration delay;
};

struct RandomClusterFaults {
  uint32_t count = 16;
  std::vector<ClusterFaultKind> kinds;  // empty: all
  Duration length_min = Duration::milliseconds(5);
  Duration length_max = Duration::seconds(3);
};

// They begin between `from` and `to`, and may overlap. All of them are over at `to`, but
// for links, which come back by themselves, and models. Sorted by `at`.
std::vector<ClusterFault> draw_cluster_faults(const RandomClusterFaults& options, uint32_t workers, uint32_t frontends,
                                              uint32_t further_controllers, uint32_t models, Duration from, Duration to,
                                              Random& random);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_CLUSTER_FAULT_H_
