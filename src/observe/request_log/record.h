// RequestRecord and ActionRecord: the records of a log, one for each request and each
// action (at least the fields of Clockwork's own logs), and the port through which they
// are kept. Those of feedback are in foundation/core/feedback_record.h.
//
// Instants are of the clock of the loop that was recorded; in a log they count
// from its origin. An infinite instant means that there is none.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_RECORD_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/call_label.h"
#include "foundation/core/feedback_record.h"
#include "foundation/core/ids.h"
#include "foundation/core/lanes.h"
#include "foundation/core/request.h"

namespace foliot {

inline constexpr TimePoint kNoTime = TimePoint::infinite_future();

// One request, when its Completion was given.
struct RequestRecord {
  RequestId id;
  std::string_view model;   // owned by the maker of the record
  std::string_view task{};  // likewise; empty: the request named the model itself
  BucketId bucket;
  TimePoint arrival = kNoTime;
  RequestClass request_class = RequestClass::kDeadline;
  TimePoint deadline = kNoTime;  // of class kDeadline
  std::optional<Duration> slo;   // deadline - arrival
  uint32_t queue_length = 0;     // requests queued when it arrived, of all models
  bool cold_start = false;       // its model was loaded nowhere when it arrived
  uint32_t returns = 0;          // how often a worker refused the action that carried it
  Refusal refusal = Refusal::kNone;
  UnmetRequirement unmet = UnmetRequirement::kNone;  // of a refusal of a task's call
  TimePoint departure = kNoTime;                     // when it was answered or refused
  TimePoint earliest_completion = kNoTime;           // of a refusal, as predicted; none: unknown
  // The LOAD that brought its model, where that ended after it had arrived.
  std::optional<ActionId> load;
  // The last INFER that carried it, where one did:
  std::optional<ActionId> action;
  std::optional<DeviceId> device;
  uint32_t batch_size = 0;
  // Of a request that ran:
  TimePoint exec_start = kNoTime;
  Duration input_duration;
  Duration exec_duration;
  Duration output_duration;
  // What its client calls it, and how an application chose its model; null: neither is there.
  std::shared_ptr<const CallLabel> label;

  bool served() const { return refusal == Refusal::kNone; }
  // From arrival to answer or refusal.
  Duration latency() const { return departure - arrival; }
};

// One action, when its Outcome was known.
struct ActionRecord {
  ActionId id;
  ActionType type = ActionType::kInfer;
  DeviceId device;
  std::string_view model;  // owned by the maker of the record
  uint32_t pages = 0;      // of the model's weights
  TimePoint sent = kNoTime;
  TimePoint outcome = kNoTime;  // when the controller received it
  TimePoint earliest = kNoTime;
  TimePoint latest = kNoTime;
  // As they looked when it was sent; of LOAD and INFER.
  TimePoint expected_start = kNoTime;
  TimePoint expected_end = kNoTime;
  Duration expected_duration;
  TimePoint start = kNoTime;  // of LOAD or EXEC; of a refusal, when it was refused
  TimePoint end = kNoTime;
  Duration duration;
  OutcomeStatus status = OutcomeStatus::kDone;
  uint32_t queue_length = 0;  // requests queued when it was sent, without its own
  // INFER only:
  BucketId bucket;
  uint32_t batch_size = 0;
  Duration input_duration;
  Duration output_duration;
  TimePoint output_end = kNoTime;
  uint32_t rows = 0;
  std::span<const RequestId> requests{};  // so many; owned by the maker of the record
  LaneInterval lanes{};                   // of an earlier version's log: the first one
  // Of any type:
  std::string_view kind;  // of the device; owned by the maker of the record; empty: an earlier version's log

  bool done() const { return status == OutcomeStatus::kDone; }
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void add(const RequestRecord& request) = 0;
  virtual void add(const ActionRecord& action) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_RECORD_H_
