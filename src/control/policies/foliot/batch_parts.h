// BatchParts: batches in parts of a few milliseconds, so that a request that comes meanwhile waits for a part and not
// for a batch. Between two parts the device runs whatever else is to go first. So run offline batches (what INFaaS,
// section 4.3.2, does by leaving models out of offline work above a share of busy time, operator ranges do without a
// threshold), and batches with a deadline that would make requests of other models late.
//
// A device divides them that has a context for the unfinished batch beside that of other EXECs. Of several lanes each
// part takes all. It has at most one such batch. An offline one is finished as soon as it has
// not gone on for a second, since it holds memory and keeps its model loaded; another one ends by its deadline.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_PARTS_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_PARTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/foliot/batch.h"

namespace foliot::foliot_policy {

class BatchParts {
 public:
  // A batch of which some parts are over or sent.
  struct Unfinished {
    ExecShape shape;
    TimePoint end_by;   // for its first request; infinite if it is offline
    uint32_t next = 0;  // operator
    bool runs = true;   // up to before that
    TimePoint since;    // when it stopped
    bool offline() const { return end_by.is_infinite(); }
  };

  explicit BatchParts(const Cluster& cluster) : cluster_(cluster) {}

  // Whether the device could divide a batch, had it none.
  bool may_divide(DeviceId device) const;
  // The longest part that a batch of this shape is run in: an operator at least.
  Duration longest_part(const ExecShape& shape) const;
  // An offline batch, smaller where a part of it would take too long, if the device can run it in more parts than one.
  // REQUIRES: it has none.
  std::optional<Batch> divide(DeviceId device, const Batch& batch) const;
  // Begins with the first part. REQUIRES: may_divide() and no unfinished().
  Verdict begin(DeviceId device, const Batch& batch, std::span<const RequestId> requests, Window window,
                Dispatcher& dispatcher);
  // nullptr if the device has none.
  const Unfinished* unfinished(DeviceId device) const {
    return device.value() < batches_.size() && batches_[device.value()] ? &*batches_[device.value()] : nullptr;
  }
  bool may_resume(DeviceId device) const;
  // Whether that should be before anything else.
  bool overdue(DeviceId device, TimePoint now) const;
  // How long it takes to its end if nothing runs between its parts. REQUIRES: unfinished().
  Duration left(DeviceId device) const;
  // The part of that in which the device idles between parts, of a batch of this shape.
  Duration time_between(const ExecShape& shape) const;
  // Goes on with the next part. REQUIRES: may_resume().
  Verdict resume(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  // Gives it up, as too late. REQUIRES: may_resume().
  Verdict abandon(DeviceId device, TimePoint end, Dispatcher& dispatcher);

  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now);
  // It is lost, and what it had.
  void on_lost(DeviceId device);

 private:
  // What a part may take.
  Duration longest(DeviceId device) const;
  // From operator `first` on.
  OperatorRange part(const ExecShape& shape, uint32_t first) const;
  Duration expected(const ExecShape& shape, OperatorRange range) const;

  const Cluster& cluster_;
  std::vector<std::optional<Unfinished>> batches_;  // by device
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_PARTS_H_
