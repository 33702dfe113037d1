// span_json(): spans as the body of an OTLP request over HTTP (ExportTraceServiceRequest, in Protobuf's JSON as OTLP
// changes it: ids are hexadecimal, enumerations numbers).
#ifndef FOLIOT_OBSERVE_TRACING_SPAN_JSON_H_
#define FOLIOT_OBSERVE_TRACING_SPAN_JSON_H_

#include <span>
#include <string>
#include <string_view>

#include "foundation/base/time.h"
#include "observe/tracing/span.h"

namespace foliot {

// `since_1970`: of the instant TimePoint(). `instance`: of the process. Names may have any bytes.
std::string span_json(std::span<const Span> spans, Duration since_1970, std::string_view instance);

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_TRACING_SPAN_JSON_H_
