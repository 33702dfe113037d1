// FoliotPolicy: Foliot's own policy, the default.
//
// It goes on from Clockwork (section 5.3), Symphony and SHEPHERD. What is its own:
// batches are weighed against each other under overload (batch_selection.h), LOADs
// are chosen by the requests that they still save and models are evicted by what
// their absence would cost (load_planner.h), and a device is committed to as
// little work ahead as keeps it busy, so that choices are made late.
//
// The time of a decision grows with the models that wait on one device, not with
// the number of models or devices, and a turn makes few of them.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_FOLIOT_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_FOLIOT_POLICY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/common/target_keeper.h"
#include "control/policies/foliot/admission.h"
#include "control/policies/foliot/batch_parts.h"
#include "control/policies/foliot/batch_selection.h"
#include "control/policies/foliot/best_effort_room.h"
#include "control/policies/foliot/board.h"
#include "control/policies/foliot/lane_choice.h"
#include "control/policies/foliot/lane_division.h"
#include "control/policies/foliot/load_planner.h"
#include "control/policies/foliot/pool.h"
#include "control/policies/foliot/width_trials.h"
#include "foundation/base/bit_set.h"

namespace foliot::foliot_policy {

struct FoliotOptions {
  // A device is given its next EXEC when it has less than this left to do: the way
  // there and back, and the error of prediction.
  Duration lookahead = Duration::milliseconds(1);
  // Leave as many devices idle as the load allows, at the price of latency: requests
  // wait for a device of the pool (pool.h) as long as their deadline lets them.
  bool consolidate = false;
};

class FoliotPolicy : public Policy, private TargetKeeper::Owner {
 public:
  FoliotPolicy(const Cluster& cluster, const FoliotOptions& options);

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
    return loads_.load_for_target(device, model, now, dispatcher);
  }
  void on_retired(DeviceId device, ModelId /*model*/, TimePoint now) override { update_device(device, now); }

  template <typename T>
  using Earliest = std::priority_queue<std::pair<TimePoint, T>, std::vector<std::pair<TimePoint, T>>, std::greater<>>;

  Duration shortest_answer(ModelId model, BucketId bucket) const;
  // The last instant at which the first request of a model could be begun.
  TimePoint expiry(ModelId model) const;
  void note_expiry(ModelId model) { note_expiry(model, expiry(model)); }
  // Where `first` is its expiry.
  void note_expiry(ModelId model, TimePoint first);
  // What was not to wait when it came.
  void refuse_new(Dispatcher& dispatcher);
  void refuse_expired(TimePoint now, Dispatcher& dispatcher);
  // No more than `count_max`; returns how many.
  size_t refuse_expired(ModelId model, size_t count_max, TimePoint now, Dispatcher& dispatcher);
  // It holds other models than it did, or is up or not.
  void update_device(DeviceId device, TimePoint now);
  void free_devices(TimePoint now);
  void touch(ModelId model, TimePoint now);
  // The device will be looked at for a batch.
  void note_due(DeviceId device, TimePoint now);
  void run_batches(TimePoint now, Dispatcher& dispatcher);
  // Each does as much as the turn has looks left for, and puts back on its list what
  // is left to do.
  template <typename T>
  struct Listed {
    T what;
    TimePoint since;
  };
  void serve_device(const Listed<DeviceId>& due, TimePoint now, Dispatcher& dispatcher);
  void serve_model(const Listed<ModelId>& touched, TimePoint now, Dispatcher& dispatcher);
  // The device that is to run the model next: free, and in the pool unless it is
  // time to spill.
  std::optional<DeviceId> device_for(ModelId model, TimePoint now);
  std::optional<uint32_t> first_in_time(ModelId model, TimePoint now) const;
  // When the first request of a model may go to a spare device: the last moment at
  // which its batch could begin with one more row in it.
  TimePoint spill_time(DeviceId device, ModelId model) const;
  // False if there is nothing for the device to do now. Takes one look.
  // `since`: when it, or what is looked at on whose behalf, was put on its list.
  bool run_batch(DeviceId device, TimePoint since, TimePoint now, Dispatcher& dispatcher);
  // For a device that waits for all its lanes: a batch on those that are free, if it is over before the others are.
  bool fill_lanes(DeviceId device, TimePoint now, bool some_missed, Dispatcher& dispatcher);
  bool send(DeviceId device, const Batch& batch, LaneInterval lanes, TimePoint now, Dispatcher& dispatcher);
  // Whether what is unfinished would get too little of the device if it went on only after so long.
  bool share_is_due(DeviceId device, Duration after, TimePoint now) const;
  // REQUIRES: it has an unfinished batch.
  bool goes_after_unfinished(DeviceId device, const Batch& batch, TimePoint now) const;
  // Refuses what is unfinished if its time is over.
  void give_up_late(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  // Goes on with what is unfinished. False if the device cannot.
  bool resume(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  // The device was sent something.
  void note_busy(DeviceId device, TimePoint now);
  // A batch was held back until then.
  void look_again(DeviceId device, TimePoint when);

  const Cluster& cluster_;
  FoliotOptions options_;
  Board board_;
  Admission admission_;
  BatchParts parts_;
  BatchSelection selection_;
  LaneDivision division_;
  WidthTrials trials_;
  BestEffortRoom best_effort_room_;
  Pool pool_;
  LoadPlanner loads_;
  TargetKeeper keeper_;

  uint32_t devices_ = 0;
  uint32_t looks_left_ = 0;  // in this turn
  BitSet free_;              // devices with less than `lookahead` to do
  struct Refused {
    RequestId id;
    Refusal reason;
    TimePoint answer;  // when it could have been
  };
  std::vector<Refused> refused_;          // as they came; to be answered
  std::vector<Listed<DeviceId>> due_;     // of those, the ones for which something has changed
  BitSet is_due_;                         // devices in due_
  std::vector<Listed<ModelId>> touched_;  // models with new requests or a new holder
  Earliest<uint32_t> busy_;               // when the other devices will be free
  Earliest<uint32_t> spills_;             // when a model may go to a spare device
  Earliest<uint32_t> held_;               // when to look again at a device for which a batch was held back
  std::vector<TimePoint> held_until_;     // of those, by device the earliest
  Earliest<uint32_t> expiries_;           // when a model's first request may have to be refused
};

std::unique_ptr<Policy> make_foliot_policy(const Cluster& cluster, const FoliotOptions& options = {});

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_FOLIOT_POLICY_H_
