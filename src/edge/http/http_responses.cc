#include "edge/http/http_responses.h"

#include <fmt/format.h>

#include <utility>

#include "edge/requests/error_json.h"

namespace foliot {

HttpResponse json_response(std::string json) {
  HttpResponse response;
  response.body.push_back(std::move(json));
  return response;
}

HttpResponse error_response(const CallError& error) {
  HttpResponse response = json_response(to_json(error));
  response.status = error.http_status;
  if (error.retry_after)
    response.headers.emplace_back("Retry-After", std::to_string(retry_after_seconds(*error.retry_after)));
  if (error.request != RequestId())
    response.headers.emplace_back(kRequestHeader, std::to_string(error.request.value()));
  if (error.http_status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse error_response(const Status& status) { return error_response(call_error(status)); }

bool method_is(HttpExchange& exchange, std::string_view wanted) {
  const std::string_view method = exchange.method() == "HEAD" ? "GET" : exchange.method();
  if (method == wanted) return true;
  HttpResponse response = error_response(
      Status::invalid_argument(fmt::format("method {} is not allowed; use {}", exchange.method(), wanted)));
  response.status = 405;
  response.headers.emplace_back("Allow", std::string(wanted));
  exchange.respond(std::move(response));
  return false;
}

}  // namespace foliot
