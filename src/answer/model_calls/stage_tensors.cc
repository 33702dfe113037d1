#include "answer/model_calls/stage_tensors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/core/tensor_part.h"

namespace foliot {
namespace {

// Rows and tensors begin on cache lines of their own: executors write them at the same time.
constexpr uint64_t kAlignment = 64;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Of all visits.
uint64_t output_bytes(const PipelineStage& stage, BucketId bucket, const TensorSpec& output) {
  const Bucket& dimensions = stage.model->buckets.at(stage.bucket.value_or(bucket).value());
  return byte_size(output.type, shape_in(output, dimensions)) * stage.visits_most();
}

bool takes_whole(const PipelineStage& stage, uint32_t from) {
  return std::ranges::any_of(stage.inputs, [from](const std::vector<TensorSource>& sources) {
    return std::ranges::any_of(sources,
                               [from](const TensorSource& source) { return source.stage == from && !source.each; });
  });
}

}  // namespace

uint64_t StageTensors::row_bytes(const PipelineInfo& pipeline, BucketId bucket) {
  uint64_t bytes = 0;
  for (const PipelineStage& stage : pipeline.stages) {
    for (const TensorSpec& output : stage.model->outputs) bytes += aligned(output_bytes(stage, bucket, output));
  }
  return bytes;
}

StageTensors::StageTensors(std::shared_ptr<const PipelineInfo> pipeline, BucketId bucket, uint32_t rows)
    : pipeline_(std::move(pipeline)),
      slots_(*pipeline_),
      words_((slots_.size() + kSlotsOfWord - 1) / kSlotsOfWord),
      finished_(std::make_unique<std::atomic<uint64_t>[]>(size_t{rows} * words_)),
      readings_(size_t{rows} * pipeline_->stages.size()),
      empty_stages_(rows) {
  for (uint32_t stage = 0; stage < pipeline_->stages.size(); ++stage) {
    std::vector<Tensor>& tensors = tensors_.emplace_back();
    for (const TensorSpec& output : pipeline_->stages[stage].model->outputs) {
      tensors.push_back({.offset = row_bytes_, .bytes = output_bytes(pipeline_->stages[stage], bucket, output)});
      row_bytes_ += aligned(tensors.back().bytes);
    }
    taken_whole_.push_back(std::ranges::any_of(
        pipeline_->stages, [stage](const PipelineStage& later) { return takes_whole(later, stage); }));
  }
  memory_ = std::make_unique_for_overwrite<std::byte[]>(row_bytes_ * rows);
}

// ---- What was visited ----

uint32_t StageTensors::visits_made(uint32_t row, uint32_t stage) const {
  uint32_t made = 0;
  for (uint32_t slot = slots_.first(stage); slot < slots_.first(stage) + slots_.count(stage); ++slot) {
    const uint64_t word = finished_[row * words_ + slot / kSlotsOfWord].load(std::memory_order_acquire);
    made += word >> slot % kSlotsOfWord & 1;
  }
  return made;
}

bool StageTensors::is_visited(uint32_t row, uint32_t stage) const {
  return visits_made(row, stage) > 0 || (pipeline_->stages[stage].for_each && is_empty(row, stage));
}

// As its sources and conditions say: whatever they depend on is over where this is asked of what is
// settled, and else the stage is not visited yet.
bool StageTensors::is_empty(uint32_t row, uint32_t stage) const {
  if (empty_stages_[row].test(stage)) return true;
  const PipelineStage& own = pipeline_->stages[stage];
  const uint32_t counts = own.for_each->stage;
  if (!pipeline_->stages[counts].count || visits_made(row, counts) == 0 || reading(row, counts).count != 0)
    return false;
  const auto is_there = [&](const TensorSource& source) { return !source.stage || is_visited(row, *source.stage); };
  return std::ranges::all_of(own.requires_all,
                             [&](const PipelineStage::Requirement& required) {
                               return is_visited(row, required.stage) &&
                                      (reading(row, required.stage).conditions >> required.condition & 1) != 0;
                             }) &&
         std::ranges::all_of(own.inputs, [&](const auto& sources) { return std::ranges::any_of(sources, is_there); });
}

const VisitReading& StageTensors::reading(uint32_t row, uint32_t stage) const {
  return readings_[row * pipeline_->stages.size() + stage];
}

std::optional<TensorSource> StageTensors::first_visited(uint32_t row, std::span<const TensorSource> sources) const {
  const auto found = std::ranges::find_if(
      sources, [&](const TensorSource& source) { return !source.stage || is_visited(row, *source.stage); });
  return found == sources.end() ? std::nullopt : std::optional(*found);
}

TensorSource StageTensors::source(uint32_t row, uint32_t stage, uint32_t input) const {
  const std::optional<TensorSource> found = first_visited(row, pipeline_->stages[stage].inputs[input]);
  FOLIOT_CHECK(found);
  return *found;
}

std::optional<TensorSource> StageTensors::source_of_output(uint32_t row, uint32_t output) const {
  return first_visited(row, pipeline_->outputs[output].sources);
}

// ---- What it made ----

std::span<std::byte> StageTensors::output(uint32_t row, uint32_t slot, uint32_t index) {
  const auto [stage, element] = slots_.at(slot);
  const Tensor& tensor = tensors_[stage][index];
  const std::span<std::byte> whole(memory_.get() + row * row_bytes_ + tensor.offset, tensor.bytes);
  return part_of(whole, {element, slots_.count(stage)});
}

std::span<const std::byte> StageTensors::outputs(uint32_t row, uint32_t stage, uint32_t index) const {
  const Tensor& tensor = tensors_[stage][index];
  return {memory_.get() + row * row_bytes_ + tensor.offset, tensor.bytes};
}

size_t StageTensors::computed_bytes(uint32_t row, uint32_t stage, uint32_t index) const {
  return tensors_[stage][index].bytes / slots_.count(stage) * visits_made(row, stage);
}

VisitReading StageTensors::finish(uint32_t row, uint32_t slot) {
  const uint32_t stage = slots_.at(slot).stage;
  const PipelineStage& own = pipeline_->stages[stage];
  const VisitReading read = read_visit(own.conditions, own.count, own.model->outputs,
                                       [&](uint32_t i) { return std::span<const std::byte>(output(row, slot, i)); });
  if (!own.for_each) readings_[row * pipeline_->stages.size() + stage] = read;
  if (own.count) put_zeros(row, stage, whole_count(read.count, own.count->at_most).value_or(0));
  finished_[row * words_ + slot / kSlotsOfWord].fetch_or(uint64_t{1} << slot % kSlotsOfWord, std::memory_order_release);
  return read;
}

void StageTensors::put_zeros(uint32_t row, uint32_t stage, uint32_t elements) {
  for (uint32_t later = stage + 1; later < pipeline_->stages.size(); ++later) {
    const auto& for_each = pipeline_->stages[later].for_each;
    if (!for_each || for_each->stage != stage || !taken_whole_[later]) continue;
    for (const Tensor& tensor : tensors_[later]) {
      std::byte* const begin = memory_.get() + row * row_bytes_ + tensor.offset;
      std::fill(begin + tensor.bytes / for_each->at_most * elements, begin + tensor.bytes, std::byte());
    }
  }
}

}  // namespace foliot
