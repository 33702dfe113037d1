// Fault: a failure of one device of a simulated cluster, its time and its length; and
// schedules of faults drawn at random.
#ifndef FOLIOT_VIRTUAL_WORLD_FAULT_H_
#define FOLIOT_VIRTUAL_WORLD_FAULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

enum class FaultKind : uint8_t {
  kKill,       // the worker dies at once; at the end another one comes, with empty pages
  kFreeze,     // it stands still, as by SIGSTOP, and goes on
  kSlow,       // EXEC and LOAD take `factor` times as long
  kDelay,      // every message takes `delay` longer
  kPartition,  // no message gets through; those under way arrive when it is over
  kDrain,      // it announces that it leaves; at the end another one comes, with empty pages
  kFail,       // LOADs, EXECs or both fail as soon as they begin
  kAway,       // the controller gives it no work: the least that any fault costs
};
inline constexpr FaultKind kFaultKindLast = FaultKind::kAway;
std::string_view to_string(FaultKind kind);  // "kill", "freeze", ...
std::optional<FaultKind> parse_fault_kind(std::string_view name);

struct Fault {
  FaultKind kind = FaultKind::kKill;
  uint32_t device = 0;
  Duration at;  // since the first request
  Duration length;
  double factor = 10;                           // kSlow: above 1
  Duration delay = Duration::milliseconds(50);  // kDelay: above 0
  bool loads_fail = true;                       // kFail: these, EXECs, or both
  bool execs_fail = true;

  Duration end() const { return at + length; }
};

// How many, of which kinds, and how long.
struct RandomFaults {
  uint32_t count = 0;
  std::vector<FaultKind> kinds{FaultKind::kKill,      FaultKind::kFreeze, FaultKind::kSlow, FaultKind::kDelay,
                               FaultKind::kPartition, FaultKind::kDrain,  FaultKind::kFail};
  Duration length_min = Duration::milliseconds(50);
  Duration length_max = Duration::seconds(2);
};

// Errors: kInvalidArgument naming the fault by its number, from 1: a device that is
// not there, a length that is not above 0, nothing that fails, an end after `duration`, two at a time on
// one device.
Status check_faults(const std::vector<Fault>& faults, uint32_t devices, Duration duration);

// Faults drawn between `from` and `to`, one after another with pauses of 1 s at
// least, so that there is something to recover from; as many of `count` as fit. Of
// those of kFail a third each fail LOADs, EXECs and both.
std::vector<Fault> draw_faults(const RandomFaults& options, uint32_t devices, Duration from, Duration to,
                               Random random);

// The same faults as if each had been announced: its device is away meanwhile and
// loses nothing. What is answered then is what could still be met.
std::vector<Fault> announced(std::vector<Fault> faults);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_FAULT_H_
