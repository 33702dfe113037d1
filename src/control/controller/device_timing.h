// DeviceTiming: what was measured of how far a device is away and how well its EXECs
// keep to the plan, and what follows from it for the next one:
//
//   delivery   from sending an INFER until its EXEC could begin: the link and INPUT
//   report     from the end of an EXEC until the controller knows of it: OUTPUT and the link
//   lateness   from the instant at which the plan expected an EXEC to end until its
//              outcome was here: the error of predictions, what the worker adds, and the
//              way back
//
// margin() is so long that a request whose EXEC is planned to end just that much before its
// deadline is late twice in 1,000 times; or more often, where the tail is long beside the time that
// requests have. Refusing all that might be late costs as many as come in that part of the time, which
// would be all of them where one EXEC in ten takes ten times as long as the others; so the share
// that may be late is the one with which refusals and late answers together are the fewest. More than
// that share of the last EXECs are a change only if chance does not explain them (unlikely_count.h), and
// an EXEC that waited for a slow one before it counts without that time. lookahead() is how far ahead a device
// has to be given work so that it is never idle for want of it. Both begin with a
// prior, and follow what changes within some outcomes.
//
// Where the quantiles are so large that requests are refused although the device is idle,
// nothing would be measured any more, and a promise that is kept by refusing everything
// is none: trust in them shrinks with each such refusal, and grows back with each outcome,
// faster where one came later than was allowed for. Where nothing was measured for a
// second, all is forgotten: a device that was slow for a while gets a new chance.
//
// Constant cost for each action. Same events, same answers.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_DEVICE_TIMING_H_
#define FOLIOT_CONTROL_CONTROLLER_DEVICE_TIMING_H_

#include <optional>
#include <vector>

#include "foundation/base/tail_window.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"

namespace foliot {

struct DeviceTimingOptions {
  Duration margin_min;
  // Instead of what is measured: to compare with, and for tests of something else.
  std::optional<Duration> margin_fixed{};
};

class DeviceTiming {
 public:
  explicit DeviceTiming(const DeviceTimingOptions& options = {});

  // An INFER was sent, and its EXEC is planned to end then. `time`: what its first request had from its
  // arrival to its deadline; nullopt if it has none.
  void on_sent(ActionId action, TimePoint planned_end, std::optional<Duration> time, TimePoint now);
  // It is over. True if what follows from it all may have changed. `apart`: what of the time until now is reserved for
  // its requests apart from the margin, and is no lateness.
  bool on_outcome(const Action& action, const Outcome& outcome, TimePoint now, Duration apart = {});
  // A request that came at `arrival`, and could be met for so long, was refused, with an EXEC
  // that takes so long. If the device had nothing to do all the while, it was refused for
  // what is measured alone, and where it might well have been met, that is trusted less.
  // True if what follows from it all may have changed.
  bool on_refusal(TimePoint arrival, Duration time, Duration exec, TimePoint now);

  Duration margin() const { return margin_; }
  // Half of the EXECs end so much later than planned, or less; below zero where expectations are careful.
  Duration usual_lateness() const { return lateness_.median(); }
  Duration lookahead() const { return lookahead_; }
  // What an action that is sent takes to get there, and an outcome to get here, at most,
  // but for one in a hundred.
  Duration delivery() const { return delivery_; }
  Duration report() const { return report_; }
  // Half of the actions take so long or less to get there.
  Duration usual_delivery() const { return deliveries_.median(); }

 private:
  struct Sent {
    ActionId action;
    TimePoint at;
    TimePoint planned_end;
  };
  struct Margin {
    Duration time;
    double late_share;  // of the EXECs, later by more than that
  };
  Duration waited(const Action& action, const Outcome& outcome, const Sent& sent) const;
  void forget(TimePoint now);
  void update();
  Margin cheapest_margin() const;

  DeviceTimingOptions options_;
  std::vector<Sent> sent_;  // without an outcome, oldest first
  TailWindow deliveries_;
  TailWindow reports_;
  TailWindow lateness_;
  // Mean of 1 / the time in seconds that requests have: the part of it that a second of margin takes.
  double urgency_ = 0;
  // Of what the measured quantiles exceed the medians by, this part counts.
  double trust_ = 1;
  TimePoint last_outcome_;
  TimePoint last_end_;    // of an EXEC
  TimePoint forgotten_;   // last
  Duration believed_;     // after the last outcome
  TimePoint next_doubt_;  // not before
  Duration margin_;
  Duration lookahead_;
  Duration delivery_;
  Duration report_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_DEVICE_TIMING_H_
