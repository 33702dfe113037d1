// explain(): a description of what happened to one request, and why.
#ifndef FOLIOT_TRACE_EXPLANATION_H_
#define FOLIOT_TRACE_EXPLANATION_H_

#include <string>

#include "trace/log.h"
#include "trace/record.h"

namespace foliot {

// `request` is one of `log`. Where the log lacks an action that it names (dropped,
// or older than the log), the text says so. Instants are relative to the arrival.
std::string explain(const Log& log, const RequestRecord& request);

}  // namespace foliot

#endif  // FOLIOT_TRACE_EXPLANATION_H_
