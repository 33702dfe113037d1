// ClockworkScheduler: the policy of Clockwork, section 5.3.
//
// INFER: whenever a device has less than `lookahead` of EXEC work, take the
// strategy (model, batch size) whose last possible start is the earliest, as long
// as that has not passed and its batch is full; enlarge the batch while a larger
// one still fits; send it.
// LOAD: whenever a device has less than `lookahead` of LOAD work, load the model
// with the most demand that the devices that hold it cannot serve; make room by
// evicting the least recently used.
//
// Beyond the paper: a device with free pages and nothing to load fills them, and a
// model that was refused only because it was not loaded is loaded when nothing
// else is, since a model whose LOAD and EXEC together exceed its SLO could
// otherwise never be served.
#ifndef FOLIOT_SCHED_CLOCKWORK_CLOCKWORK_SCHEDULER_H_
#define FOLIOT_SCHED_CLOCKWORK_CLOCKWORK_SCHEDULER_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "controller/scheduler.h"
#include "sched/clockwork/lane.h"
#include "sched/clockwork/load_planner.h"

namespace foliot::clockwork {

struct ClockworkOptions {
  Duration lookahead = Duration::milliseconds(5);
};

class ClockworkScheduler : public Scheduler {
 public:
  ClockworkScheduler(const Cluster& cluster, const ClockworkOptions& options);

  void on_request(const Request& request, TimePoint now) override;
  void on_withdrawn(const Request& request, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_model_added(const ModelInfo& model, TimePoint now) override;
  void on_model_removed(ModelId model, TimePoint now) override;
  void on_missed(ModelId model, TimePoint now) override;
  TimePoint plan(TimePoint now, Dispatcher& dispatcher) override;

 private:
  // A model and bucket.
  struct LaneKey {
    ModelId model;
    BucketId bucket;
    auto operator<=>(const LaneKey&) const = default;
  };
  // A batch that could be run: the first to have to start comes first, and of
  // those that may wait forever (best effort) the one that waits longest.
  struct Strategy {
    TimePoint latest;
    RequestId head;
    LaneKey lane;
    uint32_t batch_index = 0;
    auto operator<=>(const Strategy&) const = default;
  };
  struct LaneState {
    Lane queue;
    // [device][batch index]: what stands for this lane in strategies_.
    std::vector<std::vector<std::optional<Strategy>>> strategies;
    std::optional<TimePoint> expiry;  // what stands for it in expiries_
  };

  LaneState& lane(LaneKey key) { return lanes_[key.model.value()][key.bucket.value()]; }
  Duration exec(DeviceId device, LaneKey key, uint32_t batch_index) const;
  // The shortest EXEC of one row on any device, with the margin.
  Duration shortest(LaneKey key) const;

  void update_lane(LaneKey key, TimePoint now);
  void update_model(ModelId model, TimePoint now);
  void update_strategy(DeviceId device, LaneKey key, uint32_t batch_index, TimePoint start);
  void update_expiry(LaneKey key);

  void refuse_expired(TimePoint now, Dispatcher& dispatcher);
  // False if there is nothing that can be run on the device now.
  bool plan_infer(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  bool send_batch(DeviceId device, const Strategy& strategy, TimePoint start, TimePoint now, Dispatcher& dispatcher);

  const Cluster& cluster_;
  ClockworkOptions options_;
  std::vector<std::vector<LaneState>> lanes_;   // [model][bucket]
  std::vector<std::set<Strategy>> strategies_;  // by device
  std::set<std::pair<TimePoint, LaneKey>> expiries_;
  LoadPlanner loads_;
};

// A factory for Controller.
std::unique_ptr<Scheduler> make_clockwork_scheduler(const Cluster& cluster, const ClockworkOptions& options = {});

}  // namespace foliot::clockwork

#endif  // FOLIOT_SCHED_CLOCKWORK_CLOCKWORK_SCHEDULER_H_
