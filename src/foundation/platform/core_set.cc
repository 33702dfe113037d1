#include "foundation/platform/core_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace foliot {
namespace {

std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<CoreSet> parse_core_set(std::string_view text) {
  CoreSet cores;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const size_t dash = std::min(part.find('-'), part.size());
    const std::optional<uint32_t> first = number_of(part.substr(0, dash));
    const std::optional<uint32_t> last = dash == part.size() ? first : number_of(part.substr(dash + 1));
    if (!first || !last || *first > *last || comma + 1 == text.size()) {
      return Status::invalid_argument(fmt::format("'{}' is no set of cores; write it like 0-15 or 0,2,4-7", text));
    }
    if (*last >= kCoresMax) {
      return Status::invalid_argument(fmt::format("core {} is beyond the limit of {}", *last, kCoresMax - 1));
    }
    for (uint32_t core = *first; core <= *last; ++core) cores.push_back(core);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  std::ranges::sort(cores);
  if (const auto twice = std::ranges::adjacent_find(cores); twice != cores.end()) {
    return Status::invalid_argument(fmt::format("core {} is named twice", *twice));
  }
  return cores;
}

std::string to_string(const CoreSet& cores) {
  std::string text;
  for (size_t i = 0; i < cores.size();) {
    size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += last == i ? fmt::format("{}", cores[i]) : fmt::format("{}-{}", cores[i], cores[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace foliot
