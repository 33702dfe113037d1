// ClockworkPolicy: the policy of Clockwork, section 5.3, and nothing beyond it:
// the reference that other policies are compared with.
//
// INFER: whenever a device has less than `lookahead` of EXEC work, take the
// strategy (model, batch size) whose last possible start is the earliest, as long
// as that has not passed and its batch is full; enlarge the batch while a larger
// one is filled and still meets the deadline of its head; send it.
// LOAD: load_planner.h.
//
// The cost of a request or a decision grows with the devices that hold its model
// and with the logarithm of what is queued, not with the models that exist.
#ifndef FOLIOT_CONTROL_POLICIES_CLOCKWORK_CLOCKWORK_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_CLOCKWORK_CLOCKWORK_POLICY_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/clockwork/load_planner.h"
#include "control/policies/common/agenda.h"
#include "control/policies/common/request_queue.h"
#include "control/policies/common/residents.h"
#include "control/policies/common/target_keeper.h"

namespace foliot::clockwork {

struct ClockworkOptions {
  // At least; where the way there takes longer, as much as is measured.
  Duration lookahead = Duration::milliseconds(5);
};

class ClockworkPolicy : public Policy, private TargetKeeper::Owner {
 public:
  ClockworkPolicy(const Cluster& cluster, const ClockworkOptions& options);

  void on_request(const Request& request, TimePoint now) override;
  void on_withdrawn(const Request& request, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_device_changed(DeviceId device, TimePoint now) override;
  void on_target_changed(ModelId model, TimePoint now) override;
  void on_model_added(const ModelInfo& model, TimePoint now) override;
  void on_model_removed(ModelId model, TimePoint now) override;
  TimePoint plan(TimePoint now, Dispatcher& dispatcher) override;

 private:
  bool load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher) override {
    return loads_.load_model(device, model, now, dispatcher);
  }
  void on_retired(DeviceId device, ModelId /*model*/, TimePoint now) override { update_device(device, now); }

  // A batch that could be run: the first to have to start comes first, and of
  // those that may wait forever (best effort) the one that waits longest.
  struct Strategy {
    TimePoint latest;  // but for the margin
    RequestQueue::Place head;
    QueueKey queue;
    uint32_t batch_index = 0;
    auto operator<=>(const Strategy&) const = default;
  };
  // [batch index]: what stands for a queue in the strategies of one device.
  using Slots = std::vector<std::optional<Strategy>>;
  // The device that would run one row first.
  struct Fastest {
    Duration duration;  // of EXEC
    DeviceId device;
    uint64_t revision;  // of the estimates
  };
  struct QueueState {
    RequestQueue requests;
    std::vector<Slots> slots;         // by device
    std::vector<DeviceId> placed_on;  // the devices on which slots may be filled
    uint32_t slots_filled = 0;
    std::optional<TimePoint> expiry;  // what stands for it in expiries_
    std::optional<Fastest> fastest;   // as far as known
  };
  struct ModelState {
    std::vector<QueueState> queues;     // by bucket
    std::optional<TimePoint> crossing;  // what stands for it in crossings_
  };

  QueueState& queue(QueueKey key) { return models_[key.model.value()].queues[key.bucket.value()]; }
  std::set<Strategy>& strategies(DeviceId device);
  Duration exec(DeviceId device, QueueKey key, uint32_t batch_index) const;
  Duration lookahead(DeviceId device) const;
  // EXEC of one row on the fastest device, with the least margin.
  Duration fastest(QueueKey key);
  // What is expected of one device's EXECs of the queue may have changed.
  void note_measured(DeviceId device, QueueKey key);

  // It holds other models than it did.
  void update_device(DeviceId device, TimePoint now);
  void update_queue(QueueKey key, TimePoint now);
  // Takes what stands for the queue from all devices.
  void clear_slots(QueueState& state);
  void fill_slots(QueueKey key, TimePoint now);
  void update_model(ModelId model, TimePoint now);
  void update_strategy(DeviceId device, QueueKey key, uint32_t batch_index, TimePoint start);
  void fill_slot(DeviceId device, QueueState& state, std::optional<Strategy>& slot,
                 const std::optional<Strategy>& next);
  void update_expiry(QueueKey key);
  // What the queued requests of a model that a LOAD could still help ask for.
  void update_demand(ModelId model, TimePoint now);

  void refuse_expired(TimePoint now, Dispatcher& dispatcher);
  void serve(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  // False if there is nothing that can be run on the device now.
  bool plan_infer(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  bool send_batch(DeviceId device, const Strategy& strategy, TimePoint start, TimePoint now, Dispatcher& dispatcher);

  const Cluster& cluster_;
  ClockworkOptions options_;
  std::vector<ModelState> models_;              // by id
  std::vector<std::set<Strategy>> strategies_;  // by device
  std::set<std::pair<TimePoint, QueueKey>> expiries_;
  // When a LOAD will no longer help the first request that it could help now.
  std::set<std::pair<TimePoint, ModelId>> crossings_;
  Agenda agenda_;
  Residents residents_;
  LoadPlanner loads_;
  TargetKeeper keeper_;
};

// A factory for Controller.
std::unique_ptr<Policy> make_clockwork_policy(const Cluster& cluster, const ClockworkOptions& options = {});

}  // namespace foliot::clockwork

#endif  // FOLIOT_CONTROL_POLICIES_CLOCKWORK_CLOCKWORK_POLICY_H_
