#include "foundation/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace foliot {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kDurationUnits{Unit{"ns", 1},  Unit{"us", 1e3}, Unit{"ms", 1e6},
                                    Unit{"s", 1e9}, Unit{"m", 60e9}, Unit{"h", 3600e9}};
constexpr std::array kByteUnits{Unit{"B", 1},        Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20},
                                Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40}, Unit{"kB", 1e3},
                                Unit{"MB", 1e6},     Unit{"GB", 1e9},     Unit{"TB", 1e12}};

std::optional<double> parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0) || !std::isfinite(number)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& candidate : units) {
    if (candidate.name != unit) continue;
    const double value = number * candidate.factor;
    if (value < 0x1p62) return value;
  }
  return std::nullopt;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (const auto value = parse(text, kDurationUnits)) return Duration::nanoseconds(static_cast<int64_t>(*value));
  return Status::invalid_argument(
      fmt::format("'{}' is not a duration; write a number and a unit, e.g. 50ms or 1.5s", text));
}

Result<uint64_t> parse_bytes(std::string_view text) {
  if (const auto value = parse(text, kByteUnits)) return static_cast<uint64_t>(*value);
  return Status::invalid_argument(
      fmt::format("'{}' is not a size; write a number and a unit, e.g. 256MiB or 4GiB", text));
}

std::string format_duration(Duration duration) {
  const double ns = static_cast<double>(duration.nanoseconds());
  if (std::abs(ns) < 1e6) return fmt::format("{:.3g} us", ns * 1e-3);
  if (std::abs(ns) < 1e9) return fmt::format("{:.3g} ms", ns * 1e-6);
  return fmt::format("{:.3f} s", ns * 1e-9);
}

std::string format_bytes(uint64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (b < 0x1p10) return fmt::format("{} B", bytes);
  if (b < 0x1p20) return fmt::format("{:.1f} KiB", b * 0x1p-10);
  if (b < 0x1p30) return fmt::format("{:.1f} MiB", b * 0x1p-20);
  return fmt::format("{:.2f} GiB", b * 0x1p-30);
}

}  // namespace foliot
