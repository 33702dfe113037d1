#include "calls/stage_tensors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace foliot {
namespace {

// Rows and tensors begin on cache lines of their own: executors write them at the same time.
constexpr uint64_t kAlignment = 64;
static_assert(kStagesMax <= std::numeric_limits<uint32_t>::digits);

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

uint64_t output_bytes(const PipelineStage& stage, BucketId bucket, const TensorSpec& output) {
  const Bucket& dimensions = stage.model->buckets.at(stage.bucket.value_or(bucket).value());
  return byte_size(output.type, shape_in(output, dimensions));
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
    : pipeline_(std::move(pipeline)), visited_(std::make_unique<std::atomic<uint32_t>[]>(rows)) {
  for (const PipelineStage& stage : pipeline_->stages) {
    std::vector<Tensor>& tensors = tensors_.emplace_back();
    for (const TensorSpec& output : stage.model->outputs) {
      tensors.push_back({.offset = row_bytes_, .bytes = output_bytes(stage, bucket, output)});
      row_bytes_ += aligned(tensors.back().bytes);
    }
  }
  memory_ = std::make_unique_for_overwrite<std::byte[]>(row_bytes_ * rows);
}

std::optional<TensorSource> StageTensors::first_visited(uint32_t row, std::span<const TensorSource> sources) const {
  const uint32_t visited = visited_[row].load(std::memory_order_acquire);
  const auto found = std::ranges::find_if(
      sources, [&](const TensorSource& source) { return !source.stage || (visited >> *source.stage & 1) != 0; });
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

std::span<std::byte> StageTensors::output(uint32_t row, uint32_t stage, uint32_t index) {
  const Tensor& tensor = tensors_[stage][index];
  return {memory_.get() + row * row_bytes_ + tensor.offset, tensor.bytes};
}

ConditionSet StageTensors::finish(uint32_t row, uint32_t stage) {
  const PipelineStage& own = pipeline_->stages[stage];
  uint32_t held = 0;
  for (uint32_t i = 0; i < own.conditions.size(); ++i) {
    const StageCondition& condition = own.conditions[i];
    const DataType type = own.model->outputs[condition.output].type;
    if (holds(condition, type, output(row, stage, condition.output))) held |= 1u << i;
  }
  visited_[row].fetch_or(uint32_t{1} << stage, std::memory_order_release);
  return static_cast<ConditionSet>(held);
}

}  // namespace foliot
