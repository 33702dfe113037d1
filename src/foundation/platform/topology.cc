#include "foundation/platform/topology.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "foundation/base/folder_listing.h"
#include "foundation/platform/control_group.h"
#include "foundation/platform/processor.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// A file that holds one set; nullopt if there is none, or it is empty.
std::optional<CoreSet> set_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string text;
  if (!std::getline(stream, text) || text.empty()) return std::nullopt;
  Result<CoreSet> cores = parse_core_set(text);
  return cores.ok() ? std::optional(std::move(cores).value()) : std::nullopt;
}

bool contains(const CoreSet& cores, uint32_t core) { return std::ranges::binary_search(cores, core); }

// Of the innermost group that has one.
std::optional<CoreSet> control_group_set(const fs::path& root) {
  for (const ControlGroup& group : control_groups(root, "cpuset")) {
    const char* const file = group.version == 2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus";
    if (auto cores = set_in(group.folder / file)) return cores;
  }
  return std::nullopt;
}

std::map<uint32_t, uint32_t> nodes_of_cores(const fs::path& root) {
  std::map<uint32_t, uint32_t> nodes;
  const auto entries = list_folder(root / "sys/devices/system/node");
  if (!entries.ok()) return nodes;  // Containers may have no /sys.
  for (const fs::path& entry : *entries) {
    const std::string name = entry.filename();
    if (!name.starts_with("node")) continue;
    const Result<CoreSet> number = parse_core_set(name.substr(4));
    if (!number.ok() || number.value().size() != 1) continue;
    for (const uint32_t core : set_in(entry / "cpulist").value_or(CoreSet())) {
      nodes[core] = number.value().front();
    }
  }
  return nodes;
}

CoreSet affinity_of_this_process() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  CoreSet cores;
  for (uint32_t core = 0; core < kCoresMax; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

CoreSet Topology::usable() const {
  CoreSet usable;
  for (const Core& core : cores) {
    if (core.usable()) usable.push_back(core.number);
  }
  return usable;
}

std::vector<CoreSet> Topology::usable_by_node() const {
  std::map<uint32_t, CoreSet> nodes;
  for (const Core& core : cores) {
    if (core.usable()) nodes[core.node].push_back(core.number);
  }
  std::vector<CoreSet> sets;
  for (auto& [node, set] : nodes) sets.push_back(std::move(set));
  return sets;
}

bool Topology::has_nodes() const {
  return std::ranges::any_of(cores, [this](const Core& core) { return core.node != cores.front().node; });
}

Status Topology::check(const CoreSet& wanted) const {
  if (wanted.empty()) return Status::invalid_argument("a set without cores; name at least one");
  for (const uint32_t number : wanted) {
    const auto core = std::ranges::find(cores, number, &Core::number);
    std::string why;
    if (core == cores.end()) {
      CoreSet all;
      std::ranges::transform(cores, std::back_inserter(all), &Core::number);
      return Status::invalid_argument(
          fmt::format("core {} does not exist; this machine has cores {}", number, to_string(all)));
    }
    if (!core->online) {
      why = "is offline";
    } else if (!core->in_control_group) {
      why = "is forbidden by the control group (cpuset) of this process";
    } else if (!core->in_affinity) {
      why = "is forbidden by the affinity (taskset) of this process";
    }
    if (!why.empty()) {
      return Status::invalid_argument(fmt::format("core {} {}; usable are cores {}", number, why, to_string(usable())));
    }
  }
  return Status();
}

Result<Topology> read_topology() { return read_topology("/", affinity_of_this_process()); }

Result<Topology> read_topology(const fs::path& root, const CoreSet& affinity) {
  const fs::path folder = root / "sys/devices/system/cpu";
  const std::optional<CoreSet> present = set_in(folder / "present");
  if (!present) {
    return Status::unavailable(fmt::format("{} does not say which cores there are", (folder / "present").string()));
  }
  const CoreSet online = set_in(folder / "online").value_or(*present);
  const std::optional<CoreSet> group = control_group_set(root);
  const std::map<uint32_t, uint32_t> nodes = nodes_of_cores(root);
  Topology topology;
  for (const uint32_t core : *present) {
    const auto node = nodes.find(core);
    topology.cores.push_back({.number = core,
                              .node = node == nodes.end() ? 0 : node->second,
                              .online = contains(online, core),
                              .in_affinity = contains(affinity, core),
                              .in_control_group = !group || contains(*group, core)});
  }
  const auto usable = static_cast<uint32_t>(topology.usable().size());
  topology.granted = std::max(1u, std::min(usable, granted_processors(root)));
  return topology;
}

}  // namespace foliot
