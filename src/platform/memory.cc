#include "platform/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

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

// A file that holds one number; nullopt if there is none ("max").
std::optional<uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  uint64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
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

// The tightest of a control group and those that it lies in.
void tighten(fs::path folder, const fs::path& top, const GroupFiles& files, Group& group) {
  while (true) {
    const auto limit = number_in(folder / files.limit);
    const auto usage = number_in(folder / files.usage);
    if (limit && usage) {
      const uint64_t reclaimable = number_after(folder / "memory.stat", files.reclaimable).value_or(0);
      const uint64_t used = *usage - std::min(*usage, reclaimable);
      group.limit = std::min(group.limit, *limit);
      group.headroom = std::min(group.headroom, *limit - std::min(*limit, used));
    }
    if (folder == top || !folder.has_relative_path()) return;
    folder = folder.parent_path();
  }
}

Group group_of_this_process(const fs::path& root) {
  Group group;
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash + 1);
    const fs::path groups = root / "sys/fs/cgroup";
    if (line.starts_with("0::")) {
      tighten(path.empty() ? groups : groups / path, groups, {"memory.max", "memory.current", "inactive_file "}, group);
    } else if (line.find(":memory:") != std::string::npos) {
      const fs::path top = groups / "memory";
      tighten(path.empty() ? top : top / path, top,
              {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}, group);
    }
  }
  return group;
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
