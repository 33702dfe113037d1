// OfflineParts: offline batches in parts of a few milliseconds, so that a request that comes meanwhile waits for a
// part and not for a batch. Between two parts the device runs whatever else there is; what INFaaS (section 4.3.2) does
// by leaving models out of offline work above a share of busy time, operator ranges do without a threshold.
//
// A device divides them that has a context for the unfinished batch beside that of other EXECs, and one lane: of
// several lanes another one is free sooner. It has at most one such batch, which is finished as soon as it has not
// gone on for a second, since it holds memory and keeps its model loaded.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_OFFLINE_PARTS_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_OFFLINE_PARTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/foliot/batch_selection.h"

namespace foliot::foliot_policy {

class OfflineParts {
 public:
  explicit OfflineParts(const Cluster& cluster) : cluster_(cluster) {}

  // The batch, smaller where a part of it would take too long, if the device can run it in more parts than one.
  // REQUIRES: it has no batch.
  std::optional<Batch> divide(DeviceId device, const Batch& batch) const;
  // Begins with the first part. REQUIRES: divide() made it.
  Verdict begin(DeviceId device, const Batch& batch, std::span<const RequestId> requests, Window window,
                Dispatcher& dispatcher);
  // Whether a part of a batch runs on the device, or the next one could.
  bool runs(DeviceId device) const { return batch(device) != nullptr && batch(device)->runs; }
  bool may_resume(DeviceId device) const;
  // Whether that should be before anything else.
  bool overdue(DeviceId device, TimePoint now) const;
  // Goes on with the next part. REQUIRES: may_resume().
  Verdict resume(DeviceId device, TimePoint now, Dispatcher& dispatcher);

  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now);
  // It is lost, and what it had.
  void on_lost(DeviceId device);

 private:
  struct Unfinished {
    ExecShape shape;
    uint32_t next = 0;  // operator
    bool runs = true;   // up to before that
    TimePoint since;    // when it stopped
  };
  const Unfinished* batch(DeviceId device) const {
    return device.value() < batches_.size() && batches_[device.value()] ? &*batches_[device.value()] : nullptr;
  }
  // What a part may take.
  Duration longest(DeviceId device) const;
  // From operator `first` on.
  OperatorRange part(const ExecShape& shape, uint32_t first) const;
  Duration expected(const ExecShape& shape, OperatorRange range) const;

  const Cluster& cluster_;
  std::vector<std::optional<Unfinished>> batches_;  // by device
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_OFFLINE_PARTS_H_
