// ModelTable: the models that a worker was given, and which of them have their
// weights in the page cache.
//
// Threading: add() and remove() belong to one control thread; the LOAD executor
// changes residency, the INPUT and EXEC executors read it. EXEC and UNLOAD of one
// model exclude each other by begin_exec() and begin_unload().
#ifndef FOLIOT_ENGINE_WORKER_MODEL_TABLE_H_
#define FOLIOT_ENGINE_WORKER_MODEL_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/device.h"
#include "foundation/core/ids.h"

namespace foliot {

// Bytes of the io cache that one INFER takes.
struct IoBytes {
  uint64_t input = 0;
  uint64_t output = 0;
};

struct WorkerModel {
  ModelId id;
  uint32_t pages = 1;
  std::vector<uint32_t> batch_sizes;  // ascending
  std::vector<IoBytes> io_bytes;      // [bucket * batch_sizes.size() + position of the batch size]
  // Likewise: how many operators a batch can be cut into; empty: unknown, any cut is taken.
  std::vector<uint32_t> operator_counts{};

  // Position of the plan for this bucket and batch size, or nullopt.
  std::optional<uint32_t> plan(BucketId bucket, uint32_t batch_size) const;
};

class ModelTable {
 public:
  // ModelId values must be below `models_max`.
  explicit ModelTable(uint32_t models_max);

  // REQUIRES: the id is not in use.
  void add(WorkerModel model);
  // REQUIRES: present, not resident, and no action for it outstanding.
  void remove(ModelId id);
  // nullptr if unknown.
  const WorkerModel* find(ModelId id) const;

  bool resident(ModelId id) const;

  // LOAD executor. The pages of a resident or loading model.
  std::vector<PageIndex>& pages(ModelId id);
  void set_resident(ModelId id);
  // False if an EXEC of the model is under way; then nothing has changed.
  bool begin_unload(ModelId id);

  // EXEC executors, of several lanes at once. False if not resident; otherwise end_exec()
  // must follow.
  bool begin_exec(ModelId id);
  void end_exec(ModelId id);

 private:
  struct Slot {
    std::atomic<bool> known{false};
    std::atomic<bool> resident{false};
    std::atomic<uint32_t> executing{0};  // EXECs under way
    WorkerModel model;
    std::vector<PageIndex> pages;
  };
  Slot& slot(ModelId id);
  const Slot& slot(ModelId id) const;

  uint32_t models_max_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_MODEL_TABLE_H_
