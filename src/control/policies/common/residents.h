// Residents: the devices that hold each model, and the models that a device could do
// without, least recently used first; kept so that neither query goes through all
// models or all devices.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_RESIDENTS_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_RESIDENTS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "control/controller/cluster.h"
#include "control/controller/policy.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"

namespace foliot {

class Residents {
 public:
  explicit Residents(const Cluster& cluster) : cluster_(cluster) {}

  // To be called with every outcome before any query.
  void on_outcome(const Action& action);
  // Likewise of every device that has changed. Returns the models that it holds now
  // and those that it held, ascending.
  std::vector<ModelId> on_device_changed(DeviceId device);
  // The devices on which the model is loaded, in the order of their ids.
  const std::vector<DeviceId>& holders(ModelId model) const;

  using MayGo = std::function<bool(ModelId)>;
  // Unloads what is not in use and may go, least recently used first, until so
  // many pages are free. False, and nothing done, if that is not possible now.
  bool make_room(DeviceId device, uint32_t pages, const MayGo& may_go, Dispatcher& dispatcher);

 private:
  // By when it was last used, as far as known: it may have been used since, but
  // never earlier, so the true order comes out when the set is walked.
  using ByLastUse = std::set<std::pair<TimePoint, ModelId>>;

  std::vector<DeviceId>& holders_of(ModelId model);
  ByLastUse& by_last_use(DeviceId device);
  void add(DeviceId device, ModelId model);
  void remove(DeviceId device, ModelId model);

  const Cluster& cluster_;
  std::vector<std::vector<DeviceId>> holders_;  // by model
  std::vector<ByLastUse> by_last_use_;          // by device
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_RESIDENTS_H_
