// ProposalCheck: whether a policy's proposal may be sent, by the facts of the cluster. What it turns down is
// a bug of the policy, not of a client.
//
// Threading: not thread-safe; the controller's.
#ifndef FOLIOT_CONTROL_CONTROLLER_PROPOSAL_CHECK_H_
#define FOLIOT_CONTROL_CONTROLLER_PROPOSAL_CHECK_H_

#include <cstdint>
#include <span>

#include "control/controller/cluster.h"
#include "control/controller/policy.h"
#include "control/controller/request_table.h"
#include "foundation/base/time.h"

namespace foliot {

class ProposalCheck {
 public:
  // Both outlive this.
  ProposalCheck(const Cluster& cluster, const RequestTable& requests) : cluster_(cluster), requests_(requests) {}

  Verdict load(DeviceId device, ModelId model, Window window, TimePoint now) const;
  // Whether nothing that was sent needs the copy; targets are not asked.
  Verdict unload(DeviceId device, ModelId model) const;
  Verdict retire(DeviceId device, ModelId model) const;
  Verdict infer(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, const ExecPart& part,
                std::span<const RequestId> requests, Window window, TimePoint now) const;
  Verdict resume(DeviceId device, ContextIndex context, uint32_t last, LaneInterval lanes, Window window,
                 TimePoint now) const;
  Verdict abandon(DeviceId device, ContextIndex context) const;

 private:
  bool has_device(DeviceId device) const { return device.value() < cluster_.devices.size(); }
  Verdict exec(const DeviceModel& device, LaneInterval lanes, Window window, TimePoint now) const;

  const Cluster& cluster_;
  const RequestTable& requests_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_PROPOSAL_CHECK_H_
