#include "cluster/sessions/staging_area.h"

#include <numeric>

#include "foundation/base/check.h"

namespace foliot {
namespace {

std::vector<uint64_t> bytes_of(const std::vector<TensorSpec>& tensors, const Bucket& bucket) {
  std::vector<uint64_t> bytes;
  for (const TensorSpec& tensor : tensors) {
    bytes.push_back(row_bytes(tensor, bucket));
  }
  return bytes;
}

uint64_t sum(const std::vector<uint64_t>& bytes, size_t count) {
  return std::accumulate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count), uint64_t{0});
}

}  // namespace

uint64_t RowLayout::bytes() const { return sum(inputs, inputs.size()) + sum(outputs, outputs.size()); }

RowLayout row_layout(const ModelInfo& model, BucketId bucket) {
  const Bucket& dimensions = model.buckets.at(bucket.value());
  return {bytes_of(model.inputs, dimensions), bytes_of(model.outputs, dimensions)};
}

StagingArea::StagingArea(uint64_t bytes, uint32_t batches_max)
    : memory_(std::make_unique_for_overwrite<std::byte[]>(bytes)), blocks_(bytes, batches_max), slots_(batches_max) {
  for (Batch batch = batches_max; batch-- > 0;) free_.push_back(batch);
}

std::optional<StagingArea::Batch> StagingArea::acquire(const RowLayout& layout, uint32_t rows) {
  if (free_.empty()) return std::nullopt;
  const std::optional<IoCache::Block> block = blocks_.acquire(layout.bytes() * rows);
  if (!block) return std::nullopt;
  const Batch batch = free_.back();
  free_.pop_back();
  slots_[batch] = {*block, &layout};
  return batch;
}

void StagingArea::release(Batch batch) {
  blocks_.release(slots_[batch].block);
  slots_[batch] = {};
  free_.push_back(batch);
}

std::span<std::byte> StagingArea::row(PayloadHandle payload, const RowLayout*& layout) {
  const Slot& slot = slots_[payload.value() >> 32];
  FOLIOT_CHECK(slot.layout != nullptr);
  layout = slot.layout;
  const uint64_t row_bytes = layout->bytes();
  const uint64_t offset = static_cast<uint32_t>(payload.value()) * row_bytes;
  FOLIOT_CHECK(offset + row_bytes <= slot.block.bytes);
  return {memory_.get() + slot.block.offset + offset, row_bytes};
}

std::span<std::byte> StagingArea::input_space(PayloadHandle payload, uint32_t index) {
  const RowLayout* layout = nullptr;
  const std::span<std::byte> bytes = row(payload, layout);
  return bytes.subspan(sum(layout->inputs, index), layout->inputs.at(index));
}

std::span<std::byte> StagingArea::output(PayloadHandle payload, uint32_t index) {
  const RowLayout* layout = nullptr;
  const std::span<std::byte> bytes = row(payload, layout);
  return bytes.subspan(sum(layout->inputs, layout->inputs.size()) + sum(layout->outputs, index),
                       layout->outputs.at(index));
}

}  // namespace foliot
