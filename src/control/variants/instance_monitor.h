// InstanceMonitor: the state of one instance from its outcomes: how much it served in the last
// two seconds, and how much slower than profiled it was (the paper's Figure 4 and section 5).
//
// Overloaded: it serves its saturation rate, up to a tolerance. Interfered: not overloaded, and
// its EXECs take longer than profiled, in the mean. Each state is left at a lower bound than
// it is entered at, so that it does not flap.
//
// Threading: one owner. Time is an argument.
#ifndef FOLIOT_CONTROL_VARIANTS_INSTANCE_MONITOR_H_
#define FOLIOT_CONTROL_VARIANTS_INSTANCE_MONITOR_H_

#include <array>
#include <cstdint>

#include "control/variants/variant.h"
#include "control/variants/variant_registry.h"
#include "foundation/base/time.h"

namespace foliot {

struct MonitorOptions {
  // Shares of the saturation rate.
  double overloaded_from = 0.95;
  double overloaded_until = 0.85;
  // Measured by profiled durations.
  double interfered_from = 1.2;
  double interfered_until = 1.1;
};

class InstanceMonitor {
 public:
  static constexpr Duration kWindow = Duration::seconds(2);

  // `variant` outlives it. `now`: when the instance was loaded.
  InstanceMonitor(const Variant& variant, TimePoint now, const MonitorOptions& options = {});

  // In place of the variant's: of an instance that has several shares of its device.
  void set_saturation(double saturation) { saturation_ = saturation; }
  // An EXEC of so many rows ended at `now` and took so long. REQUIRES: `now` never goes back.
  void on_outcome(uint32_t rows, Duration took, TimePoint now);
  // REQUIRES: `now` never goes back.
  InstanceState state(TimePoint now);
  // Queries per second, in the window.
  double rate(TimePoint now);

 private:
  static constexpr int64_t kSlots = 8;
  struct Slot {
    int64_t number = -1;
    uint64_t rows = 0;
    Duration took;
    Duration profiled;
  };
  Slot sum(TimePoint now) const;
  int64_t slot_number(TimePoint now) const { return (now - begin_).nanoseconds() / (kWindow / kSlots).nanoseconds(); }
  // As long as the window holds slots that are over, and the current one.
  Duration observed(TimePoint now) const;

  const Variant& variant_;
  const TimePoint begin_;
  double saturation_;
  const MonitorOptions options_;
  InstanceState state_ = InstanceState::kActive;
  std::array<Slot, kSlots> slots_{};
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_VARIANTS_INSTANCE_MONITOR_H_
