// LoadExecutor: LOAD and UNLOAD of one device; the owner of its page cache.
#ifndef FOLIOT_ENGINE_WORKER_LOAD_EXECUTOR_H_
#define FOLIOT_ENGINE_WORKER_LOAD_EXECUTOR_H_

#include "engine/worker/engine.h"
#include "engine/worker/executor.h"
#include "engine/worker/executor_queue.h"
#include "engine/worker/model_table.h"
#include "engine/worker/page_cache.h"
#include "foundation/base/spsc_ring.h"
#include "foundation/core/ports.h"

namespace foliot {

class LoadExecutor : public Executor {
 public:
  LoadExecutor(uint32_t page_count, size_t queue_capacity, ModelTable& models, Engine& engine, OutcomeSink& outcomes);

  // From the worker's one sender. False when the queue is full.
  bool submit(const Action& action) { return inbox_.push(action); }

  // LOAD without an action, before the first poll(). Errors: Engine::load()'s. REQUIRES: the
  // model is known, not resident, and there are pages for it.
  Status load_now(ModelId model);

  const char* name() const override { return "load"; }
  Step poll(TimePoint now) override;
  Status perform() override;
  void finish(TimePoint start, TimePoint end, const Status& status) override;

  const PageCache& page_cache() const { return page_cache_; }

 private:
  // kDone if the action can be done now; then what it needs has been taken.
  OutcomeStatus begin_load(const Action& action);
  OutcomeStatus begin_unload(const Action& action);
  void report(const Action& action, OutcomeStatus status, TimePoint start, TimePoint end);

  PageCache page_cache_;
  ModelTable& models_;
  Engine& engine_;
  OutcomeSink& outcomes_;
  SpscRing<Action> inbox_;
  ExecutorQueue<Action> queue_;
  Action current_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_LOAD_EXECUTOR_H_
