// OnDemandLoading: the LOAD side of policies whose own subject is the order of
// requests and the size of batches.
//
// A model that requests wait for and that no device holds is loaded onto the device
// that can begin soonest: those first that a LOAD can still help some request of, and
// of these the one whose first request comes first. Room is made by evicting the least
// recently used that no request waits for, or whose first request comes later. A model
// that keeps its devices busy for longer than a LOAD takes is also loaded onto a device
// that has nothing to do.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_ON_DEMAND_LOADING_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_ON_DEMAND_LOADING_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "control/controller/policy.h"
#include "control/policies/common/residents.h"
#include "foundation/base/time.h"

namespace foliot {

class OnDemandLoading {
 public:
  // `residents` has processed an outcome before this.
  OnDemandLoading(const Cluster& cluster, Residents& residents) : cluster_(cluster), residents_(residents) {}

  struct Want {
    TimePoint order;  // of the first request that waits; the smallest goes first
    Duration work;    // EXEC of all that wait
    // A LOAD that begins by then helps at least one of them.
    TimePoint helped_until = TimePoint::infinite_future();
    auto operator<=>(const Want&) const = default;
  };
  // What waits for the model has changed; nullopt: nothing does.
  void set_want(ModelId model, std::optional<Want> want);
  void on_outcome(const Action& action);
  // A device has changed: there may be room now. on_holders_changed() follows for
  // each model that it holds or held.
  void on_device_changed() {
    retry_.clear();
    next_copy_ = TimePoint();
  }
  void on_holders_changed(ModelId model) { update(model); }

  // Sends a LOAD that the target of the model asks for, and the UNLOADs that it needs; false,
  // and nothing done, if there is no room now.
  bool load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher);

  // Sends LOADs, and the UNLOADs that they need. Returns when to be called again
  // at the latest.
  TimePoint plan(TimePoint now, Dispatcher& dispatcher);

 private:
  struct State {
    std::optional<Want> want;
    uint32_t loading = 0;             // LOADs under way
    std::optional<TimePoint> absent;  // what stands for it in absent_
    std::optional<Duration> backlog;  // and in backlogs_
  };

  State& state(ModelId model);
  void update(ModelId model);
  // Those that a LOAD can help, or those that it cannot.
  void load_absent(bool helped, TimePoint now, Dispatcher& dispatcher);
  void replicate(TimePoint now, Dispatcher& dispatcher);
  // Marks the kinds of device that can run the model; false if all were marked.
  bool try_kinds(ModelId model, std::vector<bool>& tried) const;
  // No kind of device, or none that can run the model, may try again yet.
  bool all_wait(TimePoint now) const;
  bool waits(ModelId model, TimePoint now) const;
  // When a LOAD could begin at the earliest; infinite where none can be sent.
  TimePoint earliest_load(TimePoint now) const;
  // The devices that could load the model now, best first.
  std::vector<DeviceId> targets(ModelId model, TimePoint now) const;
  bool load(DeviceId device, ModelId model, const Residents::MayGo& may_go, TimePoint now, Dispatcher& dispatcher);

  const Cluster& cluster_;
  Residents& residents_;
  std::vector<State> states_;                        // by model
  std::set<std::pair<TimePoint, ModelId>> absent_;   // wanted, and neither loaded nor loading anywhere
  std::set<std::pair<Duration, ModelId>> backlogs_;  // wanted and loaded: work for each copy
  std::vector<TimePoint> retry_;                     // by kind of device: where no room could be made, not before this
  TimePoint next_copy_;                              // where no device was free for a copy, not before this
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_ON_DEMAND_LOADING_H_
