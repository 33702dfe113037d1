// Responses that several parts of the HTTP protocol give.
#ifndef FOLIOT_EDGE_HTTP_HTTP_RESPONSES_H_
#define FOLIOT_EDGE_HTTP_HTTP_RESPONSES_H_

#include <string>
#include <string_view>

#include "answer/inference/call_error.h"
#include "edge/http/http_server.h"
#include "foundation/base/status.h"

namespace foliot {

// The header of a response that holds the request's number in the log.
inline constexpr std::string_view kRequestHeader = "Foliot-Request";

HttpResponse json_response(std::string json);
HttpResponse error_response(const CallError& error);
HttpResponse error_response(const Status& status);

// Answers 405 unless the method is `wanted`. HEAD is a GET whose answer has no body.
bool method_is(HttpExchange& exchange, std::string_view wanted);

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_RESPONSES_H_
