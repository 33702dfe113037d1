// LoadPlanner: which model to LOAD next on a device, and what to evict for it
// (Clockwork, section 5.3, "Scheduling LOAD").
//
// It keeps each model's demand (the EXEC time of its queued requests), shares it
// out over the devices that hold the model in inverse proportion to their load,
// and takes what they cannot serve within `capacity` as the model's priority.
#ifndef FOLIOT_SCHED_CLOCKWORK_LOAD_PLANNER_H_
#define FOLIOT_SCHED_CLOCKWORK_LOAD_PLANNER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/time.h"
#include "controller/scheduler.h"

namespace foliot::clockwork {

class LoadPlanner {
 public:
  LoadPlanner(const Cluster& cluster, Duration lookahead) : cluster_(cluster), lookahead_(lookahead) {}

  // Demand of a model has changed: EXEC time of all its queued requests, the
  // latest deadline among them, and the shortest EXEC of one.
  struct Demand {
    Duration work;
    TimePoint last_deadline;
    Duration shortest_exec;
  };
  void set_demand(ModelId model, const Demand& demand);
  void clear_demand(ModelId model);
  // See Scheduler::on_missed().
  void add_missed(ModelId model) { missed_.insert(model); }
  void on_model_added(ModelId model) { unseen_.insert(model); }
  void on_model_removed(ModelId model);

  // Sends LOADs (and the UNLOADs that they need) until each device has enough to
  // do. Returns when to be called again at the latest.
  TimePoint plan(TimePoint now, Dispatcher& dispatcher);

 private:
  struct Allocation {
    Demand demand;
    std::vector<double> by_device;  // seconds
  };

  std::optional<ModelId> choose(const DeviceModel& device, TimePoint now) const;
  std::optional<ModelId> choose_by_demand(const DeviceModel& device, TimePoint now) const;
  double priority(const Allocation& allocation) const;
  bool could_still_help(const DeviceModel& device, ModelId model, const Demand& demand, TimePoint now) const;
  // Unloads the least recently used until `pages` are free. False, and nothing
  // done, if that is not possible now.
  bool make_room(const DeviceModel& device, uint32_t pages, Dispatcher& dispatcher);
  void withdraw(const Allocation& allocation);

  const Cluster& cluster_;
  Duration lookahead_;
  std::map<ModelId, Allocation> demands_;
  std::vector<double> load_;  // by device: seconds of work allocated
  std::set<ModelId> missed_;
  std::set<ModelId> unseen_;  // never asked to be loaded so far
};

}  // namespace foliot::clockwork

#endif  // FOLIOT_SCHED_CLOCKWORK_LOAD_PLANNER_H_
