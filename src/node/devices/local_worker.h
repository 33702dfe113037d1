// LocalWorker: one device on this machine's processors, its worker, executors and the
// threads that drive them, for EXEC one for each lane interval. Its owner provides payloads and receives outcomes.
#ifndef FOLIOT_NODE_DEVICES_LOCAL_WORKER_H_
#define FOLIOT_NODE_DEVICES_LOCAL_WORKER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/device/cpu/cpu_device.h"
#include "engine/worker/engine.h"
#include "engine/worker/worker.h"
#include "foundation/base/status.h"
#include "foundation/core/payload.h"
#include "foundation/core/ports.h"
#include "node/devices/compiled_model.h"
#include "node/devices/device_places.h"
#include "node/threads/executor_thread.h"
#include "observe/metrics/worker_metrics.h"

namespace foliot {

// The largest page that is chosen for models, and that of workers, which have to agree.
inline constexpr uint64_t kPageBytesMax = uint64_t{16} << 20;

struct LocalWorkerOptions {
  DevicePlaces devices{DevicePlace{}};
  // nullopt: the largest with which at most an eighth of the pages of the models at the start is empty.
  std::optional<uint64_t> page_bytes;
  // Of all devices, each with an equal share. nullopt: each has all models, up to half of
  // the memory in all.
  std::optional<uint64_t> page_cache_bytes;
  // Of each device; nullopt: as the models need.
  std::optional<uint64_t> io_cache_bytes;
  std::optional<uint64_t> workspace_bytes;  // of each lane, and of each context beyond one
  // Unfinished batches that each device holds, of those that a policy cuts.
  uint32_t contexts = 1;
  uint32_t models_max = 16384;
  uint32_t loads_in_flight_max = 128;
  uint32_t infers_in_flight_max = 64;

  // Errors: kInvalidArgument naming the flag.
  Status check() const;
};

// The note where LocalWorker::memory_locked() is false.
inline constexpr std::string_view kMemoryNotLocked =
    "memory could not be locked: raise the limit (ulimit -l unlimited), or tail latency may suffer";

// Threading: start() and stop() belong to the owner; worker() and engine() as in their
// classes.
class LocalWorker {
 public:
  // Where the options leave it open, memory() is what these models need, and a page
  // cache that will hold the models that are `uncompiled`, estimated by their files'
  // sizes.
  LocalWorker(const LocalWorkerOptions& options, const DevicePlace& place, const std::vector<CompiledModel>& models,
              const std::vector<uint64_t>& uncompiled);
  ~LocalWorker() { stop(); }

  // As it was taken at the start.
  const DeviceMemory& memory() const { return memory_; }

  // Takes all memory and starts the executors; both references outlive the worker.
  // Errors: kResourceExhausted if less memory is available than it takes; the device's.
  Status start(PayloadStore& payloads, OutcomeSink& outcomes);
  // Each executor ends after the piece of work under way; what waits is left.
  void stop();

  // After start():
  Worker& worker() { return *worker_; }
  Engine& engine() { return *engine_; }
  bool memory_locked() const { return cpu_ == nullptr || cpu_->memory_locked(); }
  IoCacheBytes io_cache() const;  // any thread
  // Before a model is added: makes io cache and workspace large enough for it, where the
  // options leave them open. Belongs to the thread that adds models. Errors:
  // kResourceExhausted naming what is too small and the flag that makes it larger.
  Status make_room(const Program& program);

 private:
  void make_device();
  void make_threads();
  Status start_executors();

  const LocalWorkerOptions options_;
  const DevicePlace place_;
  const DeviceMemory memory_;
  DeviceMemory grown_;  // what it is now
  // In the order in which they are made; each uses those before it.
  std::unique_ptr<Device> device_;
  CpuDevice* cpu_ = nullptr;  // device_ if it is one
  std::unique_ptr<Engine> engine_;
  std::deque<ExecutorThread> executors_;  // as Worker::executors() has them
  std::unique_ptr<Worker> worker_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_DEVICES_LOCAL_WORKER_H_
