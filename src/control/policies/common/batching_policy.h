// BatchingPolicy: the common part of well-known policies: a queue for each model and
// bucket; LOADs on demand (control/policies/common/on_demand_loading.h); query drop, that is, a
// request that can no longer be met is refused. A BatchingRule distinguishes them: when
// a queue is ready, which of the ready ones comes first, and what goes in its next
// batch.
//
// Each device is kept `lookahead` ahead with work, or as much more as hides the way to
// the worker.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_BATCHING_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_BATCHING_POLICY_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/common/agenda.h"
#include "control/policies/common/on_demand_loading.h"
#include "control/policies/common/query_drop.h"
#include "control/policies/common/request_queue.h"
#include "control/policies/common/residents.h"
#include "control/policies/common/target_keeper.h"
#include "foundation/base/time.h"

namespace foliot {

// A queue that is not empty, as a rule sees it on one device.
struct QueueView {
  const Cluster& cluster;
  const ModelInfo& model;
  QueueKey key;
  const RequestQueue& requests;
  DeviceId device;
  QueryDrop drop = QueryDrop::kUnmeetable;

  // That the device may run.
  std::span<const uint32_t> batch_sizes() const { return cluster.batch_sizes(device, key.model); }
  // EXEC of a compiled batch size, with the margin.
  Duration exec(uint32_t batch_index) const {
    return cluster.durations().exec({device, key.model, key.bucket, batch_index}) + cluster.margin(device);
  }
  // The first request that is not to be dropped: that can still be met alone, or has not expired.
  // requests.size() if none.
  size_t first_meetable(TimePoint start) const {
    return requests.first_due_from(drop == QueryDrop::kExpired ? start : start + exec(0));
  }
};

class BatchingRule {
 public:
  virtual ~BatchingRule() = default;

  virtual RequestQueue::Order order() const = 0;

  struct Offer {
    TimePoint ready;   // not before this
    int64_t rank = 0;  // the smallest goes first; equal ranks in the order of their heads
    auto operator<=>(const Offer&) const = default;
  };
  // Of a queue as it is now; `queue.device` is one that holds the model, if any does.
  virtual Offer offer(const QueueView& queue, TimePoint now) const = 0;

  struct Batch {
    size_t first = 0;   // position in the queue
    uint32_t rows = 0;  // 0: nothing of it can be run on that device
    uint32_t batch_index = 0;
  };
  // What to run on `queue.device` from `start` on.
  virtual Batch choose(const QueueView& queue, TimePoint start) const = 0;

  // Facts, for rules that learn.
  virtual void on_model_added(const ModelInfo& /*model*/) {}
  // `request` has joined the queue.
  virtual void on_request(const QueueView& /*queue*/, const Request& /*request*/, TimePoint /*now*/) {}
  virtual void on_exec(const Action& /*action*/, const Outcome& /*outcome*/) {}
};

// The densest batch of the requests from `first` on, of a compiled size up to that
// of `batch_index_max`: the largest that they fill, or the next one padded where
// that gets more of them done in less time.
BatchingRule::Batch densest_batch(const QueueView& queue, size_t first, uint32_t batch_index_max);

// The largest compiled size with which the request at `first` can be met from
// `start` on. REQUIRES: alone it can.
uint32_t largest_in_time(const QueueView& queue, size_t first, TimePoint start);

class BatchingPolicy : public Policy, private TargetKeeper::Owner {
 public:
  BatchingPolicy(const Cluster& cluster, std::unique_ptr<BatchingRule> rule,
                 Duration lookahead = Duration::milliseconds(1), QueryDrop drop = QueryDrop::kUnmeetable);

  void on_request(const Request& request, TimePoint now) override;
  void on_withdrawn(const Request& request, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_device_changed(DeviceId device, TimePoint now) override;
  void on_target_changed(ModelId model, TimePoint now) override;
  void on_model_added(const ModelInfo& model, TimePoint now) override;
  void on_model_removed(ModelId model, TimePoint now) override;
  TimePoint plan(TimePoint now, Dispatcher& dispatcher) override;

 protected:
  QueueView view(QueueKey key, DeviceId device);
  // A ready queue's place among those of a device.
  struct Place {
    bool offline;
    int64_t rank;
    RequestQueue::Place head;
    QueueKey queue;
    auto operator<=>(const Place&) const = default;
  };
  std::set<Place>& ready(DeviceId device);
  // What is known of the queue has changed.
  void update(QueueKey key, TimePoint now);
  // The request at this position is the device's now.
  void take(QueueKey key, size_t position, TimePoint now);
  // How far ahead the device is kept with work.
  Duration lookahead(DeviceId device) const;
  const Cluster& cluster() const { return cluster_; }
  Agenda& agenda() { return agenda_; }
  // Gives the device work to do.
  virtual void serve(DeviceId device, TimePoint now, Dispatcher& dispatcher);

 private:
  bool load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher) override {
    return loads_.load_for_target(device, model, now, dispatcher);
  }
  void on_retired(DeviceId device, ModelId /*model*/, TimePoint now) override { update_device(device, now); }

  using Alarms = std::set<std::pair<TimePoint, QueueKey>>;
  struct QueueState {
    explicit QueueState(RequestQueue::Order order) : requests(order) {}
    RequestQueue requests;
    // How long before its deadline a request is refused: EXEC of one row on the fastest device,
    // with the margin; or nothing.
    Duration fastest;
    // What stands for it in ready_, on which devices; in timers_; in expiries_.
    std::optional<Place> place;
    std::vector<DeviceId> placed_on;
    std::optional<TimePoint> timer;
    std::optional<TimePoint> expiry;
  };

  QueueState& queue(QueueKey key) { return queues_[key.model.value()][key.bucket.value()]; }
  // A device that holds the model or, if none does, could.
  DeviceId any_holder(ModelId model) const;
  void update_model(ModelId model, TimePoint now);
  // It holds other models than it did.
  void update_device(DeviceId device, TimePoint now);
  void update_fastest(QueueKey key);
  void update_place(QueueState& state, const std::optional<Place>& place, ModelId model);
  void update_want(ModelId model);
  static void update_alarm(Alarms& alarms, std::optional<TimePoint>& slot, std::optional<TimePoint> next, QueueKey key);

  void refuse_expired(TimePoint now, Dispatcher& dispatcher);
  void ring_timers(TimePoint now);
  // False if there is nothing that can be run on the device now.
  bool serve_one(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  bool send(const QueueView& queue, const BatchingRule::Batch& batch, TimePoint start, TimePoint now,
            Dispatcher& dispatcher);

  const Cluster& cluster_;
  std::unique_ptr<BatchingRule> rule_;
  Duration lookahead_;
  QueryDrop drop_;
  std::vector<std::vector<QueueState>> queues_;  // [model][bucket]
  std::vector<std::set<Place>> ready_;           // by device
  Alarms timers_;                                // queues that are not ready yet
  Alarms expiries_;                              // when the head of a queue can no longer be met
  Agenda agenda_;
  Residents residents_;
  OnDemandLoading loads_;
  TargetKeeper keeper_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_BATCHING_POLICY_H_
