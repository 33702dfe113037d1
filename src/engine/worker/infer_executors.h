// INPUT, EXEC and OUTPUT: the three executors through which every INFER passes
// (Clockwork, section 5.2). INPUT runs on receipt, EXEC in the action's window,
// OUTPUT at once, of several results the one whose window closed first. A refused INFER
// passes through OUTPUT too, which alone gives back what INPUT took and reports the outcome.
//
// Results above kSmallBytes have an OUTPUT executor of their own, where its driver has a
// thread for it: to copy MiBs takes milliseconds, for which small results of others do not wait.
//
// A batch that is run in ranges passes through all three with each of them: INPUT copies its
// rows with the first, OUTPUT with the last, and its place in the io cache is its own from
// first to last, with the context.
//
// Whole plans that run at the same time have no lane in common, so each computes in the context
// of the device that has the number of its first lane, whichever context its action names. A
// batch in ranges may be unfinished while those run, so the contexts that actions name have
// places of their own behind these (device_contexts()).
//
// Each lane of a device has an EXEC executor of its own. An INFER that takes several lanes
// waits in the queues of all of them, and is run by that of its first.
#ifndef FOLIOT_ENGINE_WORKER_INFER_EXECUTORS_H_
#define FOLIOT_ENGINE_WORKER_INFER_EXECUTORS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/worker/engine.h"
#include "engine/worker/executor.h"
#include "engine/worker/executor_queue.h"
#include "engine/worker/io_cache.h"
#include "engine/worker/lane_claims.h"
#include "engine/worker/model_table.h"
#include "foundation/base/spsc_ring.h"
#include "foundation/core/ports.h"

namespace foliot {

// How many contexts the device of a worker must have. With one, which a batch in ranges and
// whole plans take in turn, none beyond those of the lanes.
inline uint32_t device_contexts(uint32_t lane_count, uint32_t context_count) {
  return context_count == 1 ? lane_count : lane_count + context_count;
}

// Of a batch's inputs, or of its outputs: to copy them takes less time than to wake a thread.
inline constexpr uint64_t kSmallBytes = 64 << 10;

// An INFER in flight. There is a fixed number of these, handed from executor to
// executor by index.
struct InferSlot {
  InferWork work;
  RowSet failed_rows;
  RowConditions conditions;
  RowCounts counts;
  IoCache::Block block;
  bool is_large = false;  // what OUTPUT copies
  OutcomeStatus status = OutcomeStatus::kDone;
  Duration input_duration;
  TimePoint ready;
  TimePoint exec_start;
  TimePoint exec_end;
  std::atomic<uint32_t> lanes_waiting{0};  // in the queues of so many lanes
};
using InferSlots = std::vector<InferSlot>;

class OutputExecutor;
class ExecExecutor;

// One lane of the device: its executor, and what wakes that.
struct ExecLane {
  ExecExecutor* executor;
  Waker* waker;
};

// Likewise OUTPUT of small results, and of large ones; they may be the same.
struct OutputOf {
  OutputExecutor* executor;
  Waker* waker;
};
struct OutputExecutors {
  OutputOf small;
  OutputOf large;
};

class InputExecutor : public Executor {
 public:
  InputExecutor(uint64_t io_cache_bytes, uint32_t context_count, InferSlots& slots, ModelTable& models, Engine& engine,
                OutcomeSink& outcomes, std::vector<ExecLane> lanes);

  // From the worker's one sender. False when the queue is full.
  bool submit(const Action& action) { return inbox_.push(action); }
  // From OUTPUT of small results, or of large ones: the INFER in this slot is over.
  void give_back(uint32_t slot, bool from_large);
  // Any thread: the device has so much of it from now on. Never less than before.
  void grow_io_cache(uint64_t bytes) { io_cache_bytes_.store(bytes, std::memory_order_release); }

  const char* name() const override { return "input"; }
  Step poll(TimePoint now) override;
  Status perform() override;
  void finish(TimePoint start, TimePoint end, const Status& status) override;

  uint64_t io_bytes_free() const { return io_cache_.free_bytes(); }
  // Any thread: of the io cache, in all and in use.
  uint64_t io_bytes() const { return io_cache_.bytes(); }
  uint64_t io_bytes_used() const { return io_cache_.used_bytes(); }

 private:
  // An unfinished batch, whose next range begins where the last one ended.
  struct Batch {
    Action last;
    IoCache::Block block;
    uint64_t output_offset = 0;
  };
  void take_returned();
  void take_back(uint32_t slot);
  OutcomeStatus begin(const Action& action);
  // Where the device computes it.
  ContextIndex device_context(const Action& action) const;
  // nullptr: the context does not hold what the action goes on with.
  const Batch* resumed(const Action& action) const;
  void release(std::optional<Batch>& batch);

  IoCache io_cache_;
  std::vector<std::optional<Batch>> batches_;  // by ContextIndex
  std::atomic<uint64_t> io_cache_bytes_;       // what it is to grow to
  InferSlots& slots_;
  std::vector<uint32_t> free_slots_;
  ModelTable& models_;
  Engine& engine_;
  OutcomeSink& outcomes_;
  const std::vector<ExecLane> lanes_;
  SpscRing<Action> inbox_;
  std::array<SpscRing<uint32_t>, 2> returned_;  // from OUTPUT of small results and of large ones
  uint32_t current_ = 0;
  uint64_t input_bytes_ = 0;  // of `current_`, that are copied
};

class ExecExecutor : public Executor {
 public:
  // `wakers`: of the EXEC executors of all lanes.
  ExecExecutor(uint32_t lane, LaneClaims& claims, InferSlots& slots, ModelTable& models, Engine& engine,
               std::vector<Waker*> wakers, const OutputExecutors& next);

  // From INPUT. The INFER takes this lane, perhaps among others.
  void submit(uint32_t slot);

  const char* name() const override { return "exec"; }
  Step poll(TimePoint now) override;
  Status perform() override;
  void finish(TimePoint start, TimePoint end, const Status& status) override;

 private:
  LaneInterval lanes_of(uint32_t slot) const { return slots_[slot].work.action.lanes; }
  bool leads(uint32_t slot) const { return lanes_of(slot).first == lane_; }
  // Whether this lane is not another's now; it is offered to none then.
  bool take_back();
  // Of an INFER that this lane leads: whether it has all its lanes.
  bool take_all_lanes(uint32_t slot);
  void give_lanes_back(uint32_t slot);
  // This lane gives the INFER up: its window is over.
  void drop(uint32_t slot, TimePoint now);
  void pass_on(uint32_t slot, OutcomeStatus status, TimePoint start, TimePoint end);

  const uint32_t lane_;
  LaneClaims& claims_;
  InferSlots& slots_;
  ModelTable& models_;
  Engine& engine_;
  const std::vector<Waker*> wakers_;  // by lane
  const OutputExecutors next_;
  SpscRing<uint32_t> inbox_;
  ExecutorQueue<uint32_t> queue_;
  uint32_t current_ = 0;
};

class OutputExecutor : public Executor {
 public:
  OutputExecutor(bool is_of_large, uint32_t lane_count, InferSlots& slots, Engine& engine, OutcomeSink& outcomes);

  // Whom to give slots back to; before the first poll().
  void set_first(InputExecutor& first) { first_ = &first; }
  // From EXEC of this lane.
  void submit(uint32_t lane, uint32_t slot);

  const char* name() const override { return is_of_large_ ? "large_output" : "output"; }
  Step poll(TimePoint now) override;
  Status perform() override;
  void finish(TimePoint start, TimePoint end, const Status& status) override;

 private:
  void report(uint32_t slot, Duration output_duration, TimePoint output_end);

  const bool is_of_large_;
  InferSlots& slots_;
  Engine& engine_;
  OutcomeSink& outcomes_;
  InputExecutor* first_ = nullptr;
  std::vector<std::unique_ptr<SpscRing<uint32_t>>> inboxes_;  // by lane
  ExecutorQueue<uint32_t> queue_;                             // by `latest`; nothing is refused here
  uint32_t current_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_INFER_EXECUTORS_H_
