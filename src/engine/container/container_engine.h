// ContainerEngine: the engine that passes batches to the process of a container
// (Engine, engine/worker/engine.h). Its io cache is the memory that the two share, so that
// inputs are copied into it once, and outputs out of it once.
//
// A model has no pages worth the name: LOAD and UNLOAD do nothing. Batches hold the rows
// that there are, and no padding.
//
// Threading: as Engine, with one EXEC executor.
#ifndef FOLIOT_ENGINE_CONTAINER_CONTAINER_ENGINE_H_
#define FOLIOT_ENGINE_CONTAINER_CONTAINER_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/container/container_process.h"
#include "engine/worker/engine.h"
#include "foundation/core/payload.h"

namespace foliot {

// How long an EXEC may take before its process is killed. One whose rows have a deadline: until then, but several times
// what is expected of it, and `late_reserve`, which leaves room for a pause and for a call that is only slow. All
// others, and these at most: several times what is expected, and `reserve`, which leaves room for a pause of the whole
// machine.
struct ContainerTimeouts {
  int64_t factor = 4;
  Duration late_reserve = Duration::milliseconds(100);
  Duration reserve = Duration::seconds(1);

  // Of a batch that begins now.
  Duration of(const Action& action, TimePoint now) const;
  // Of the process after so many that were killed by these. One in eight of them, the second first, has all of the
  // reserve, so that one that is only slow ends its call, and is measured.
  static ContainerTimeouts after(uint32_t kills);
};

class ContainerEngine : public Engine {
 public:
  // References outlive the engine; `process` shares memory already. ModelId values are below
  // `models_max`.
  ContainerEngine(ContainerProcess& process, PayloadStore& payloads, uint32_t models_max,
                  ContainerTimeouts timeouts = {});

  // Errors: kInvalidArgument if the model's inputs and outputs, or its batch sizes, are not
  // the container's. EngineModel::package is not used.
  Result<WorkerModel> add(const EngineModel& model) override;
  Status prepare(ModelId model, size_t batch_index) override;
  void remove(ModelId model) override;
  Status load(ModelId model, std::span<const PageIndex> pages) override;
  void unload(ModelId model) override;
  void input(const InferWork& work) override;
  // Any byte but zero in a BOOL becomes 1. A row that has an output beyond its bound counts as
  // failed.
  void output(const InferWork& work) override;
  // Errors: kInvalidArgument if the container's code failed on every row; otherwise
  // ContainerProcess::call()'s.
  Status run(const InferWork& work) override;

 private:
  void note(const CallFailures& failures, const InferWork& work);
  void take_bounded(const TensorSpec& output, std::span<const std::byte> from, std::span<std::byte> to, uint32_t row,
                    const InferWork& work);

  ContainerProcess& process_;
  PayloadStore& payloads_;
  ContainerTimeouts timeouts_;
  // By model: whether it was added. Only checked.
  std::vector<std::atomic<bool>> added_;
  std::vector<uint64_t> input_row_bytes_;
  std::vector<uint64_t> output_row_bytes_;
};

// Memory that `batches` INFERs of the largest batch take.
uint64_t container_memory_bytes(const ContainerDescription& description, uint32_t batches);

// What the outside knows of a container as a model: inputs, outputs, one bucket, one page,
// and these batch sizes with their seed durations. Its id, name, version and the like are the
// caller's. REQUIRES: as many durations as batch sizes.
ModelInfo container_model(const ContainerDescription& description, std::string kind, std::vector<uint32_t> batch_sizes,
                          std::vector<Duration> durations);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_CONTAINER_ENGINE_H_
