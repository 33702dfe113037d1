#include "foundation/json/bounded_json.h"

#include <fmt/format.h>

namespace foliot {
namespace {

constexpr size_t kShownBytesMax = 64;

// The index of the quote that ends the string that begins at `start`, or of the end of `text`.
size_t end_of_string(std::string_view text, size_t start) {
  size_t i = start + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return i;
}

}  // namespace

Status check_json_bounds(std::string_view text, const JsonBounds& bounds) {
  if (text.size() > bounds.bytes_max) {
    return Status::invalid_argument(
        fmt::format("{} bytes of JSON; at most {} are read here", text.size(), bounds.bytes_max));
  }
  size_t depth = 0;
  // Each value but the outermost follows an opening bracket or a comma.
  size_t values = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"': i = end_of_string(text, i); break;
      case '[':
      case '{':
        ++values;
        if (++depth > bounds.depth_max) {
          return Status::invalid_argument(
              fmt::format("the JSON nests lists and objects more than {} deep", bounds.depth_max));
        }
        break;
      case ']':
      case '}': depth -= depth > 0 ? 1 : 0; break;
      case ',': ++values; break;
      default: break;
    }
    if (values > bounds.values_max) {
      return Status::invalid_argument(
          fmt::format("the JSON has more than {} values, which is as many as are read here", bounds.values_max));
    }
  }
  return Status();
}

Result<nlohmann::json> parse_bounded_json(std::string_view text, const JsonBounds& bounds) {
  FOLIOT_RETURN_IF_ERROR(check_json_bounds(text, bounds));
  return nlohmann::json::parse(text, nullptr, false);
}

std::string shown_json(const nlohmann::json& value) {
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kShownBytesMax ? text : text.substr(0, kShownBytesMax) + "...";
}

}  // namespace foliot
