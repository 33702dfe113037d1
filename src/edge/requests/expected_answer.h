// How long the answer to an inference will be, by what its model says of its outputs: memory that is taken once it has
// been computed. Dimensions that vary count as 1, and so does what is not served.
#ifndef FOLIOT_EDGE_REQUESTS_EXPECTED_ANSWER_H_
#define FOLIOT_EDGE_REQUESTS_EXPECTED_ANSWER_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "answer/inference/served_names.h"

namespace foliot {

// In bytes, of tensors. `first_extent`: the first of the first input's shape, which says how many rows there are where
// the model has any. `asked_for`: whether the answer is to have the output of this name. Threading: any thread.
uint64_t expected_answer_bytes(const ServedNames& names, std::string_view model, std::string_view version,
                               int64_t first_extent, const std::function<bool(std::string_view)>& asked_for);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_EXPECTED_ANSWER_H_
