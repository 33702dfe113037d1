#include "virtual/world/fault.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr Duration kPause = Duration::seconds(1);

}  // namespace

std::string_view to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill: return "kill";
    case FaultKind::kFreeze: return "freeze";
    case FaultKind::kSlow: return "slow";
    case FaultKind::kDelay: return "delay";
    case FaultKind::kPartition: return "partition";
    case FaultKind::kDrain: return "drain";
    case FaultKind::kFail: return "fail";
    case FaultKind::kAway: return "away";
  }
  FOLIOT_CHECK(false);
}

std::optional<FaultKind> parse_fault_kind(std::string_view name) {
  for (uint8_t kind = 0; kind <= static_cast<uint8_t>(kFaultKindLast); ++kind) {
    if (to_string(static_cast<FaultKind>(kind)) == name) return static_cast<FaultKind>(kind);
  }
  return std::nullopt;
}

Status check_faults(const std::vector<Fault>& faults, uint32_t devices, Duration duration) {
  for (size_t i = 0; i < faults.size(); ++i) {
    const Fault& fault = faults[i];
    const auto wrong = [&](const std::string& what) {
      return Status::invalid_argument(fmt::format("fault {} ({}): {}", i + 1, to_string(fault.kind), what));
    };
    if (fault.device >= devices)
      return wrong(fmt::format("there is no device {}; there are {}", fault.device, devices));
    if (fault.length <= Duration()) return wrong("length must be above 0");
    if (fault.at < Duration() || fault.end() > duration) return wrong("it must lie within the duration");
    if (fault.kind == FaultKind::kSlow && !(fault.factor > 1)) return wrong("factor must be above 1");
    if (fault.kind == FaultKind::kDelay && fault.delay <= Duration()) return wrong("delay must be above 0");
    if (fault.kind == FaultKind::kFail && !fault.loads_fail && !fault.execs_fail) {
      return wrong("LOADs, EXECs or both must fail");
    }
    for (size_t j = 0; j < i; ++j) {
      if (faults[j].device == fault.device && faults[j].at < fault.end() && fault.at < faults[j].end()) {
        return wrong(fmt::format("fault {} of the same device is not over", j + 1));
      }
    }
  }
  return Status();
}

std::vector<Fault> draw_faults(const RandomFaults& options, uint32_t devices, Duration from, Duration to,
                               Random random) {
  std::vector<Fault> faults;
  for (uint32_t i = 0; i < options.count; ++i) {
    Fault fault{.kind = options.kinds[random.below(options.kinds.size())],
                .device = static_cast<uint32_t>(random.below(devices)),
                .at = from + kPause.scaled(0.5 * random.uniform()),
                .length = options.length_min + (options.length_max - options.length_min).scaled(random.uniform())};
    if (fault.kind == FaultKind::kFail) {
      const uint64_t which = random.below(3);
      fault.loads_fail = which != 0;
      fault.execs_fail = which != 1;
    }
    if (fault.end() + kPause > to) break;
    faults.push_back(fault);
    from = fault.end() + kPause;
  }
  return faults;
}

std::vector<Fault> announced(std::vector<Fault> faults) {
  for (Fault& fault : faults) fault.kind = FaultKind::kAway;
  return faults;
}

}  // namespace foliot
