// FailureDetector: finds the devices that can no longer be relied on, by their messages
// and the times at which they come.
//
// Five rules, each with its parameters below:
//   silent  A device must send something at all times (workers send heartbeats), and the
//           outcome of an action that has taken `overdue_factor` times as long as
//           expected. One that is behind by `suspect_after` is suspected: it
//           gets no work until a message comes. After `fence_after` it is lost.
//   slow    An EXEC is slow if it takes `slow_factor` times as long as its seed
//           profile and as the other devices do of late, and `slow_excess_min` longer.
//           A device is fenced when its last `slow_outcomes` EXECs were all slow and
//           lost `slow_excess` together, or the last few of them were and that has
//           gone on for `slow_time`. One stall of the machine makes one EXEC slow, a
//           wrong estimate makes none (seeds do not learn), and a cluster that is slow
//           as a whole has no device slower than the others. No more than half of
//           the devices are ever fenced for this: slow is better than not at all.
//   failing A device that reports errors is fenced when its last `failing_outcomes`
//           LOADs, or its last so many EXECs, all failed and those of most others did
//           not: provided that they were of `failing_models` models, or that no other
//           model has run on it since it joined. A model whose package is damaged there
//           is no reason to lose the others, and that it fails again and again proves
//           nothing: LoadBackOff keeps it away. No more than half of the devices are
//           fenced for being slow or failing.
//   late    A report is late if it comes `late_min` after its event. After
//           `late_reports` in a row, the last of them `late_factor` times as late as the
//           last one of most others, the device's link is a bad one: windows pass while
//           actions are on their way. It is suspected for `late_pause`, and each time
//           that the first report afterwards is late, too, for twice as long, up to
//           `late_pause_max`. No more than half of the devices at a time.
//   away    When the controller itself was away for longer than it sleeps, whatever
//           did not arrive meanwhile is ignored: all timeouts restart.
// A device that was slow or failing may come back after `back_off`, doubled each time up
// to `back_off_max`. It is then on probation: two slow EXECs in a row fence it again, or
// two failures of different models, until `probation_outcomes` EXECs were well and, if
// LOADs had failed, one of them was.
//
// A state machine like the controller, of which it is a part.
#ifndef FOLIOT_CONTROL_CONTROLLER_FAILURE_DETECTOR_H_
#define FOLIOT_CONTROL_CONTROLLER_FAILURE_DETECTOR_H_

#include <array>
#include <cstdint>
#include <vector>

#include "control/controller/cluster.h"
#include "foundation/base/bit_set.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/device_state.h"

namespace foliot {

struct FailureDetectorOptions {
  Duration check_interval = Duration::milliseconds(50);
  Duration suspect_after = Duration::milliseconds(150);
  Duration fence_after = Duration::milliseconds(500);
  int64_t overdue_factor = 4;
  Duration away_min = Duration::milliseconds(100);  // later than it wanted to be called

  double slow_factor = 4;
  Duration slow_excess_min = Duration::milliseconds(1);
  uint32_t slow_outcomes = 5;
  Duration slow_excess = Duration::milliseconds(100);
  uint32_t slow_outcomes_few = 3;
  Duration slow_time = Duration::seconds(1);

  // Errors come from devices, not from load, so few are enough; more than the requests of
  // one batch may return, so that no batch is the only evidence. Three models: one or two
  // damaged packages are nothing unusual, and cost less than the device would.
  uint32_t failing_outcomes = 5;
  uint32_t failing_models = 3;

  Duration late_min = Duration::milliseconds(20);
  double late_factor = 4;
  uint32_t late_reports = 3;
  Duration late_pause = Duration::milliseconds(200);
  Duration late_pause_max = Duration::seconds(2);

  Duration back_off = Duration::seconds(1);
  Duration back_off_max = Duration::seconds(60);
  uint32_t probation_slow_outcomes = 2;
  uint32_t probation_failures = 2;
  uint32_t probation_failing_models = 2;
  uint32_t probation_outcomes = 20;
};

class FailureDetector {
 public:
  // `cluster` outlives it.
  FailureDetector(const FailureDetectorOptions& options, const Cluster& cluster)
      : options_(options), cluster_(cluster) {}

  // Facts.
  void on_join(DeviceId device, TimePoint now);
  void on_lost(DeviceId device, DeviceTrouble trouble, TimePoint now);
  void on_message(DeviceId device, TimePoint now) { devices_[device.value()].last_message = now; }
  void on_exec(DeviceId device, Duration seed, Duration measured, TimePoint now);
  // A LOAD or an EXEC has begun and is over. on_exec() follows for an EXEC that did not fail.
  void on_result(DeviceId device, ActionType type, ModelId model, bool failed, TimePoint now);
  // Its id is another model's from now on.
  void forget_model(ModelId model);
  // An outcome, of what was over at `end`, is here.
  void on_report(DeviceId device, TimePoint end, TimePoint now);

  // What is to be thought of a device from now on: kUp, kSuspected or kLost.
  struct Finding {
    DeviceId device;
    DeviceState state;
    DeviceTrouble trouble;
  };
  // About those devices of which something else was thought before; once in
  // check_interval.
  std::vector<Finding> check(TimePoint now);
  TimePoint next_check() const { return next_check_; }

  // A lost device may not join before this.
  TimePoint may_join(DeviceId device) const;

 private:
  static constexpr uint32_t kRatios = 5;
  // In a row, of one type of action.
  struct Failures {
    uint32_t count = 0;
    std::vector<ModelId> models;  // different ones, as many as are asked for
  };
  struct Device {
    TimePoint last_message;
    // Of its last EXECs, how many times as long as their seeds they took.
    std::array<double, kRatios> ratios{};
    uint64_t execs = 0;
    TimePoint last_exec;
    // Slow EXECs in a row, since when, and what was lost by them.
    uint32_t slow = 0;
    TimePoint slow_since;
    Duration slow_excess;
    Failures load_failures;
    Failures exec_failures;
    BitSet models_that_run;  // whose last EXEC succeeded, and no LOAD has failed since
    // Of its last report; late ones in a row, and what they cost it.
    Duration lateness;
    uint32_t late = 0;
    Duration late_pause;
    TimePoint late_until;
    bool fenced_for_quality = false;  // for being slow or failing
    bool loads_unproven = false;      // it was fenced when its LOADs failed, and none has succeeded since
    uint32_t fences = 0;              // for quality, one after the other
    uint32_t normal = 0;              // EXECs on probation that were not slow and did not fail
    TimePoint may_join;
  };

  Finding find(const DeviceModel& device, TimePoint now) const;
  bool slow(const Device& device, TimePoint now) const;
  bool failing(const Device& device) const;
  bool failing(const Device& device, const Failures& failures) const;
  bool others_are_well(DeviceId device) const;
  bool others_suffice(DeviceId device) const;
  // How many times as long as their seeds EXECs take on the others; at least 1.
  double peers_ratio(DeviceId device, TimePoint now) const;
  bool others_are_prompt(DeviceId device) const;

  const FailureDetectorOptions options_;
  const Cluster& cluster_;
  std::vector<Device> devices_;  // by DeviceId
  TimePoint next_check_;
  TimePoint here_since_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_FAILURE_DETECTOR_H_
