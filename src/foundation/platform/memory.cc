#include "foundation/platform/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "foundation/platform/control_group.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The number after `key` in a file of lines "key number", in whatever unit.
std::optional<uint64_t> number_after(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    return std::strtoull(line.c_str() + key.size(), nullptr, 10);
  }
  return std::nullopt;
}

struct Group {
  uint64_t limit = kUnlimited;
  uint64_t headroom = kUnlimited;
};

// The names that one version of control groups has for the same things.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // in memory.stat
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file "};

// The tightest of this process's control groups.
Group group_of_this_process(const fs::path& root) {
  Group tightest;
  for (const ControlGroup& group : control_groups(root, "memory")) {
    const GroupFiles& files = group.version == 2 ? kVersion2 : kVersion1;
    const auto limit = number_in(group.folder / files.limit);
    const auto usage = number_in(group.folder / files.usage);
    if (!limit || !usage) continue;
    const uint64_t granted = static_cast<uint64_t>(*limit), taken = static_cast<uint64_t>(*usage);
    const uint64_t reclaimable = number_after(group.folder / "memory.stat", files.reclaimable).value_or(0);
    const uint64_t used = taken - std::min(taken, reclaimable);
    tightest.limit = std::min(tightest.limit, granted);
    tightest.headroom = std::min(tightest.headroom, granted - std::min(granted, used));
  }
  return tightest;
}

}  // namespace

uint64_t total_memory_bytes() { return total_memory_bytes("/"); }
std::optional<uint64_t> available_memory_bytes() { return available_memory_bytes("/"); }

uint64_t total_memory_bytes(const fs::path& root) {
  const uint64_t machine = number_after(root / "proc/meminfo", "MemTotal:").value_or(0) << 10;
  return std::min(machine, group_of_this_process(root).limit);
}

std::optional<uint64_t> available_memory_bytes(const fs::path& root) {
  const auto machine = number_after(root / "proc/meminfo", "MemAvailable:");
  if (!machine) return std::nullopt;
  return std::min(*machine << 10, group_of_this_process(root).headroom);
}

}  // namespace foliot
