// TargetKeeper: the part of every policy that brings the copies of models in line with
// their targets (control/controller/targets.h): it proposes the LOADs that copies_least asks for,
// and retires what is beyond copies_most.
//
// What is missing is loaded where there is room, else where enough can be evicted, and of
// such devices where a LOAD can begin soonest. What is too much goes in this order: what is
// loading still, what has the least to do, what was used the longest ago.
//
// It acts when a target, a device or a copy has changed; what it found no room for it tries
// again then, and after an EXEC, but not more often than every kRetryInterval. So it costs
// nothing where there are no targets, and a target that cannot be met causes no turns. One turn
// looks at kModelsPerTurn models and sends kActionsPerTurn actions at most, models in the
// order of their ids; the rest follows in the next turn, at once.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_TARGET_KEEPER_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_TARGET_KEEPER_H_

#include <cstdint>
#include <vector>

#include "control/controller/policy.h"
#include "foundation/base/bit_set.h"
#include "foundation/base/time.h"

namespace foliot {

class TargetKeeper {
 public:
  static constexpr uint32_t kModelsPerTurn = 8;
  static constexpr uint32_t kActionsPerTurn = 8;
  static constexpr Duration kRetryInterval = Duration::milliseconds(1);

  // The policy that it is a part of, which keeps account of LOADs and of what devices hold.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Evicts what it must (never against Cluster::may_evict()) and sends the LOAD; false,
    // and nothing done, if there is no room now. The Cluster allows the LOAD but for that.
    virtual bool load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher) = 0;
    // The device does not hold the model any more, as far as the Cluster shows.
    virtual void on_retired(DeviceId device, ModelId model, TimePoint now) = 0;
  };

  TargetKeeper(const Cluster& cluster, Owner& owner) : cluster_(cluster), owner_(owner) {}

  // Facts.
  void on_target_changed(ModelId model);
  void on_outcome(const Action& action, TimePoint now);
  void on_device_changed();

  // Returns when to be called again at the latest.
  TimePoint plan(TimePoint now, Dispatcher& dispatcher) {
    return due_.empty() && now < retry_at_ ? retry_at_ : plan_due(now, dispatcher);
  }

 private:
  TimePoint plan_due(TimePoint now, Dispatcher& dispatcher);
  // Loads or retires copies as long as actions_left_ is above 0.
  void bring_in_line(ModelId model, TimePoint now, Dispatcher& dispatcher);
  void retire_surplus(ModelId model, TimePoint now, Dispatcher& dispatcher);
  void load_missing(ModelId model, TimePoint now, Dispatcher& dispatcher);

  const Cluster& cluster_;
  Owner& owner_;
  BitSet constrained_;  // models whose target constrains their copies
  BitSet due_;          // models to be looked at
  BitSet unmet_;        // models of which too few copies could be loaded
  TimePoint retry_at_ = TimePoint::infinite_future();
  TimePoint last_retry_;
  uint32_t actions_left_ = 0;      // in this turn
  std::vector<DeviceId> devices_;  // in bring_in_line()
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_TARGET_KEEPER_H_
