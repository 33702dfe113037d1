#include "edge/jobs/request_member.h"

#include <fmt/format.h>

#include "foundation/json/bounded_json.h"

namespace foliot {

Status take_text(const RequestJson& value, const std::string& name, std::string& to) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    return Status::invalid_argument(
        fmt::format("'{}' must be a text that is not empty, not {}", name, shown_json(value)));
  }
  to = value.get<std::string>();
  return Status();
}

Status take_number(const RequestJson& value, std::string_view what, bool (*is_valid)(double),
                   std::optional<double>& to) {
  if (value.is_number() && is_valid(value.get<double>())) {
    to = value.get<double>();
    return Status();
  }
  return Status::invalid_argument(fmt::format("{}, not {}", what, shown_json(value)));
}

}  // namespace foliot
