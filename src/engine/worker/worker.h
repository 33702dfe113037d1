// Worker: one device and its executors: LOAD, INPUT, OUTPUT, that of large results, and EXEC of each lane. It does
// what actions demand, within their windows, or refuses; it chooses nothing (Clockwork,
// section 4.4).
//
// Threading: send() belongs to one thread at a time (the controller's loop or a link);
// add_model(), remove_model() and grow_io_cache() to one control thread; each executor to its
// driver. Outcomes are reported from the LOAD, INPUT and OUTPUT executors.
#ifndef FOLIOT_ENGINE_WORKER_WORKER_H_
#define FOLIOT_ENGINE_WORKER_WORKER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/worker/engine.h"
#include "engine/worker/infer_executors.h"
#include "engine/worker/load_executor.h"
#include "engine/worker/model_table.h"
#include "foundation/core/ports.h"

namespace foliot {

struct WorkerOptions {
  uint32_t page_count = 0;
  uint64_t io_cache_bytes = 0;
  uint32_t models_max = 16384;
  // Actions waiting or under way, of each kind; one more is refused as kQueueFull.
  uint32_t loads_in_flight_max = 256;
  uint32_t infers_in_flight_max = 64;
  uint32_t lane_count = 1;     // up to kLanesMax
  uint32_t context_count = 1;  // likewise, kContextsMax; that actions name
};

// The wakers of the executors' drivers.
struct WorkerWakers {
  Waker& load;
  Waker& input;
  Waker& exec;  // of lane 0
  Waker& output;
  std::vector<Waker*> other_lanes{};  // of EXEC of lanes 1, 2, ...
  Waker* large_output = nullptr;      // of OUTPUT of large results; null: `output` has them, too
};

class Worker : public ActionSink {
 public:
  // All references outlive the worker.
  Worker(const WorkerOptions& options, Engine& engine, OutcomeSink& outcomes, const WorkerWakers& wakers);

  void add_model(WorkerModel model) { models_.add(std::move(model)); }
  void remove_model(ModelId id) { models_.remove(id); }
  // LoadExecutor::load_now(), for a device that holds a model when it joins.
  Status load_now(ModelId id) { return load_.load_now(id); }
  void grow_io_cache(uint64_t bytes) { input_.grow_io_cache(bytes); }
  bool resident(ModelId id) const { return models_.resident(id); }

  void send(const Action& action) override;

  // LOAD, INPUT, EXEC of lane 0, OUTPUT; EXEC of lanes 1, 2, ...; OUTPUT of large results, if it has a waker
  std::vector<Executor*> executors();
  const LoadExecutor& load() const { return load_; }
  const InputExecutor& input() const { return input_; }

 private:
  std::vector<std::unique_ptr<ExecExecutor>> make_lanes(uint32_t count, Engine& engine);

  OutcomeSink& outcomes_;
  WorkerWakers wakers_;
  ModelTable models_;
  InferSlots slots_;
  LoadExecutor load_;
  OutputExecutor output_;
  OutputExecutor large_output_;
  LaneClaims claims_;
  std::vector<std::unique_ptr<ExecExecutor>> lanes_;
  InputExecutor input_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_WORKER_H_
