#include "node/repository/local_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {

LocalDevices::LocalDevices(const LocalWorkerOptions& options, const std::vector<CompiledModel>& models,
                           const std::vector<uint64_t>& uncompiled) {
  for (const DevicePlace& place : options.devices) {
    workers_.push_back(std::make_unique<LocalWorker>(options, place, models, uncompiled));
  }
}

std::string LocalDevices::count_text() const { return count() == 1 ? "" : fmt::format("{} devices, ", count()); }

Status LocalDevices::start(PayloadStore& payloads, OutcomeSink& outcomes) {
  for (uint32_t device = 0; device < count(); ++device) {
    const Status status = workers_[device]->start(payloads, outcomes);
    if (!status.ok()) return count() == 1 ? status : status.with_context(fmt::format("device {}", device));
  }
  return Status();
}

void LocalDevices::stop() {
  for (const auto& worker : workers_) worker->stop();
}

void LocalDevices::send(const Action& action) {
  FOLIOT_CHECK(action.device.value() < count());
  workers_[action.device.value()]->worker().send(action);
}

std::vector<Worker*> LocalDevices::workers() {
  std::vector<Worker*> workers;
  for (const auto& worker : workers_) workers.push_back(&worker->worker());
  return workers;
}

std::vector<ModelHost::Device> LocalDevices::hosts() {
  std::vector<ModelHost::Device> devices;
  for (const auto& worker : workers_) {
    devices.push_back({worker->engine(), worker->worker(),
                       [&worker = *worker](const Program& program) { return worker.make_room(program); }});
  }
  return devices;
}

std::vector<WorkerMemory> LocalDevices::metrics() const {
  std::vector<WorkerMemory> memory;
  for (const auto& worker : workers_) {
    memory.push_back(
        {.page_count = worker->memory().page_count, .io_cache = [&worker = *worker] { return worker.io_cache(); }});
  }
  return memory;
}

bool LocalDevices::memory_locked() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->memory_locked(); });
}

}  // namespace foliot
