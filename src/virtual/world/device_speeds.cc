#include "virtual/world/device_speeds.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace foliot {

Result<std::vector<DeviceSpeed>> parse_device_speeds(std::string_view text) {
  std::vector<DeviceSpeed> speeds;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (uint64_t number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    double seconds = 0;
    double speed = 0;
    std::string rest;
    if (!(words >> seconds >> speed) || words >> rest || !(speed > 0)) {
      return Status::invalid_argument(
          fmt::format("line {}: '{}' is not an instant in seconds and a speed above 0", number, line));
    }
    const Duration from = Duration::from_seconds(seconds);
    if (!speeds.empty() && from < speeds.back().from) {
      return Status::invalid_argument(fmt::format("line {}: instants must ascend", number));
    }
    speeds.push_back({from, speed});
  }
  return speeds;
}

Result<std::vector<DeviceSpeed>> read_device_speeds(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::not_found(fmt::format("cannot read '{}'", path));
  std::ostringstream text;
  text << file.rdbuf();
  auto speeds = parse_device_speeds(text.str());
  if (!speeds.ok()) return speeds.status().with_context(path);
  return speeds;
}

}  // namespace foliot
