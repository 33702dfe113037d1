// StagingArea: the memory in which a worker keeps the inputs and outputs of the batches
// that came over a link, between the link's thread and its executors.
//
// A fixed amount of memory, taken at construction, and a fixed number of batches; the
// caller refuses what has no room, before any input is fetched.
//
// Threading: acquire(), release() and input_space() belong to the link's thread;
// input() and output() to any while the batch is with the executors.
#ifndef FOLIOT_CLUSTER_SESSIONS_STAGING_AREA_H_
#define FOLIOT_CLUSTER_SESSIONS_STAGING_AREA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/worker/io_cache.h"
#include "foundation/core/model_info.h"
#include "foundation/core/payload.h"

namespace foliot {

// Bytes of each input and output of one row, in the model's order.
struct RowLayout {
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> outputs;

  uint64_t bytes() const;
};

// REQUIRES: the model has such a bucket.
RowLayout row_layout(const ModelInfo& model, BucketId bucket);

class StagingArea : public PayloadStore {
 public:
  StagingArea(uint64_t bytes, uint32_t batches_max);

  using Batch = uint32_t;
  // Room for so many rows; nullopt if there is none. `layout` outlives the batch.
  std::optional<Batch> acquire(const RowLayout& layout, uint32_t rows);
  void release(Batch batch);

  static PayloadHandle payload(Batch batch, uint32_t row) { return PayloadHandle(uint64_t{batch} << 32 | row); }
  std::span<std::byte> input_space(PayloadHandle payload, uint32_t index);
  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override {
    return input_space(payload, index);
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override;

 private:
  struct Slot {
    IoCache::Block block;
    const RowLayout* layout = nullptr;
  };
  std::span<std::byte> row(PayloadHandle payload, const RowLayout*& layout);

  std::unique_ptr<std::byte[]> memory_;
  IoCache blocks_;
  std::vector<Slot> slots_;
  std::vector<Batch> free_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_STAGING_AREA_H_
