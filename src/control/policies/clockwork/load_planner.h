// LoadPlanner: the choice of the model to LOAD next on a device, and of what to evict
// for it (Clockwork, section 5.3, "Scheduling LOAD").
//
// It keeps each model's demand, shares it out over the devices that hold the model
// in inverse proportion to their load, and takes what they cannot serve within
// `capacity` as the model's priority: p_m = d_m - sum of a_mg * capacity / load_g.
// Allocations and priorities are brought up to date when something about their own
// model changes, not whenever a load does. A device whose LOAD executor has less
// than `lookahead` of work loads the model with the highest priority above zero
// that it does not hold, and evicts the least recently used.
#ifndef FOLIOT_CONTROL_POLICIES_CLOCKWORK_LOAD_PLANNER_H_
#define FOLIOT_CONTROL_POLICIES_CLOCKWORK_LOAD_PLANNER_H_

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/common/agenda.h"
#include "control/policies/common/residents.h"
#include "foundation/base/time.h"

namespace foliot::clockwork {

class LoadPlanner {
 public:
  // `residents` has processed an outcome before this.
  LoadPlanner(const Cluster& cluster, Residents& residents, Duration lookahead)
      : cluster_(cluster), residents_(residents), lookahead_(lookahead) {}

  // EXEC time of the model's queued requests that a LOAD could still help. To be
  // called whenever that, or where the model is loaded, has changed.
  void set_demand(ModelId model, Duration demand);
  void on_outcome(const Action& action);
  // set_demand() follows for each model that it holds or held.
  void on_device_changed(DeviceId device);

  // Sends the LOAD and the UNLOADs that it needs; false, and nothing done, if there is no
  // room now.
  bool load_model(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher);

  // Sends LOADs (and the UNLOADs that they need) until each device has enough to
  // do. Returns when to be called again at the latest.
  TimePoint plan(TimePoint now, Dispatcher& dispatcher);

  // Above zero: more demand than the devices that hold the model can serve.
  double priority(ModelId model) const;

 private:
  struct Share {
    DeviceId device;
    double seconds;
  };
  struct ModelState {
    Duration demand;
    std::vector<DeviceId> loading;  // where a LOAD is under way
    std::vector<Share> allocation;  // over where it is loaded or loading
    double priority = 0;
  };

  ModelState& state(ModelId model);
  double& load(DeviceId device);
  void allocate(ModelId model);
  // The free LOAD executors, those on the least loaded devices first.
  std::vector<DeviceId> free_devices(TimePoint now);
  std::optional<ModelId> choose(const DeviceModel& device, TimePoint now) const;
  // No kind of device may try again yet.
  bool all_wait(TimePoint now) const;
  // When the first that waits may; infinite if none does.
  TimePoint next_retry(TimePoint now) const;
  // False if there is nothing to be loaded on the device now.
  bool load_one(const DeviceModel& device, TimePoint now, Dispatcher& dispatcher);

  const Cluster& cluster_;
  Residents& residents_;
  Duration lookahead_;
  std::vector<ModelState> states_;                   // by model
  std::vector<double> loads_;                        // by device: seconds of work allocated
  std::set<std::pair<double, ModelId>> priorities_;  // those above zero, negated
  Agenda agenda_;
  uint32_t devices_known_ = 0;
  std::set<DeviceId> free_;  // devices whose LOAD executor has less than `lookahead` of work
  // By kind of device: where no room could be made, not before this.
  std::vector<TimePoint> retry_;
};

}  // namespace foliot::clockwork

#endif  // FOLIOT_CONTROL_POLICIES_CLOCKWORK_LOAD_PLANNER_H_
