// FakeEngine: an engine for tests that computes something simple, takes no time, and
// fails where a test asks for it. Byte j of a row's output is byte j of its input,
// repeated or cut as needed, plus a number that stands for the model's weights.
//
// Threading: as Engine; what a test sets and reads, while no executor works.
#ifndef FOLIOT_ENGINE_WORKER_CONFORMANCE_FAKE_ENGINE_H_
#define FOLIOT_ENGINE_WORKER_CONFORMANCE_FAKE_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/worker/engine.h"
#include "foundation/core/payload.h"

namespace foliot {

class FakeEngine : public Engine {
 public:
  // `payloads` outlives the engine. Models have one input and one output.
  FakeEngine(PayloadStore& payloads, uint64_t io_cache_bytes, uint32_t models_max = 64);

  Result<WorkerModel> add(const EngineModel& model) override;
  Status prepare(ModelId model, size_t batch_index) override;
  void remove(ModelId model) override;
  Status load(ModelId model, std::span<const PageIndex> pages) override;
  void unload(ModelId model) override;
  void input(const InferWork& work) override;
  void output(const InferWork& work) override;
  Status run(const InferWork& work) override;

  // What run() writes for this input.
  static void compute(const ModelInfo& model, std::span<const std::byte> input, std::span<std::byte> output);

  // Of loads and runs from now on.
  void set_load_status(Status status) { load_status_ = std::move(status); }
  void set_run_status(Status status) { run_status_ = std::move(status); }

  // The pages of a loaded model.
  const std::vector<PageIndex>& pages(ModelId model) const { return entries_[model.value()].pages; }
  int unloads() const { return unloads_; }
  int outputs() const { return outputs_; }

 private:
  struct Entry {
    std::shared_ptr<const ModelInfo> info;  // nullptr: not added
    std::vector<bool> prepared;             // by batch index
    std::vector<PageIndex> pages;
    std::atomic<bool> loaded{false};
    uint64_t input_bytes = 0;  // of a row
    uint64_t output_bytes = 0;
  };
  std::span<std::byte> io(uint64_t offset, uint64_t bytes);

  PayloadStore& payloads_;
  std::vector<std::byte> io_cache_;
  std::vector<Entry> entries_;
  Status load_status_;
  Status run_status_;
  int unloads_ = 0;
  int outputs_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_CONFORMANCE_FAKE_ENGINE_H_
