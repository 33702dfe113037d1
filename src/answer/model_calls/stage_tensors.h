// StageTensors: the outputs of a pipeline's stages for the rows of one call, which are inputs
// of later stages and, at last, outputs of the call. All of it is taken when the call comes,
// so that no run waits for another's memory. Of a stage that is visited for each element, what
// its visits make lies one behind the other, so that nothing has to be gathered.
//
// Threading: rows and stages of one call are written and read by executors, one visit of a row
// by one at a time; a visit's outputs are read only after finish() of it, by what comes after
// that (foundation/core/payload.h).
#ifndef FOLIOT_ANSWER_MODEL_CALLS_STAGE_TENSORS_H_
#define FOLIOT_ANSWER_MODEL_CALLS_STAGE_TENSORS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "foundation/core/pipeline_info.h"
#include "foundation/core/stage_slots.h"
#include "foundation/core/visit_reading.h"

namespace foliot {

class StageTensors {
 public:
  // `bucket`: of the run, for stages without one of their own.
  StageTensors(std::shared_ptr<const PipelineInfo> pipeline, BucketId bucket, uint32_t rows);

  // What one row's outputs of all stages take.
  static uint64_t row_bytes(const PipelineInfo& pipeline, BucketId bucket);

  const StageSlots& slots() const { return slots_; }

  // Where an input of a stage comes from: the first of its sources that was visited. REQUIRES:
  // there is one.
  TensorSource source(uint32_t row, uint32_t stage, uint32_t input) const;
  // The same for an output of the call; nullopt: none was visited.
  std::optional<TensorSource> source_of_output(uint32_t row, uint32_t output) const;

  // Of one visit.
  std::span<std::byte> output(uint32_t row, uint32_t slot, uint32_t index);
  // Of all visits that the stage may have: zeros stand behind the last, where later stages take them.
  std::span<const std::byte> outputs(uint32_t row, uint32_t stage, uint32_t index) const;
  // So many of these bytes are of visits that were made. REQUIRES: the stage is over.
  size_t computed_bytes(uint32_t row, uint32_t stage, uint32_t index) const;

  // All outputs of the visit are there: returns what is read of them.
  VisitReading finish(uint32_t row, uint32_t slot);
  // The stage was visited for each of no elements, elsewhere.
  void finish_empty(uint32_t row, uint32_t stage) { empty_stages_[row].set(stage); }

 private:
  static constexpr uint32_t kSlotsOfWord = 64;
  // What all visits of a stage make of one output.
  struct Tensor {
    uint64_t offset = 0;  // in a row
    uint64_t bytes = 0;
  };
  std::optional<TensorSource> first_visited(uint32_t row, std::span<const TensorSource> sources) const;
  bool is_visited(uint32_t row, uint32_t stage) const;
  // Whether it was visited for each of no elements. REQUIRES: none of its visits was made.
  bool is_empty(uint32_t row, uint32_t stage) const;
  uint32_t visits_made(uint32_t row, uint32_t stage) const;
  const VisitReading& reading(uint32_t row, uint32_t stage) const;
  // Behind the last of what is visited for each of these elements.
  void put_zeros(uint32_t row, uint32_t stage, uint32_t elements);

  const std::shared_ptr<const PipelineInfo> pipeline_;
  const StageSlots slots_;
  const uint32_t words_;                      // of a row's slots
  std::vector<std::vector<Tensor>> tensors_;  // by stage and output
  std::vector<bool> taken_whole_;             // by stage: a later one takes what all of its visits make
  uint64_t row_bytes_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<std::atomic<uint64_t>[]> finished_;  // by row and word: a bit for each slot
  // By row and stage; each is written before its stage is finished, and read after that.
  std::vector<VisitReading> readings_;
  std::vector<StageSet> empty_stages_;  // by row
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_STAGE_TENSORS_H_
