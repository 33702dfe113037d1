// ServingAbility: which models some device can serve, now or when it is up again, and since when none can.
// Refusals that no policy decides follow from it.
//
// Threading: the controller's. Time is an argument.
#ifndef FOLIOT_CONTROL_CONTROLLER_SERVING_ABILITY_H_
#define FOLIOT_CONTROL_CONTROLLER_SERVING_ABILITY_H_

#include <string>
#include <vector>

#include "control/controller/cluster.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

class ServingAbility {
 public:
  // `cluster` outlives this.
  explicit ServingAbility(const Cluster& cluster) : cluster_(cluster) {}

  // Of a device; called each time that it is lost.
  void on_lost(DeviceId device, TimePoint now);

  // Whether some device holds the model or may load it, now or when it is up again.
  bool could_serve(ModelId model, TimePoint now) const;
  // The same of devices that are up, other than this one.
  bool could_serve_elsewhere(DeviceId than, ModelId model, TimePoint now) const;
  // Whether a request could still be met by some device, if it were run at once.
  bool still_meetable(const Request& request, TimePoint now) const;
  // Whether some device that is not lost can run the model.
  bool has_able_device(ModelId model) const;
  // For people: why no device can run it, and what could.
  std::string unable_detail(ModelId model) const;
  // Whether no device holds it, and none that could run it has room for it beside the copies that targets require.
  bool crowded_out(ModelId model) const;
  // For people: how much room it needs and how much there is. REQUIRES: crowded_out(model).
  std::string crowded_detail(ModelId model) const;
  // When the last device that can run the model was lost; infinite if one is not.
  TimePoint lost_since(ModelId model) const;

 private:
  bool could_serve(const DeviceModel& device, ModelId model, TimePoint now) const;
  // Not lost, and large enough for it.
  bool could_hold(const DeviceModel& device, ModelId model) const;

  const Cluster& cluster_;
  std::vector<TimePoint> lost_at_;  // by DeviceId, of those that are lost
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_SERVING_ABILITY_H_
