#include "foundation/platform/processor.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "foundation/platform/control_group.h"
#include "foundation/platform/core_set.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// Processors' worth of time that a group grants; infinity: no limit.
double granted(const ControlGroup& group) {
  double quota = -1, period = 0;
  if (group.version == 2) {
    std::ifstream stream(group.folder / "cpu.max");  // "200000 100000", "max 100000"
    if (!(stream >> quota >> period)) return std::numeric_limits<double>::infinity();
  } else {
    quota = static_cast<double>(number_in(group.folder / "cpu.cfs_quota_us").value_or(-1));
    period = static_cast<double>(number_in(group.folder / "cpu.cfs_period_us").value_or(0));
  }
  return quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

}  // namespace

uint32_t usable_processors() { return usable_processors("/"); }
std::string processor_name() { return processor_name("/"); }

uint32_t usable_processors(const fs::path& root) {
  return std::min(std::max(1u, std::thread::hardware_concurrency()), granted_processors(root));
}

uint32_t granted_processors(const fs::path& root) {
  double processors = kCoresMax;
  for (const ControlGroup& group : control_groups(root, "cpu")) processors = std::min(processors, granted(group));
  return static_cast<uint32_t>(std::max(1.0, std::ceil(processors)));
}

std::string processor_name(const fs::path& root) {
  std::ifstream stream(root / "proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace foliot
