#include "foundation/platform/core_count.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "foundation/platform/control_group.h"
#include "foundation/platform/core_set.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

Descriptor open_file(const std::filesystem::path& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The first two numbers of a file: "200000 100000", "100000", "max 100000"; 0 for each that is none.
std::array<int64_t, 2> numbers_in(const Descriptor& file) {
  std::array<char, 64> text{};
  if (!file.is_open() || ::pread(file.number(), text.data(), text.size() - 1, 0) <= 0) return {};
  char* rest = nullptr;
  const int64_t first = std::strtoll(text.data(), &rest, 10);
  return {first, std::strtoll(rest, nullptr, 10)};
}

}  // namespace

// A group's: cpu.max of version 2, or quota and period of version 1.
struct CoreCount::Quota {
  Descriptor quota;
  Descriptor period;  // not open in version 2, whose file has both
};

CoreCount::CoreCount(const std::filesystem::path& root) {
  std::vector<Quota> quotas;
  for (const ControlGroup& group : control_groups(root, "cpu")) {
    Quota it{.quota = open_file(group.folder / (group.version == 2 ? "cpu.max" : "cpu.cfs_quota_us")), .period = {}};
    if (!it.quota.is_open()) continue;
    if (group.version != 2) it.period = open_file(group.folder / "cpu.cfs_period_us");
    quotas.push_back(std::move(it));
  }
  quotas_ = std::make_shared<const std::vector<Quota>>(std::move(quotas));
}

uint32_t CoreCount::granted() const {
  int64_t cores = kCoresMax;
  for (const Quota& it : *quotas_) {
    const auto [quota, next] = numbers_in(it.quota);
    const int64_t period = it.period.is_open() ? numbers_in(it.period)[0] : next;
    if (quota > 0 && period > 0) cores = std::min(cores, quota / period + (quota % period > 0 ? 1 : 0));
  }
  return static_cast<uint32_t>(std::max<int64_t>(cores, 1));
}

uint32_t CoreCount::of(std::span<const pid_t> threads) const {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const pid_t thread : threads) {
    cpu_set_t its;
    CPU_ZERO(&its);
    if (::sched_getaffinity(thread, sizeof(its), &its) == 0) CPU_OR(&all, &all, &its);
  }
  return std::clamp<uint32_t>(static_cast<uint32_t>(CPU_COUNT(&all)), 1, granted());
}

}  // namespace foliot
