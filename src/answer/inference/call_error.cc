#include "answer/inference/call_error.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

constexpr Duration kRetryAfterDefault = Duration::seconds(1);

struct Codes {
  unsigned http_status;
  GrpcCode grpc_code;
};

Codes codes_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument: return {400, GrpcCode::kInvalidArgument};
    case StatusCode::kNotFound: return {404, GrpcCode::kNotFound};
    case StatusCode::kAlreadyExists: return {409, GrpcCode::kAlreadyExists};
    case StatusCode::kResourceExhausted: return {507, GrpcCode::kResourceExhausted};
    case StatusCode::kUnimplemented: return {501, GrpcCode::kUnimplemented};
    case StatusCode::kUnavailable: return {503, GrpcCode::kUnavailable};
    case StatusCode::kInternal: return {500, GrpcCode::kInternal};
    case StatusCode::kOk: break;
  }
  FOLIOT_CHECK(false);
}

Codes codes_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::kOverShare: return {429, GrpcCode::kResourceExhausted};
    case Refusal::kModelError: return {500, GrpcCode::kInternal};
    case Refusal::kOverload: return {503, GrpcCode::kResourceExhausted};
    case Refusal::kExpired:
    case Refusal::kLate: return {504, GrpcCode::kDeadlineExceeded};
    case Refusal::kCancelled: return {499, GrpcCode::kCancelled};
    case Refusal::kUnmeetable:
    case Refusal::kWorkerLost:
    case Refusal::kUnloaded:
    case Refusal::kDisconnected:
    case Refusal::kDraining: return {503, GrpcCode::kUnavailable};
    case Refusal::kNone: break;
  }
  FOLIOT_CHECK(false);
}

// Whether a later deadline could have been met.
bool may_be_for_its_deadline(Refusal refusal) {
  return refusal == Refusal::kUnmeetable || refusal == Refusal::kOverload || refusal == Refusal::kExpired ||
         refusal == Refusal::kLate || refusal == Refusal::kWorkerLost;
}

std::string_view to_string(DeadlineOrigin origin) {
  switch (origin) {
    case DeadlineOrigin::kUnknown: return "";
    case DeadlineOrigin::kTimeout: return " (parameter 'timeout', in microseconds)";
    case DeadlineOrigin::kGrpcCall: return " (deadline of the gRPC call)";
    case DeadlineOrigin::kDefaultSlo: return " (default_slo)";
  }
  FOLIOT_CHECK(false);
}

}  // namespace

CallError call_error(const Status& status) {
  const Codes codes = codes_of(status.code());
  CallError error{.http_status = codes.http_status,
                  .grpc_code = codes.grpc_code,
                  .message = status.message(),
                  .reason = {},
                  .earliest_completion = {},
                  .retry_after = {}};
  if (error.http_status == 503) error.retry_after = kRetryAfterDefault;
  return error;
}

CallError call_error(Refusal refusal, std::string_view model, std::string_view detail, TimePoint arrival,
                     TimePoint finished, TimePoint earliest, const AppliedDeadline& deadline) {
  const Codes codes = codes_of(refusal);
  CallError error{.http_status = codes.http_status,
                  .grpc_code = codes.grpc_code,
                  .message = {},
                  .reason = to_string(refusal),
                  .earliest_completion = {},
                  .retry_after = {}};
  const bool predicted = earliest > TimePoint() && !earliest.is_infinite();
  if (predicted) error.earliest_completion = earliest - arrival;
  // By the time of another try, the deadline that cannot be met has passed.
  const bool may_be_tried_again = error.http_status == 429 || error.http_status == 503;
  if (may_be_tried_again && refusal != Refusal::kUnmeetable)
    error.retry_after = predicted ? std::max(earliest - finished, Duration()) : kRetryAfterDefault;

  error.message = fmt::format("model '{}' refused the request: {}", model, error.reason);
  if (refusal == Refusal::kModelError) {
    error.message += ": its own code failed on it";
    if (detail.empty()) error.message += "; the server's log has the reason";
  }
  if (!detail.empty()) error.message += fmt::format(": {}", detail);
  if (may_be_for_its_deadline(refusal) && !deadline.at.is_infinite()) {
    error.message += fmt::format("; its deadline was {:.3f} ms after arrival{}",
                                 (deadline.at - arrival).to_milliseconds(), to_string(deadline.origin));
  }
  if (predicted)
    error.message +=
        fmt::format("; earliest completion {:.3f} ms after arrival", error.earliest_completion->to_milliseconds());
  return error;
}

int64_t retry_after_seconds(Duration retry_after) {
  constexpr int64_t kSecond = Duration::seconds(1).nanoseconds();
  return std::max<int64_t>(1, retry_after.nanoseconds() / kSecond + (retry_after.nanoseconds() % kSecond > 0 ? 1 : 0));
}

}  // namespace foliot
