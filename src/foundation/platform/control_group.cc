#include "foundation/platform/control_group.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace foliot {
namespace {

namespace fs = std::filesystem;

void add_groups(fs::path folder, const fs::path& top, uint32_t version, std::vector<ControlGroup>& groups) {
  while (true) {
    groups.push_back({.folder = folder, .version = version});
    if (folder == top || !folder.has_relative_path()) return;
    folder = folder.parent_path();
  }
}

// "4:memory:/box" or, of several controllers, "4:cpu,cpuacct:/box".
bool names(std::string_view line, std::string_view controller) {
  const size_t first = line.find(':');
  const size_t last = line.find(':', first + 1);
  if (first == std::string_view::npos || last == std::string_view::npos) return false;
  return fmt::format(",{},", line.substr(first + 1, last - first - 1)).find(fmt::format(",{},", controller)) !=
         std::string::npos;
}

}  // namespace

std::vector<ControlGroup> control_groups(const fs::path& root, std::string_view controller) {
  std::vector<ControlGroup> groups;
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash + 1);
    const bool unified = line.starts_with("0::");
    if (!unified && !names(line, controller)) continue;
    fs::path top = root / "sys/fs/cgroup";
    if (!unified) top /= controller;
    add_groups(path.empty() ? top : top / path, top, unified ? 2 : 1, groups);
  }
  return groups;
}

std::optional<int64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  int64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

}  // namespace foliot
