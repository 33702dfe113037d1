// The body of an HTTP response that is an error.
#ifndef FOLIOT_EDGE_REQUESTS_ERROR_JSON_H_
#define FOLIOT_EDGE_REQUESTS_ERROR_JSON_H_

#include <string>

#include "answer/inference/call_error.h"

namespace foliot {

// {"error": ..., "reason": ..., "earliest_completion_ms": ..., "request": ...}
std::string to_json(const CallError& error);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_ERROR_JSON_H_
