// Request: the controller's view of one inference that a client waits for. Metadata
// only; inputs and outputs stay where they entered (foundation/core/payload.h).
//
// A request is one row of a batch. A client's call with several rows becomes
// several requests, joined by the front end.
#ifndef FOLIOT_FOUNDATION_CORE_REQUEST_H_
#define FOLIOT_FOUNDATION_CORE_REQUEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "foundation/core/payload.h"

namespace foliot {

inline constexpr uint32_t kTenantWeightMax = 1000;

// What a request asks for, the most urgent first. In every order and every queue a class
// comes before those after it.
enum class RequestClass : uint8_t {
  kDeadline,    // an answer by its deadline
  kBestEffort,  // an answer, soon
  kOffline,     // an answer, when nothing else wants the device
};
inline constexpr RequestClass kRequestClassLast = RequestClass::kOffline;
inline constexpr size_t kRequestClasses = static_cast<size_t>(kRequestClassLast) + 1;
// "deadline", "best_effort", "offline".
std::string_view to_string(RequestClass request_class);
// A number of requests of each class.
using CountByClass = std::array<uint64_t, kRequestClasses>;

// What a call needs of a task, beside its deadline.
struct TaskRequirements {
  static constexpr int64_t kNoCostLimit = std::numeric_limits<int64_t>::max();

  double accuracy = 0;                           // at least; in [0, 1]
  int64_t cost_nanodollars_most = kNoCostLimit;  // of one row

  bool operator==(const TaskRequirements&) const = default;
};

struct Request {
  RequestId id;
  ModelId model;
  // Above 0: it is answered by the stages of this pipeline, and `model` and `bucket` say nothing.
  PipelineId pipeline{};
  // Above 0: it is answered by a variant of this task, and `model` says nothing until the
  // controller has chosen one, for all rows of the call.
  ServedTaskId task{};
  TaskRequirements requirements{};  // of a task
  RequestId call{};                 // of a task: the first of the call's rows
  uint32_t call_rows = 1;           // of a task
  BucketId bucket;
  PayloadHandle payload;     // its inputs and outputs where it entered
  PayloadReference input{};  // its inputs, if they are elsewhere
  // So many requests will refer to its outputs: its worker holds them, and only the
  // reference comes back (Completion::outputs). In one process they are in the payload.
  uint16_t consumers = 0;
  TimePoint arrival;  // stamped by the front end
  // When the controller has to know that it is done; infinite: best effort, or offline.
  TimePoint deadline = TimePoint::infinite_future();
  // The time that the rest of the path needs after the inference, until the answer leaves
  // for the client: the deadline is that much earlier than the client's.
  Duration reserve{};

  // Position in the order in which the controller admitted requests; set by the
  // controller. Requests with equal deadlines are served in this order. Ids do not give
  // it: front ends choose them freely.
  uint64_t sequence = 0;

  TenantId tenant;
  uint32_t tenant_weight = 1;  // of its share beside those of others, from 1 to kTenantWeightMax

  // Of class kOffline; it then has no deadline.
  bool offline = false;
  // Its call is answered in time without it, too: so it is run where it is in time more likely than
  // not, although that cannot be promised.
  bool optional = false;

  // Without a deadline.
  bool best_effort() const { return deadline.is_infinite(); }
  RequestClass request_class() const {
    return offline ? RequestClass::kOffline : best_effort() ? RequestClass::kBestEffort : RequestClass::kDeadline;
  }
  // The client's deadline.
  TimePoint answer_by() const { return deadline + reserve; }
};

// The id of the tenant with this name, the same everywhere. Of two that happen to have
// the same one, each counts as the other.
TenantId tenant_named(std::string_view name);

// Why a request was not answered with an inference.
enum class Refusal : uint8_t {
  kNone,
  kUnmeetable,    // even alone on an idle device it would miss its deadline
  kOverload,      // what is queued before it leaves no time, or a queue is full
  kExpired,       // its time ran out while it waited
  kLate,          // it ran, and the answer came after the deadline
  kWorkerLost,    // its device failed, was lost or refused the action; or there is none
  kUnloaded,      // its model was removed
  kCancelled,     // the client went away
  kDraining,      // the server is shutting down
  kDisconnected,  // the connection to the controller was lost
  kOverShare,     // its tenant asks for more than its share, and others would have to wait for it
  kModelError,    // the model's own code failed on it
};
inline constexpr Refusal kRefusalLast = Refusal::kModelError;

// "unmeetable", "overload", "expired", "late", "worker_lost", "unloaded", "cancelled", "draining",
// "disconnected", "over_share", "model_error".
std::string_view to_string(Refusal refusal);

// Of a task's call that is refused as kUnmeetable for no lack of time: what no variant satisfies.
enum class UnmetRequirement : uint8_t { kNone, kAccuracy, kCost };
inline constexpr UnmetRequirement kUnmetRequirementLast = UnmetRequirement::kCost;
// "accuracy", "cost"; empty for kNone.
std::string_view to_string(UnmetRequirement unmet);

// The one answer to a request.
struct Completion {
  RequestId id;
  ModelId model;
  PipelineId pipeline{};  // above 0: of a run, and `model` says nothing
  // Above 0: of a task's call, and `model` is the variant that was chosen or came nearest.
  ServedTaskId task{};
  PayloadHandle payload;
  Refusal refusal = Refusal::kNone;                  // kNone: outputs are in the payload, or held:
  PayloadReference outputs{};                        // where, for the consumers that the request announced
  std::string detail;                                // for people; empty when served
  UnmetRequirement unmet = UnmetRequirement::kNone;  // for observers of the controller: not on the wire
  TimePoint arrival;
  TimePoint deadline;
  TimePoint finished;
  // Of a refusal: when the answer could have been ready at the earliest, as
  // predicted; zero if unknown.
  TimePoint earliest_completion;

  // Of a request that ran:
  uint32_t batch_size = 0;
  bool cold_start = false;  // its model was not loaded when it arrived
  TimePoint exec_start;
  Duration input_duration;
  Duration exec_duration;
  Duration output_duration;
  ConditionSet conditions = 0;  // of a visit of a stage: those that hold
  float count = 0;              // likewise: what it counts
  // The action that answered it, and where: its outputs, and no others, count.
  ActionId action;
  DeviceId device;
  // Of a run: the same of each visit of a stage whose outputs the client may get.
  struct VisitAnswer {
    uint32_t slot = 0;
    ActionId action;
    DeviceId device;

    bool operator==(const VisitAnswer&) const = default;
  };
  std::vector<VisitAnswer> visits{};
  // Likewise: such stages that were visited for each of no elements, ascending.
  std::vector<uint32_t> empty_stages{};

  bool served() const { return refusal == Refusal::kNone; }
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_REQUEST_H_
