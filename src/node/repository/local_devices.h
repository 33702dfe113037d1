// LocalDevices: all devices of this process, each with its worker (local_worker.h). They
// run the same models and know them by the same ids; a device's number is its position
// among their places.
#ifndef FOLIOT_NODE_REPOSITORY_LOCAL_DEVICES_H_
#define FOLIOT_NODE_REPOSITORY_LOCAL_DEVICES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/worker/worker.h"
#include "foundation/core/payload.h"
#include "foundation/core/ports.h"
#include "node/devices/compiled_model.h"
#include "node/devices/local_worker.h"
#include "node/repository/model_host.h"
#include "observe/metrics/worker_metrics.h"

namespace foliot {

// Threading: as LocalWorker; send() as Worker's.
class LocalDevices : public ActionSink {
 public:
  // Memory as in LocalWorker.
  LocalDevices(const LocalWorkerOptions& options, const std::vector<CompiledModel>& models,
               const std::vector<uint64_t>& uncompiled = {});

  uint32_t count() const { return static_cast<uint32_t>(workers_.size()); }
  // "2 devices, ", or nothing if it is one.
  std::string count_text() const;
  // Of each device, as it was taken at the start.
  const DeviceMemory& memory() const { return workers_.front()->memory(); }

  // Errors: LocalWorker::start()'s, naming the device if there are several.
  Status start(PayloadStore& payloads, OutcomeSink& outcomes);
  void stop();

  // After start():
  // To the device of this number. REQUIRES: there is one.
  void send(const Action& action) override;
  std::vector<Worker*> workers();
  std::vector<ModelHost::Device> hosts();
  std::vector<WorkerMemory> metrics() const;
  bool memory_locked() const;

 private:
  std::vector<std::unique_ptr<LocalWorker>> workers_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_LOCAL_DEVICES_H_
