// WorkerMetrics: a worker's own measurements as Prometheus series: its actions and
// their durations, its executors, its memory and its links, by device (its position in the
// worker).
//
// Beside a controller's series of the same actions these also exist while the
// controller cannot be reached, and they count what it no longer waits for.
//
// Threading: the Observer's calls belong to one thread; text() may be called from any.
#ifndef FOLIOT_OBSERVE_METRICS_WORKER_METRICS_H_
#define FOLIOT_OBSERVE_METRICS_WORKER_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "foundation/core/observer.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

// Bytes of a worker's io cache, which may grow.
struct IoCacheBytes {
  uint64_t used = 0;
  uint64_t all = 0;
};

// The memory that a device took.
struct WorkerMemory {
  uint32_t page_count = 0;
  std::function<IoCacheBytes()> io_cache;  // any thread
};

// Given to the worker: on_model(), on_action() and on_outcome() of what it was sent, with
// the positions of its devices as their ids.
class WorkerMetrics : public Observer, public MetricsSource {
 public:
  enum class Links { kNone, kShown };  // kNone: front end and controller are in this process

  explicit WorkerMetrics(Links links);
  ~WorkerMetrics() override;

  // Any thread, before the first action: of each device. Series of the memory begin with
  // this.
  void set_memory(std::vector<WorkerMemory> devices);
  // The worker was registered with the controller, or the controller was lost.
  void on_controller(bool connected);
  // So many front ends are attached.
  void on_frontends(uint32_t count);
  // What stages of pipelines computed became inputs of other stages: it was held by this worker,
  // or fetched from another.
  void on_stage_inputs(uint64_t bytes, bool fetched);

  std::string text() const override;

  void on_model(const ModelInfo& model) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  // One that joins later has no memory to be shown.
  void on_device(const DeviceChange& change, TimePoint now) override;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_WORKER_METRICS_H_
