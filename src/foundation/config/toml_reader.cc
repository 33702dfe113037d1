#include "foundation/config/toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "foundation/base/units.h"

namespace foliot {
namespace {

constexpr size_t kShownBytesMost = 60;
constexpr size_t kShownElementsMost = 8;

// As an error names it.
std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (const toml::array* const array = node.as_array()) {
    std::vector<std::string> elements;
    for (const toml::node& element : *array) {
      if (elements.size() == kShownElementsMost) {
        elements.emplace_back("...");
        break;
      }
      elements.push_back(element.is_array() ? "a list" : shown(element));
    }
    return fmt::format("[{}]", fmt::join(elements, ", "));
  }
  if (const auto* const text = node.as_string()) {
    const std::string& value = text->get();
    return value.size() <= kShownBytesMost
               ? fmt::format("'{}'", value)
               : fmt::format("'{}...' ({} bytes)", value.substr(0, kShownBytesMost), value.size());
  }
  std::ostringstream stream;
  stream << toml::node_view(node);
  return stream.str();
}

}  // namespace

std::string TomlReader::where() const { return fmt::format("{}:{}", file_, table_->source().begin.line); }

std::vector<std::string> TomlReader::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : *table_) keys.emplace_back(key.str());
  return keys;
}

void TomlReader::fail_at(const toml::source_region& where, std::string_view message) {
  if (status_.ok()) status_ = Status::invalid_argument(fmt::format("{}:{}: {}", file_, where.begin.line, message));
}

void TomlReader::fail(std::string_view key, std::string_view message) {
  const toml::node* node = table_->get(key);
  fail_at(node == nullptr ? table_->source() : node->source(), fmt::format("'{}' {}", key, message));
}

void TomlReader::fail_value(std::string_view key, std::string_view must) {
  const toml::node* const node = table_->get(key);
  fail(key, node == nullptr ? std::string(must) : fmt::format("{}, not {}", must, shown(*node)));
}

void TomlReader::fail(std::string_view message) { fail_at(table_->source(), message); }

const toml::node* TomlReader::take(std::string_view key) {
  known_.emplace(key);
  return status_.ok() ? table_->get(key) : nullptr;
}

void TomlReader::any_text(std::string_view key, std::string& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto* value = node->as_string();
  if (value == nullptr) return fail_value(key, "must be a text");
  to = value->get();
}

void TomlReader::text(std::string_view key, std::string& to) {
  any_text(key, to);
  if (has(key) && to.empty()) fail_value(key, "must be a text that is not empty");
}

void TomlReader::text(std::string_view key, std::optional<std::string>& to) {
  if (has(key)) text(key, to.emplace());
  known_.emplace(key);
}

void TomlReader::texts(std::string_view key, std::vector<std::string>& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  if (node->is_string()) {
    to.assign(1, "");
    return text(key, to.front());
  }
  const auto* array = node->as_array();
  if (array == nullptr || array->empty()) return fail_value(key, "must be a text or a list of texts");
  to.clear();
  for (const auto& element : *array) {
    const auto* value = element.as_string();
    if (value == nullptr || value->get().empty()) return fail_value(key, "must be a text or a list of texts");
    to.push_back(value->get());
  }
}

void TomlReader::flag(std::string_view key, bool& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto* value = node->as_boolean();
  if (value == nullptr) return fail_value(key, "must be true or false");
  to = value->get();
}

std::optional<double> TomlReader::real(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
  if (value && std::isfinite(*value)) return value;
  fail_value(key, "must be a number");
  return std::nullopt;
}

void TomlReader::number(std::string_view key, double& to) { to = real(key).value_or(to); }

void TomlReader::not_negative(std::string_view key, double& to) {
  number(key, to);
  if (to < 0) fail_value(key, "must not be negative");
}

void TomlReader::positive(std::string_view key, double& to) {
  number(key, to);
  if (to <= 0) fail_value(key, "must be above 0");
}

void TomlReader::share(std::string_view key, double& to) {
  number(key, to);
  if (to < 0 || to > 1) fail_value(key, "must be from 0 to 1");
}

void TomlReader::whole(std::string_view key, uint64_t& to, uint64_t min, uint64_t max) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto* value = node->as_integer();
  if (value == nullptr || value->get() < 0 || static_cast<uint64_t>(value->get()) < min ||
      static_cast<uint64_t>(value->get()) > max) {
    return fail_value(key, fmt::format("must be a whole number from {} to {}", min, max));
  }
  to = static_cast<uint64_t>(value->get());
}

void TomlReader::whole(std::string_view key, uint32_t& to, uint32_t min, uint32_t max) {
  uint64_t value = to;
  whole(key, value, uint64_t{min}, uint64_t{max});
  to = static_cast<uint32_t>(value);
}

void TomlReader::whole(std::string_view key, std::optional<uint32_t>& to, uint32_t min, uint32_t max) {
  if (has(key)) whole(key, to.emplace(), min, max);
  known_.emplace(key);
}

void TomlReader::ascending(std::string_view key, std::vector<uint32_t>& to, uint32_t max) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto wrong = [&] {
    const std::string limit = max == std::numeric_limits<uint32_t>::max() ? "on" : fmt::format("to {}", max);
    fail_value(key, fmt::format("must be a list of whole numbers from 1 {}, in ascending order", limit));
  };
  const auto* array = node->as_array();
  if (array == nullptr || array->empty()) return wrong();
  std::vector<uint32_t> numbers;
  for (const auto& element : *array) {
    const auto* value = element.as_integer();
    const int64_t least = numbers.empty() ? 1 : int64_t{numbers.back()} + 1;
    if (value == nullptr || value->get() < least || value->get() > max) return wrong();
    numbers.push_back(static_cast<uint32_t>(value->get()));
  }
  to = std::move(numbers);
}

void TomlReader::wholes(std::string_view key, std::vector<uint32_t>& to, uint32_t max) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto wrong = [&] { fail_value(key, fmt::format("must be a list of whole numbers from 0 to {}", max)); };
  const auto* array = node->as_array();
  if (array == nullptr) return wrong();
  std::vector<uint32_t> numbers;
  for (const auto& element : *array) {
    const auto* value = element.as_integer();
    if (value == nullptr || value->get() < 0 || value->get() > max) return wrong();
    numbers.push_back(static_cast<uint32_t>(value->get()));
  }
  to = std::move(numbers);
}

void TomlReader::weights(std::string_view key, std::vector<double>& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto wrong = [&] { fail_value(key, "must be a list of numbers from 0 on, of which one is above 0"); };
  const auto* array = node->as_array();
  if (array == nullptr) return wrong();
  std::vector<double> weights;
  for (const auto& element : *array) {
    const std::optional<double> weight = element.value<double>();
    if (!element.is_number() || !(*weight >= 0) || !std::isfinite(*weight)) return wrong();
    weights.push_back(*weight);
  }
  if (std::ranges::none_of(weights, [](double weight) { return weight > 0; })) return wrong();
  to = std::move(weights);
}

void TomlReader::duration(std::string_view key, Duration& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto* value = node->as_string();
  if (value == nullptr) return fail_value(key, "must be a duration in quotes, e.g. \"50ms\"");
  const Result<Duration> parsed = parse_duration(value->get());
  if (!parsed.ok()) return fail(key, "is wrong: " + parsed.status().message());
  to = *parsed;
}

void TomlReader::duration(std::string_view key, std::optional<Duration>& to) {
  if (has(key)) duration(key, to.emplace());
  known_.emplace(key);
}

void TomlReader::duration_or_auto(std::string_view key, std::optional<Duration>& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const std::string value = node->value_or(std::string());
  if (value == "auto") return to.reset();
  const Result<Duration> parsed = parse_duration(value);
  if (!parsed.ok()) return fail_value(key, "must be a duration in quotes, e.g. \"5ms\", or \"auto\"");
  to = *parsed;
}

void TomlReader::positive(std::string_view key, Duration& to) {
  duration(key, to);
  if (to <= Duration()) fail_value(key, "must be above 0");
}

void TomlReader::positive(std::string_view key, std::optional<Duration>& to) {
  duration(key, to);
  if (to && *to <= Duration()) fail_value(key, "must be above 0");
}

void TomlReader::durations(std::string_view key, std::vector<Duration>& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto* array = node->as_array();
  if (array == nullptr || array->empty()) return fail_value(key, "must be a list of durations in quotes");
  to.clear();
  for (const auto& element : *array) {
    const auto* value = element.as_string();
    if (value == nullptr) return fail_value(key, "must be a list of durations in quotes");
    const Result<Duration> parsed = parse_duration(value->get());
    if (!parsed.ok()) return fail(key, "is wrong: " + parsed.status().message());
    to.push_back(*parsed);
  }
}

void TomlReader::bytes(std::string_view key, uint64_t& to) {
  const toml::node* node = take(key);
  if (node == nullptr) return;
  const auto* value = node->as_string();
  if (value == nullptr) return fail_value(key, "must be a size in quotes, e.g. \"16MiB\"");
  const Result<uint64_t> parsed = parse_bytes(value->get());
  if (!parsed.ok()) return fail(key, "is wrong: " + parsed.status().message());
  to = *parsed;
}

void TomlReader::bytes(std::string_view key, std::optional<uint64_t>& to) {
  if (has(key)) bytes(key, to.emplace());
  known_.emplace(key);
}

std::optional<TomlReader> TomlReader::table(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_table();
  if (value != nullptr) return TomlReader(*value, file_);
  fail_value(key, fmt::format("must be a table: [{}]", key));
  return std::nullopt;
}

std::vector<TomlReader> TomlReader::tables(std::string_view key) {
  std::vector<TomlReader> readers;
  const toml::node* node = take(key);
  if (node == nullptr) return readers;
  const auto* array = node->as_array();
  if (array == nullptr || !array->is_homogeneous(toml::node_type::table)) {
    fail_value(key, fmt::format("must be a list of tables: [[{}]]", key));
    return readers;
  }
  for (const auto& element : *array) readers.emplace_back(*element.as_table(), file_);
  return readers;
}

Status TomlReader::finish() {
  for (const auto& [key, value] : *table_) {
    if (known_.contains(key.str())) continue;
    fail_at(key.source(), fmt::format("unknown key '{}'; known here are {}", key.str(), fmt::join(known_, ", ")));
  }
  return status_;
}

}  // namespace foliot
