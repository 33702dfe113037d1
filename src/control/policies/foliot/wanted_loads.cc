#include "control/policies/foliot/wanted_loads.h"

#include <algorithm>

namespace foliot::foliot_policy {

bool WantedLoads::put(const WantedLoad& wanted) {
  const uint32_t id = wanted.model.value();
  places_.resize(std::max<size_t>(places_.size(), id + 1));
  if (!places_[id]) {
    places_[id] = loads_.insert(loads_.end(), wanted);
    return true;
  }
  WantedLoad& known = **places_[id];
  const TimePoint since = known.since;
  known = wanted;
  known.since = since;
  return false;
}

void WantedLoads::erase(ModelId model) {
  if (contains(model)) erase(*places_[model.value()]);
}

WantedLoads::Iterator WantedLoads::erase(Iterator wanted) {
  places_[wanted->model.value()].reset();
  return loads_.erase(wanted);
}

}  // namespace foliot::foliot_policy
