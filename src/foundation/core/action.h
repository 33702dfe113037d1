// Action and Outcome: all messages between controller and worker (Clockwork, sections
// 4.4 and 5.2).
//
// The controller decides what is done and in which window it may begin; the worker does
// exactly that or refuses, and reports the outcome.
#ifndef FOLIOT_FOUNDATION_CORE_ACTION_H_
#define FOLIOT_FOUNDATION_CORE_ACTION_H_

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "foundation/base/bounded_array.h"
#include "foundation/base/time.h"
#include "foundation/core/exec_part.h"
#include "foundation/core/ids.h"
#include "foundation/core/lanes.h"
#include "foundation/core/payload.h"
#include "foundation/core/stage_condition.h"

namespace foliot {

enum class ActionType : uint8_t { kLoad, kUnload, kInfer };
std::string_view to_string(ActionType type);  // "LOAD", "UNLOAD", "INFER"

// Rows of one batch. As large as that are only those of containers, which gain from it; what
// is compiled has a plan for each batch size, and goes up to kCompiledBatchSizeMax.
inline constexpr uint32_t kBatchSizeMax = 256;
inline constexpr uint32_t kCompiledBatchSizeMax = 64;
// Rows of a batch, by their positions.
using RowSet = std::bitset<kBatchSizeMax>;

// One request of those that share one EXEC.
struct BatchRow {
  RequestId request;
  PayloadHandle payload;
  PayloadReference input{};  // its inputs, if they are elsewhere than in the payload
  uint16_t consumers = 0;    // above 0: the worker holds its outputs for so many requests
};

// Those of one EXEC, in place, so that sending an action allocates nothing.
class BatchRows : public BoundedArray<BatchRow, kBatchSizeMax> {
 public:
  BatchRows() {}  // NOLINT(modernize-use-equals-default): `= default` would clear all 10 kB in each Action{}
  using Row = BatchRow;
};

// A number for each row of a batch. It ends with the last one that is not 0: as few batches are of
// stages about which there is something to say, most of these are empty, and copied at no cost.
template <typename Number>
class RowNumbers {
 public:
  RowNumbers() {}  // NOLINT(modernize-use-equals-default): as of BatchRows
  RowNumbers(std::initializer_list<Number> numbers) {
    for (const Number number : numbers) set(numbers_.size(), number);
  }
  Number operator[](uint32_t row) const { return row < numbers_.size() ? numbers_[row] : Number{0}; }
  void set(uint32_t row, Number number) {
    if (row >= numbers_.size() && number == 0) return;
    while (numbers_.size() <= row) numbers_.add(0);
    numbers_[row] = number;
  }
  void clear() { numbers_.clear(); }
  // Rows from here on have 0.
  uint32_t size() const { return numbers_.size(); }
  const Number* begin() const { return numbers_.begin(); }
  const Number* end() const { return numbers_.end(); }

 private:
  BoundedArray<Number, kBatchSizeMax> numbers_;
};

// Of each row, which conditions hold.
using RowConditions = RowNumbers<ConditionSet>;
// Of each row, what it counts (VisitReading::count).
using RowCounts = RowNumbers<float>;

struct Action {
  ActionId id;
  ActionType type = ActionType::kInfer;
  DeviceId device;
  ModelId model;
  // The window in which LOAD or EXEC may begin, on the worker's clock.
  TimePoint earliest;
  TimePoint latest;
  Duration expected;  // how long the controller expects it to take
  // INFER only:
  BucketId bucket;
  uint32_t batch_size = 0;  // the compiled batch size to run; >= rows.size()
  LaneInterval lanes{};     // those that EXEC takes
  // The operators that it computes. A batch can be run in several INFERs, each with the rows
  // and from where the one before ended, in one context; INPUT belongs to the first and
  // OUTPUT to the last. Each is sent after the outcome of the one before.
  OperatorRange range{};
  ContextIndex context = 0;
  // Planned beside others (Abacus): its duration is not that of the EXEC alone. The
  // controller's own, never on the wire.
  bool in_group = false;
  BatchRows rows;
};

enum class OutcomeStatus : uint8_t {
  kDone,
  kTooLate,       // refused: `latest` had passed
  kNotLoaded,     // refused: INFER without weights, UNLOAD of nothing
  kNoPages,       // refused: LOAD without enough free pages
  kNoIoMemory,    // refused: the io cache is full
  kQueueFull,     // refused: the executor's queue is full
  kUnknownModel,  // refused: the worker was never given this model
  kBusy,          // refused: UNLOAD of a model in use, LOAD of one loaded or loading
  kFailed,        // it began, and the device reported an error
  kLost,          // its device was lost: set by the controller, never by a worker
  kNoContext,     // refused: INFER in no context of the device, or going on with a batch that is not there
  kModelError,    // it began, and the model's own code failed on every row; the device is well
};
inline constexpr OutcomeStatus kOutcomeStatusLast = OutcomeStatus::kModelError;
std::string_view to_string(OutcomeStatus status);

struct Outcome {
  ActionId action;
  ActionType type = ActionType::kInfer;
  DeviceId device;
  ModelId model;
  OutcomeStatus status = OutcomeStatus::kDone;
  // When LOAD or EXEC began and ended on the worker's clock; of a refusal, both
  // are the instant of refusal.
  TimePoint start;
  TimePoint end;
  Duration duration;  // on the device
  // INFER only:
  Duration input_duration;
  Duration output_duration;
  TimePoint output_end;  // outputs are in the payloads from here on
  // Its inputs were on the device from here on, and EXEC could have begun; zero if they
  // never were.
  TimePoint ready{};
  // kDone: rows that the model's own code failed on; they have no outputs.
  RowSet failed_rows{};
  // kDone: visits of stages whose inputs could not be had; they were computed on whatever lay
  // there, and are tried again.
  RowSet unfed_rows{};
  // kDone: by row.
  RowConditions conditions{};
  RowCounts counts{};

  bool done() const { return status == OutcomeStatus::kDone; }
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_ACTION_H_
