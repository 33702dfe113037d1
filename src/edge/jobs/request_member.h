// Members of the JSON object that a job of some kind is asked by, checked one by one. Errors: kInvalidArgument naming
// the member, its value and what is allowed.
#ifndef FOLIOT_EDGE_JOBS_REQUEST_MEMBER_H_
#define FOLIOT_EDGE_JOBS_REQUEST_MEMBER_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

using RequestJson = nlohmann::json;

// A text that is not empty.
Status take_text(const RequestJson& value, const std::string& name, std::string& to);
// `what`: the member and what it must be, for the error.
Status take_number(const RequestJson& value, std::string_view what, bool (*is_valid)(double),
                   std::optional<double>& to);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REQUEST_MEMBER_H_
