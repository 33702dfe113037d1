// Engine: what runs models under a worker's executors, and the contract that every
// engine keeps and the conformance suite (engine/worker/conformance/engine_conformance.h) checks.
// The native one runs compiled programs on a Device (device_engine.h), the simulator's
// only takes time (virtual/world/simulated_device.h), and one that passes batches to a process of
// its own needs nothing beyond this interface. The executors decide what is done and
// when; an engine decides nothing.
//
// A model is added, prepared one batch size at a time, loaded, run, unloaded and removed.
// An INFER is input(), run(), output(), in this order, each in an executor of its own.
//
// Errors: of load() and run() they end one action, which the worker reports as failed;
// the engine and its models can be used as before, and the action may be tried again. An
// error of run() that is kInvalidArgument is the model's: its own code failed on every row.
//
// Threading: add(), prepare() and remove() belong to one control thread, load() and
// unload() to the LOAD executor, input(), run() and output() to the INPUT, EXEC and OUTPUT
// executors, of which EXEC may have one for each lane interval; all of these may run at the
// same time.
#ifndef FOLIOT_ENGINE_WORKER_ENGINE_H_
#define FOLIOT_ENGINE_WORKER_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/device/device.h"
#include "engine/program/package.h"
#include "engine/worker/model_table.h"
#include "foundation/base/status.h"
#include "foundation/core/action.h"
#include "foundation/core/exec_part.h"
#include "foundation/core/model_info.h"
#include "foundation/core/payload.h"

namespace foliot {

// A model as an engine takes it in.
struct EngineModel {
  std::shared_ptr<const ModelInfo> info;  // its id here, tensors, batch sizes, buckets, pages
  Package package{};                      // native: its program and weights
};

// An INFER with its place in the io cache, and what of it is computed where.
struct InferWork {
  Action action;
  ExecPart part{};
  uint64_t input_offset = 0;
  uint64_t output_offset = 0;
  // Where run() notes the rows that the model's own code failed on, and output() those whose
  // outputs it cannot use; set before, and empty.
  RowSet* failed_rows = nullptr;
  // Where output() notes, by row, which conditions hold and what is counted
  // (PayloadStore::finish()); of failed rows it notes nothing.
  RowConditions* conditions = nullptr;
  RowCounts* counts = nullptr;
};

// The last of output(): all outputs are in the rows' payloads.
inline void finish_rows(PayloadStore& payloads, const InferWork& work) {
  for (uint32_t row = 0; row < work.action.rows.size(); ++row) {
    if (work.failed_rows != nullptr && work.failed_rows->test(row)) continue;
    const VisitReading reading = payloads.finish(work.action.rows[row].payload);
    if (work.conditions != nullptr) work.conditions->set(row, reading.conditions);
    if (work.counts != nullptr) work.counts->set(row, reading.count);
  }
}

class Engine {
 public:
  virtual ~Engine() = default;

  // Of its device.
  virtual uint32_t lanes() const { return 1; }

  // Takes a model in; none of its batch sizes can run yet. Returns what the worker's table
  // needs: pages, batch sizes, and the bytes of the io cache that an INFER takes. Errors:
  // kInvalidArgument for a model that is damaged or made for another kind of engine,
  // kResourceExhausted; then the engine is as it was. REQUIRES: its id is not in use.
  virtual Result<WorkerModel> add(const EngineModel& model) = 0;
  // Makes all that runs of this batch size need, in every bucket: nothing is made or
  // chosen later. `batch_index` is its position in ModelInfo::batch_sizes. Errors name what
  // could not be made; other batch sizes are as they were. REQUIRES: no INFER of this
  // batch size is outstanding.
  virtual Status prepare(ModelId model, size_t batch_index) = 0;
  // Forgets a model, also one that could not be prepared; one that is unknown is no
  // error. REQUIRES: not loaded, and no action for it outstanding.
  virtual void remove(ModelId model) = 0;

  // LOAD: puts the model into these pages, in this order. Blocks for as long as that
  // takes. On error it is not loaded, and the pages may belong to another. REQUIRES: added,
  // not loaded; as many pages as add() said, which belong to no other model.
  virtual Status load(ModelId model, std::span<const PageIndex> pages) = 0;
  // UNLOAD: the pages may belong to another model from here on. REQUIRES: loaded, and no
  // run() of it in progress on any lane.
  virtual void unload(ModelId model) = 0;

  // INPUT and OUTPUT: between the rows' payloads and the io cache, from input_offset and
  // output_offset on. No allocation, no lock, no log. REQUIRES: no other work in flight has
  // a part of these blocks; output() follows a run() that succeeded.
  virtual void input(const InferWork& work) = 0;
  virtual void output(const InferWork& work) = 0;
  // EXEC: computes the outputs of a batch, or a part of it. Rows do not depend on their neighbours, nor on
  // where the batch lies, nor on the pages of its model. No allocation by this code, no
  // lock, no log; it blocks for nothing but the computation. REQUIRES: the model is
  // loaded, the batch size prepared.
  virtual Status run(const InferWork& work) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_ENGINE_H_
