#include "control/fleet/scalers/worker_loads.h"

#include <algorithm>
#include <map>

namespace foliot {

WorkerLoads::Device& WorkerLoads::device(DeviceId id) {
  if (id.value() >= devices_.size()) devices_.resize(id.value() + 1);
  return devices_[id.value()];
}

void WorkerLoads::on_request(const Request& /*request*/, TimePoint now) { on_time(now); }

void WorkerLoads::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  on_time(now);
  if (action.type != ActionType::kInfer || !outcome.done()) return;
  const DeviceModel& model = cluster_.device(action.device);
  Device& own = device(action.device);
  own.busy += outcome.duration * action.lanes.count;
  const Runnable* const runnable = cluster_.runnable(action.device, action.model);
  if (runnable == nullptr || model.lane_count() > 1 || action.bucket.value() >= runnable->seed_exec.size()) return;
  const uint32_t index = cluster_.batch_index(action.device, action.model, action.batch_size);
  own.took += outcome.duration;
  own.profiled += runnable->seed_exec[action.bucket.value()][index];
}

void WorkerLoads::on_device(const DeviceChange& change, TimePoint now) {
  on_time(now);
  Device& own = device(change.device);
  if (change.joined) {
    own = {.worker = worker_of_(change.device)};
  } else if (change.state == DeviceState::kLost) {
    own = {};
  } else {
    return;
  }
  give();
}

void WorkerLoads::on_time(TimePoint now) {
  if (now - last_ < kInterval) return;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i].worker.empty()) judge(devices_[i], cluster_.device(DeviceId(i)).lane_count(), now - last_);
  }
  last_ = now;
  give();
}

// Each state is left at a lower bound than it is entered at, as an instance's is.
void WorkerLoads::judge(Device& device, uint32_t lane_count, Duration interval) const {
  device.utilisation = std::min(1.0, device.busy.to_seconds() / (interval.to_seconds() * lane_count));
  device.overloaded = device.utilisation >= (device.overloaded ? options_.overloaded_until : options_.overloaded_from);
  const double slower = device.profiled > Duration() ? device.took.to_seconds() / device.profiled.to_seconds() : 0;
  device.interfered =
      !device.overloaded && slower >= (device.interfered ? options_.interfered_until : options_.interfered_from);
  device.busy = device.took = device.profiled = Duration();
}

void WorkerLoads::give() const {
  std::map<std::string, WorkerView> workers;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    if (device.worker.empty()) continue;
    WorkerView& view = workers.try_emplace(device.worker, WorkerView{.devices = 0}).first->second;
    ++view.devices;
    view.name = device.worker;
    view.kind = cluster_.kind_name(cluster_.device(DeviceId(i)).kind());
    view.utilisation = std::max(view.utilisation, device.utilisation);
    view.overloaded = view.overloaded || device.overloaded;
    view.interfered = view.interfered || device.interfered;
    view.may_leave = true;
  }
  std::vector<WorkerView> views;
  for (auto& [name, view] : workers) views.push_back(std::move(view));
  sink_(views);
}

}  // namespace foliot
