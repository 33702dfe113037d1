// Action and Outcome: all messages between controller and worker (Clockwork, sections
// 4.4 and 5.2).
//
// The controller decides what is done and in which window it may begin; the worker does
// exactly that or refuses, and reports the outcome.
#ifndef FOLIOT_CORE_ACTION_H_
#define FOLIOT_CORE_ACTION_H_

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/time.h"
#include "core/exec_part.h"
#include "core/ids.h"
#include "core/lanes.h"
#include "core/payload.h"

namespace foliot {

enum class ActionType : uint8_t { kLoad, kUnload, kInfer };
std::string_view to_string(ActionType type);  // "LOAD", "UNLOAD", "INFER"

inline constexpr uint32_t kBatchSizeMax = 64;
// Rows of a batch, by their positions.
using RowSet = std::bitset<kBatchSizeMax>;

// The requests that share one EXEC; fixed size, so that sending an action
// allocates nothing. Copying it costs what is in it, not what could be.
class BatchRows {
 public:
  struct Row {
    RequestId request;
    PayloadHandle payload;
    PayloadReference input{};  // its inputs, if they are elsewhere than in the payload
    uint16_t consumers = 0;    // above 0: the worker holds its outputs for so many requests
  };
  BatchRows() {}
  BatchRows(const BatchRows& other) { *this = other; }
  BatchRows& operator=(const BatchRows& other) {
    size_ = other.size_;
    std::copy_n(other.rows_, size_, rows_);
    return *this;
  }
  ~BatchRows() = default;

  void add(Row row) {
    FOLIOT_CHECK(size_ < kBatchSizeMax);
    rows_[size_++] = row;
  }
  uint32_t size() const { return size_; }
  const Row* begin() const { return rows_; }
  const Row* end() const { return rows_ + size_; }
  const Row& operator[](uint32_t i) const {
    FOLIOT_CHECK(i < size_);
    return rows_[i];
  }

 private:
  uint32_t size_ = 0;
  union {  // what is not used is not initialised
    Row rows_[kBatchSizeMax];
  };
};

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
  std::array<ConditionSet, kBatchSizeMax> conditions{};

  bool done() const { return status == OutcomeStatus::kDone; }
};

}  // namespace foliot

#endif  // FOLIOT_CORE_ACTION_H_
