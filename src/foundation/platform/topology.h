// Topology: the cores of this machine, which of them this process may use, and to which
// NUMA node each belongs. Hardware threads of one core count as cores of their own, as the
// kernel numbers them.
#ifndef FOLIOT_FOUNDATION_PLATFORM_TOPOLOGY_H_
#define FOLIOT_FOUNDATION_PLATFORM_TOPOLOGY_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/platform/core_set.h"

namespace foliot {

struct Topology {
  struct Core {
    uint32_t number = 0;
    uint32_t node = 0;  // where its memory is; 0 if the machine does not say
    bool online = true;
    bool in_affinity = true;       // of this process
    bool in_control_group = true;  // of this process: its cpuset
    bool usable() const { return online && in_affinity && in_control_group; }
  };
  std::vector<Core> cores;  // that exist, ascending
  // How many of the usable ones a control group's quota grants time for, rounded up.
  uint32_t granted = 1;

  CoreSet usable() const;
  // Usable cores by node; nodes without any are left out.
  std::vector<CoreSet> usable_by_node() const;
  // More than one node has cores.
  bool has_nodes() const;
  // Whether threads can be pinned to these. Errors: kInvalidArgument naming a core that does
  // not exist, is offline, or is forbidden, and by what; kInvalidArgument for no core.
  Status check(const CoreSet& cores) const;
};

// What the system says at present. Errors: kUnavailable if it does not say which cores
// there are.
Result<Topology> read_topology();
// The same, read from `root` instead of "/" (proc and sys below it) and with this affinity,
// for tests.
Result<Topology> read_topology(const std::filesystem::path& root, const CoreSet& affinity);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_TOPOLOGY_H_
