#include "control/controller/proposal_check.h"

#include <algorithm>
#include <string_view>

#include "foundation/base/check.h"

namespace foliot {
namespace {

bool is_past(Window window, TimePoint now) { return window.latest < window.earliest || window.latest < now; }

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAccepted: return "accepted";
    case Verdict::kUnknown: return "unknown";
    case Verdict::kNotRunnable: return "not runnable";
    case Verdict::kNotPlaced: return "not placed";
    case Verdict::kAlreadyPlaced: return "already placed";
    case Verdict::kNoPages: return "no pages";
    case Verdict::kBackingOff: return "backing off";
    case Verdict::kInUse: return "in use";
    case Verdict::kBusy: return "busy";
    case Verdict::kBadWindow: return "bad window";
    case Verdict::kBadLanes: return "bad lanes";
    case Verdict::kBadPart: return "bad part";
    case Verdict::kAgainstTargets: return "against targets";
  }
  FOLIOT_CHECK(false);
}

Verdict ProposalCheck::load(DeviceId device, ModelId model, Window window, TimePoint now) const {
  if (!has_device(device) || !cluster_.is_offered(model)) return Verdict::kUnknown;
  if (cluster_.runnable(device, model) == nullptr) return Verdict::kNotRunnable;
  const DeviceModel& d = cluster_.device(device);
  if (d.residency(model) != Residency::kAbsent) return Verdict::kAlreadyPlaced;
  if (!cluster_.may_place(device, model) || cluster_.held[model.value()] >= cluster_.target(model).copies_most) {
    return Verdict::kAgainstTargets;
  }
  if (cluster_.pages(device, model) > d.free_pages()) return Verdict::kNoPages;
  if (!cluster_.may_load(device, model, now)) return Verdict::kBackingOff;
  if (d.loads_outstanding() >= cluster_.loads_outstanding_max) return Verdict::kBusy;
  return is_past(window, now) ? Verdict::kBadWindow : Verdict::kAccepted;
}

Verdict ProposalCheck::unload(DeviceId device, ModelId model) const {
  if (!has_device(device) || !cluster_.has_model(model)) return Verdict::kUnknown;
  const DeviceModel& d = cluster_.device(device);
  if (d.held(model) == Residency::kAbsent) return Verdict::kNotPlaced;
  if (d.held(model) == Residency::kLoading || d.infers_outstanding(model) > 0) return Verdict::kInUse;
  return Verdict::kAccepted;
}

Verdict ProposalCheck::retire(DeviceId device, ModelId model) const {
  if (!has_device(device) || !cluster_.has_model(model)) return Verdict::kUnknown;
  const Residency residency = cluster_.device(device).residency(model);
  if (residency == Residency::kAbsent) return Verdict::kNotPlaced;
  const bool loaded = residency == Residency::kLoaded;
  return loaded && !cluster_.may_evict(model) ? Verdict::kAgainstTargets : Verdict::kAccepted;
}

Verdict ProposalCheck::infer(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, const ExecPart& part,
                             std::span<const RequestId> requests, Window window, TimePoint now) const {
  if (!has_device(device) || !cluster_.has_model(model)) return Verdict::kUnknown;
  if (!cluster_.has_bucket(model, bucket) || requests.empty() || requests.size() > batch_size) {
    return Verdict::kUnknown;
  }
  const std::span<const uint32_t> allowed = cluster_.batch_sizes(device, model);
  if (!cluster_.may_place(device, model) || std::ranges::find(allowed, batch_size) == allowed.end()) {
    const Runnable* runnable = cluster_.runnable(device, model);
    if (runnable == nullptr) return Verdict::kNotRunnable;
    return std::ranges::count(runnable->batch_sizes, batch_size) > 0 ? Verdict::kAgainstTargets : Verdict::kUnknown;
  }
  for (const RequestId id : requests) {
    const RequestTable::Entry* found = requests_.find_waiting(id);
    if (found == nullptr || found->request.model != model || found->request.bucket != bucket) return Verdict::kUnknown;
  }
  const DeviceModel& d = cluster_.device(device);
  if (d.residency(model) == Residency::kAbsent) return Verdict::kNotPlaced;
  const bool in_plan = part.range.ends() || part.range.last < cluster_.runnable(device, model)->operator_count();
  if (!in_plan || !d.contexts().may_begin(part.context, part.range)) return Verdict::kBadPart;
  return exec(d, part.lanes, window, now);
}

Verdict ProposalCheck::resume(DeviceId device, ContextIndex context, uint32_t last, LaneInterval lanes, Window window,
                              TimePoint now) const {
  if (!has_device(device)) return Verdict::kUnknown;
  const DeviceModel& d = cluster_.device(device);
  const Action* unfinished = d.contexts().unfinished(context);
  if (unfinished == nullptr || last <= unfinished->range.last) return Verdict::kBadPart;
  const bool in_plan =
      last == OperatorRange::kEnd || last < cluster_.runnable(device, unfinished->model)->operator_count();
  if (!in_plan) return Verdict::kBadPart;
  const bool goes_on = d.up() || d.state() == DeviceState::kDraining;
  return goes_on ? exec(d, lanes, window, now) : Verdict::kNotPlaced;
}

Verdict ProposalCheck::abandon(DeviceId device, ContextIndex context) const {
  if (!has_device(device)) return Verdict::kUnknown;
  return cluster_.device(device).contexts().unfinished(context) == nullptr ? Verdict::kBadPart : Verdict::kAccepted;
}

Verdict ProposalCheck::exec(const DeviceModel& device, LaneInterval lanes, Window window, TimePoint now) const {
  if (!is_lane_interval(lanes, device.lane_count())) return Verdict::kBadLanes;
  if (device.infers_outstanding() >= cluster_.infers_outstanding_max) return Verdict::kBusy;
  return is_past(window, now) ? Verdict::kBadWindow : Verdict::kAccepted;
}

}  // namespace foliot
