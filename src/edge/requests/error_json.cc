#include "edge/requests/error_json.h"

#include <fmt/format.h>

#include <iterator>

#include "edge/requests/json_text.h"

namespace foliot {

std::string to_json(const CallError& error) {
  std::string json = "{\"error\":";
  append_json_string(json, error.message);
  if (!error.reason.empty()) {
    json += ",\"reason\":";
    append_json_string(json, error.reason);
  }
  if (error.earliest_completion)
    fmt::format_to(std::back_inserter(json), ",\"earliest_completion_ms\":{:.3f}",
                   error.earliest_completion->to_milliseconds());
  if (error.request != RequestId())
    fmt::format_to(std::back_inserter(json), ",\"request\":\"{}\"", error.request.value());
  json += '}';
  return json;
}

}  // namespace foliot
