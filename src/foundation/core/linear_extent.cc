#include "foundation/core/linear_extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace foliot {
namespace {

// So that no arithmetic on extents overflows.
constexpr int64_t kNumberMax = std::numeric_limits<int32_t>::max();

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 0 && number <= kNumberMax ? std::optional(number) : std::nullopt;
}

// Cuts ` SIGN NUMBER` off the end of the text.
std::optional<int64_t> take_last(std::string_view sign, std::string_view& text) {
  const size_t at = text.rfind(sign);
  if (at == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> number = parse_number(text.substr(at + sign.size()));
  if (number) text = text.substr(0, at);
  return number;
}

// Parses what stands before the divisor, without parentheses.
LinearExtent parse_sum(std::string_view text) {
  LinearExtent extent;
  if (const auto added = take_last(" + ", text)) {
    extent.offset = *added;
  } else if (const auto subtracted = take_last(" - ", text)) {
    extent.offset = -*subtracted;
  }
  const size_t times = text.find(" * ");
  if (times != std::string_view::npos) {
    if (const auto multiplier = parse_number(text.substr(0, times))) {
      extent.multiplier = *multiplier;
      text = text.substr(times + 3);
    }
  }
  extent.dimension = text;
  return extent;
}

}  // namespace

int64_t LinearExtent::of(int64_t extent) const {
  return std::max<int64_t>(multiplier * std::min(extent, kNumberMax) + offset, 0) / divisor;
}

std::string to_string(const LinearExtent& extent) {
  std::string text = extent.dimension;
  if (extent.multiplier != 1) text = fmt::format("{} * {}", extent.multiplier, text);
  if (extent.offset > 0) text = fmt::format("{} + {}", text, extent.offset);
  if (extent.offset < 0) text = fmt::format("{} - {}", text, -extent.offset);
  if (extent.divisor == 1) return text;
  if (text != extent.dimension) text = fmt::format("({})", text);
  return fmt::format("{} / {}", text, extent.divisor);
}

std::optional<LinearExtent> parse_linear_extent(std::string_view text) {
  const std::string_view whole = text;
  const std::optional<int64_t> divisor = take_last(" / ", text);
  if (divisor && text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  LinearExtent extent = parse_sum(text);
  extent.divisor = divisor.value_or(1);
  const bool sound = extent.multiplier >= 1 && extent.divisor >= 1 && !extent.dimension.empty();
  return sound && to_string(extent) == whole ? std::optional(std::move(extent)) : std::nullopt;
}

}  // namespace foliot
