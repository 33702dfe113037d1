// StageTensors: the outputs of a pipeline's stages for the rows of one call, which are inputs
// of later stages and, at last, outputs of the call. All of it is taken when the call comes,
// so that no run waits for another's memory.
//
// Threading: rows and stages of one call are written and read by executors, one stage of a row
// by one at a time; a stage's outputs are read only after finish() of it, by what comes after
// that (core/payload.h).
#ifndef FOLIOT_CALLS_STAGE_TENSORS_H_
#define FOLIOT_CALLS_STAGE_TENSORS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/pipeline_info.h"

namespace foliot {

class StageTensors {
 public:
  // `bucket`: of the run, for stages without one of their own.
  StageTensors(std::shared_ptr<const PipelineInfo> pipeline, BucketId bucket, uint32_t rows);

  // What one row's outputs of all stages take.
  static uint64_t row_bytes(const PipelineInfo& pipeline, BucketId bucket);

  // Where an input of a stage comes from: the first of its sources that was visited. REQUIRES:
  // there is one.
  TensorSource source(uint32_t row, uint32_t stage, uint32_t input) const;
  // The same for an output of the call; nullopt: none was visited.
  std::optional<TensorSource> source_of_output(uint32_t row, uint32_t output) const;

  std::span<std::byte> output(uint32_t row, uint32_t stage, uint32_t index);
  // All outputs of the stage are there: returns which of its conditions hold.
  ConditionSet finish(uint32_t row, uint32_t stage);

 private:
  struct Tensor {
    uint64_t offset = 0;  // in a row
    uint64_t bytes = 0;
  };
  std::optional<TensorSource> first_visited(uint32_t row, std::span<const TensorSource> sources) const;

  const std::shared_ptr<const PipelineInfo> pipeline_;
  std::vector<std::vector<Tensor>> tensors_;  // by stage and output
  uint64_t row_bytes_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<std::atomic<uint32_t>[]> visited_;  // by row: a bit for each stage
};

}  // namespace foliot

#endif  // FOLIOT_CALLS_STAGE_TENSORS_H_
