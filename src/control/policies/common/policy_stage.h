// PolicyStage: for tests of one policy: passes it facts by hand and shows its
// proposals. The models of TestDispatcher: LOAD takes 8 ms; EXEC of 1, 2 and 4 rows
// takes 2, 3 and 5 ms.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_POLICY_STAGE_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_POLICY_STAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "control/policies/common/test_dispatcher.h"

namespace foliot {

class PolicyStage {
 public:
  using Factory = std::function<std::unique_ptr<Policy>(const Cluster&)>;
  // `durations`: by default those of the Cluster.
  explicit PolicyStage(const Factory& make, uint32_t devices = 1, uint32_t pages_per_device = 8,
                       std::unique_ptr<DurationModel> durations = nullptr)
      : dispatcher_(devices, pages_per_device, std::move(durations)), policy_(make(dispatcher_.cluster())) {}

  static TimePoint at(double ms) { return TimePoint() + Duration::from_milliseconds(ms); }

  // A model of one page and so many operators, with the next id; loaded on these devices.
  ModelId add_model(const std::vector<uint32_t>& loaded_on = {0}, uint32_t operators = 1,
                    std::optional<Duration> batch_delay = Duration()) {
    const ModelInfo& model = dispatcher_.add_model(models_++, 1, operators, batch_delay);
    policy_->on_model_added(model, at(0));
    for (const uint32_t device : loaded_on) {
      dispatcher_.load(DeviceId(device), model.id, {});
      over(dispatcher_.finish(), Duration());
    }
    dispatcher_.actions.clear();
    return model.id;
  }

  // EXEC of this batch size (by default of one row) takes so long on every device.
  void set_exec(ModelId model, Duration exec, uint32_t batch_index = 0, uint32_t width_index = 0) {
    dispatcher_.set_exec(model, exec, batch_index, width_index);
  }

  // An action takes so long until it is there.
  void set_delivery(uint32_t device, double ms) {
    dispatcher_.set_delivery(DeviceId(device), Duration::from_milliseconds(ms));
  }

  // The ways to all devices are measured, and what is expected of them at first holds.
  void measure_ways() { dispatcher_.measure_ways(); }

  // A request that comes at `arrival` and is due at `deadline` (ms; below zero: best effort).
  RequestId request(ModelId model, double arrival, double deadline, bool offline = false) {
    const Request request{.id = RequestId(next_request_),
                          .model = model,
                          .arrival = at(arrival),
                          .deadline = deadline < 0 ? TimePoint::infinite_future() : at(deadline),
                          .sequence = next_request_,
                          .offline = offline};
    ++next_request_;
    policy_->on_request(request, request.arrival);
    return request.id;
  }

  RequestId offline_request(ModelId model, double arrival) { return request(model, arrival, -1, /*offline=*/true); }

  // Lets the policy decide at this time; returns the actions that it sent.
  std::vector<Action> plan(double when) {
    dispatcher_.now = at(when);
    dispatcher_.actions.clear();
    dispatcher_.refused.clear();
    for (const DeviceId device : dispatcher_.take_ended_back_offs()) {
      policy_->on_device_changed(device, dispatcher_.now);
    }
    wake_ = policy_->plan(at(when), dispatcher_);
    return dispatcher_.actions;
  }
  // When it wanted to be woken after the last plan(), in ms.
  double wake() const { return (wake_ - TimePoint()).to_milliseconds(); }
  // LOADs that it proposed within a back-off.
  uint32_t backing_off() const { return dispatcher_.backing_off; }
  const std::vector<RequestId>& refused() const { return dispatcher_.refused; }

  // An action is over at `when`, after `duration`.
  void finish(const Action& action, double when, Duration duration) {
    dispatcher_.now = at(when);
    dispatcher_.finish(action);
    over(action, duration);
  }

  // A LOAD fails at `when`.
  void fail(const Action& load, double when) {
    dispatcher_.now = at(when);
    dispatcher_.fail_load(load);
    over(load, Duration(), OutcomeStatus::kFailed);
  }

  // The device is suspected: it keeps what it has, and is given nothing.
  void suspect(uint32_t device, double when) { set_state(device, DeviceState::kSuspected, when); }
  void recover(uint32_t device, double when) { set_state(device, DeviceState::kUp, when); }
  // It leaves: it ends what it has.
  void drain(uint32_t device, double when) { set_state(device, DeviceState::kDraining, when); }
  // The device is lost with nothing outstanding, and joins again with empty pages.
  void restart(uint32_t device, double when) {
    dispatcher_.now = at(when);
    const uint32_t pages = dispatcher_.lose(DeviceId(device));
    policy_->on_device_changed(DeviceId(device), at(when));
    dispatcher_.join(DeviceId(device), pages);
    policy_->on_device_changed(DeviceId(device), at(when));
  }

  // The device has so many lanes and contexts from now on. Before the first model.
  void set_lane_count(uint32_t device, uint32_t lane_count, uint32_t context_count = 1) {
    dispatcher_.set_lane_count(DeviceId(device), lane_count, context_count);
    policy_->on_device_changed(DeviceId(device), at(0));
  }

  // The ids of a batch's requests.
  static std::vector<RequestId> rows(const Action& action) {
    std::vector<RequestId> ids;
    for (const BatchRows::Row& row : action.rows) ids.push_back(row.request);
    return ids;
  }

 private:
  void set_state(uint32_t device, DeviceState state, double when) {
    dispatcher_.set_state(DeviceId(device), state);
    policy_->on_device_changed(DeviceId(device), at(when));
  }
  void over(const Action& action, Duration duration, OutcomeStatus status = OutcomeStatus::kDone) {
    const Outcome outcome{.action = action.id,
                          .type = action.type,
                          .device = action.device,
                          .model = action.model,
                          .status = status,
                          .end = dispatcher_.now,
                          .duration = duration};
    policy_->on_outcome(action, outcome, dispatcher_.now);
  }

  TestDispatcher dispatcher_;
  std::unique_ptr<Policy> policy_;
  TimePoint wake_;
  uint32_t models_ = 0;
  uint64_t next_request_ = 1;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_POLICY_STAGE_H_
