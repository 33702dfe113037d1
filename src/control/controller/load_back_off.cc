#include "control/controller/load_back_off.h"

#include <algorithm>

namespace foliot {

bool LoadBackOff::may_load(DeviceId device, ModelId model, TimePoint now) const {
  if (pairs_.empty()) return true;
  const auto found = pairs_.find({model, device});
  return found == pairs_.end() || found->second.until <= now;
}

bool LoadBackOff::has_failed(ModelId model) const {
  const auto first = pairs_.lower_bound({model, DeviceId(0)});
  return first != pairs_.end() && first->first.first == model;
}

void LoadBackOff::on_failure(DeviceId device, ModelId model, TimePoint now) {
  State& state = pairs_[{model, device}];
  ends_.erase({state.until, device, model});
  state.length = state.length == Duration() ? options_.first : std::min(state.length * 2, options_.max);
  state.until = now + state.length;
  ends_.insert({state.until, device, model});
}

void LoadBackOff::forget(DeviceId device, ModelId model) {
  const auto found = pairs_.find({model, device});
  if (found == pairs_.end()) return;
  ends_.erase({found->second.until, device, model});
  pairs_.erase(found);
}

void LoadBackOff::forget_device(DeviceId device) {
  std::erase_if(pairs_, [&](const auto& pair) { return pair.first.second == device; });
  std::erase_if(ends_, [&](const auto& end) { return std::get<DeviceId>(end) == device; });
}

void LoadBackOff::forget_model(ModelId model) {
  std::erase_if(pairs_, [&](const auto& pair) { return pair.first.first == model; });
  std::erase_if(ends_, [&](const auto& end) { return std::get<ModelId>(end) == model; });
}

std::vector<DeviceId> LoadBackOff::take_ended(TimePoint now) {
  std::set<DeviceId> devices;
  for (; next_end() <= now; ends_.erase(ends_.begin())) devices.insert(std::get<DeviceId>(*ends_.begin()));
  return {devices.begin(), devices.end()};
}

}  // namespace foliot
