// Feedback on an earlier answer, as it comes over HTTP:
//
//   {"feedback_id": "...", "label": 7}                          or [7, 3], [[0.5, 0.25]]
//   {"feedback_id": "...", "loss": 0.5}                         of the one model that was asked
//   {"feedback_id": "...", "loss": {"svm": 0, "forest": 1}}
#ifndef FOLIOT_EDGE_REQUESTS_JSON_FEEDBACK_H_
#define FOLIOT_EDGE_REQUESTS_JSON_FEEDBACK_H_

#include <cstddef>
#include <string_view>

#include "edge/requests/feedback.h"
#include "foundation/base/status.h"

namespace foliot {

// Longer JSON is refused.
inline constexpr size_t kFeedbackBytesMax = 4 << 20;

// Errors: kInvalidArgument naming the member and what it must be.
Result<Feedback> parse_feedback(std::string_view body);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_JSON_FEEDBACK_H_
