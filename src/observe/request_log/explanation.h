// explain(): a description of what happened to one request, and why.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_EXPLANATION_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_EXPLANATION_H_

#include <string>

#include "observe/request_log/log.h"
#include "observe/request_log/record.h"

namespace foliot {

// `request` is one of `log`. Where the log lacks an action that it names (dropped,
// or older than the log), the text says so. Instants are relative to the arrival.
std::string explain(const Log& log, const RequestRecord& request);

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_EXPLANATION_H_
