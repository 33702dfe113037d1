// TensorLimits: how many tensors a call may bring, and how large they may be, for any
// model: so that a call costs at most what its operator permits.
#ifndef FOLIOT_ANSWER_INFERENCE_TENSOR_LIMITS_H_
#define FOLIOT_ANSWER_INFERENCE_TENSOR_LIMITS_H_

#include <cstdint>

#include "answer/inference/query.h"
#include "foundation/base/status.h"

namespace foliot {

struct TensorLimits {
  uint32_t tensors_max = 256;  // inputs, and outputs asked for
  uint32_t rank_max = 32;
  uint64_t tensor_bytes_max = uint64_t{64} << 20;
};

// Errors: kInvalidArgument naming the tensor, the limit and the flag that raises it.
Status check(const TensorLimits& limits, const Query& query);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_TENSOR_LIMITS_H_
