// bounded_json: JSON text that others wrote, read within bounds.
//
// What a client sends is counted before it is parsed, in one pass that takes no memory: a parser's time and memory
// follow the number of values, and whatever visits a value by recursion follows their depth. Members of an object are
// found in logarithmic time.
//
// Threading: any thread.
#ifndef FOLIOT_FOUNDATION_JSON_BOUNDED_JSON_H_
#define FOLIOT_FOUNDATION_JSON_BOUNDED_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

struct JsonBounds {
  size_t bytes_max = 64 << 10;
  size_t depth_max = 32;  // lists and objects within each other
  size_t values_max = 16 << 10;
};

// Errors: kInvalidArgument naming the bound that `text` exceeds. That it is JSON is not checked.
Status check_json_bounds(std::string_view text, const JsonBounds& bounds);
// Text within its bounds that is not JSON gives a value that is_discarded(). Errors: as check_json_bounds().
Result<nlohmann::json> parse_bounded_json(std::string_view text, const JsonBounds& bounds = {});
// For messages: the value as printable JSON, of which no more than 64 bytes are shown. REQUIRES: it was parsed within a
// depth_max.
std::string shown_json(const nlohmann::json& value);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_JSON_BOUNDED_JSON_H_
