// CallError: the reason why a client's call was not answered with an inference, in the
// terms of both protocols.
#ifndef FOLIOT_ANSWER_INFERENCE_CALL_ERROR_H_
#define FOLIOT_ANSWER_INFERENCE_CALL_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "answer/inference/applied_deadline.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

// gRPC's canonical codes, so that only one file needs gRPC's headers.
enum class GrpcCode : int {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

struct CallError {
  unsigned http_status = 500;
  GrpcCode grpc_code = GrpcCode::kInternal;
  std::string message;
  // Of a refusal, its name ("overload"); otherwise empty.
  std::string_view reason;
  // When the answer could have been ready, counted from arrival, as predicted.
  std::optional<Duration> earliest_completion;
  // When another try makes sense, counted from now. Nothing where none can help: of a 503, where the deadline
  // cannot be met.
  std::optional<Duration> retry_after;
  // Its number in the log; 0: the controller never had it.
  RequestId request;
};

CallError call_error(const Status& status);

// `arrival`, `finished` and `earliest` as in Completion; `earliest` zero: unknown. `deadline`: named where it
// may be why the call is refused. REQUIRES: refusal != kNone.
CallError call_error(Refusal refusal, std::string_view model, std::string_view detail, TimePoint arrival,
                     TimePoint finished, TimePoint earliest, const AppliedDeadline& deadline = {});

// The whole seconds that HTTP's Retry-After takes, at least 1.
int64_t retry_after_seconds(Duration retry_after);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_CALL_ERROR_H_
