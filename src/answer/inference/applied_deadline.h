// AppliedDeadline: the deadline that a call is held to, and what it comes from. Refusals name both: a client
// that meant another unit, or knows of no deadline at all, sees it there.
#ifndef FOLIOT_ANSWER_INFERENCE_APPLIED_DEADLINE_H_
#define FOLIOT_ANSWER_INFERENCE_APPLIED_DEADLINE_H_

#include <cstdint>

#include "foundation/base/time.h"

namespace foliot {

enum class DeadlineOrigin : uint8_t {
  kUnknown,     // there is none, or what set it is not known
  kTimeout,     // the request's parameter `timeout`, in microseconds
  kGrpcCall,    // the deadline of the gRPC call
  kDefaultSlo,  // default_slo of the model, or of the application that asks it
};

struct AppliedDeadline {
  TimePoint at = TimePoint::infinite_future();
  DeadlineOrigin origin = DeadlineOrigin::kUnknown;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_APPLIED_DEADLINE_H_
