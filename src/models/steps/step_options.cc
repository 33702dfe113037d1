#include "models/steps/step_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <system_error>

namespace foliot {

void StepOptions::fail(const std::string& what) {
  if (status_.ok()) status_ = Status::invalid_argument(fmt::format("step '{}': {}", step_, what));
}

const StepOption* StepOptions::find(const std::string& name) {
  read_.insert(name);
  const auto found = options_.find(name);
  return found == options_.end() ? nullptr : &found->second;
}

std::optional<double> StepOptions::number(const std::string& name) {
  const StepOption* const option = find(name);
  if (option == nullptr) return std::nullopt;
  if (const auto* whole = std::get_if<int64_t>(option)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(option)) return *real;
  fail(fmt::format("{} must be a number", name));
  return std::nullopt;
}

std::string StepOptions::text(const std::string& name, std::string_view example) {
  const StepOption* const option = find(name);
  const auto* value = option == nullptr ? nullptr : std::get_if<std::string>(option);
  if (value != nullptr && !value->empty()) return *value;
  fail(fmt::format("{} {}: write {} = \"{}\"", name, option == nullptr ? "is missing" : "must be a text", name,
                   example));
  return {};
}

std::string StepOptions::file(const std::string& name, std::string_view example, size_t bytes_max) {
  const std::filesystem::path path = text(name, example);
  if (path.empty()) return {};
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
    fail(fmt::format("{} '{}': must be a file in the pipeline's folder, such as \"{}\"", name, path.string(), example));
    return {};
  }
  std::error_code error;
  // Opening a FIFO waits for a writer that may never come.
  if (std::filesystem::exists(folder_ / path, error) && !std::filesystem::is_regular_file(folder_ / path, error)) {
    fail(fmt::format("{} '{}': is no regular file", name, (folder_ / path).string()));
    return {};
  }
  std::ifstream stream(folder_ / path, std::ios::binary);
  std::string content(bytes_max + 1, '\0');
  stream.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<size_t>(stream.gcount()));
  if (content.empty()) fail(fmt::format("{} '{}': is empty or cannot be read", name, (folder_ / path).string()));
  if (content.size() > bytes_max) {
    fail(fmt::format("{} '{}': is larger than {} bytes", name, (folder_ / path).string(), bytes_max));
  }
  return content;
}

int64_t StepOptions::integer(const std::string& name, int64_t min, int64_t max, std::optional<int64_t> otherwise) {
  const StepOption* const option = find(name);
  if (option == nullptr) {
    if (!otherwise) fail(fmt::format("{} is missing: write {} = {} to {}", name, name, min, max));
    return otherwise.value_or(min);
  }
  const auto* value = std::get_if<int64_t>(option);
  if (value == nullptr) {
    fail(fmt::format("{} must be a whole number, {} to {}", name, min, max));
  } else if (*value < min || *value > max) {
    fail(fmt::format("{} {}: must be {} to {}", name, *value, min, max));
  } else {
    return *value;
  }
  return min;
}

double StepOptions::real(const std::string& name, double min, double max, std::optional<double> otherwise) {
  const std::optional<double> value = number(name);
  if (!value) {
    if (!otherwise) fail(fmt::format("{} is missing: write a number, {} to {}", name, min, max));
    return otherwise.value_or(min);
  }
  if (*value >= min && *value <= max) return *value;
  fail(fmt::format("{} {}: must be {} to {}", name, *value, min, max));
  return min;
}

std::string StepOptions::choice(const std::string& name, std::span<const std::string_view> choices) {
  const StepOption* const option = find(name);
  if (option == nullptr) return std::string(choices.front());
  const auto* value = std::get_if<std::string>(option);
  if (value != nullptr && std::ranges::find(choices, *value) != choices.end()) return *value;
  fail(fmt::format("{} {}must be one of {}", name, value == nullptr ? "" : fmt::format("'{}': ", *value),
                   fmt::join(choices, ", ")));
  return std::string(choices.front());
}

std::vector<double> StepOptions::reals(const std::string& name, size_t count, double min, double max,
                                       const std::vector<double>& otherwise) {
  const StepOption* const option = find(name);
  if (option == nullptr) return otherwise;
  const auto* values = std::get_if<std::vector<double>>(option);
  const auto fits = [&](double value) { return value >= min && value <= max; };
  if (values != nullptr && values->size() == count && std::ranges::all_of(*values, fits)) return *values;
  fail(fmt::format("{} must be a list of {} numbers, each {} to {}", name, count, min, max));
  return otherwise;
}

std::vector<int64_t> StepOptions::integers(const std::string& name, size_t count_max, int64_t min, int64_t max) {
  const StepOption* const option = find(name);
  if (option == nullptr) return {};
  const auto* values = std::get_if<std::vector<double>>(option);
  const auto fits = [&](double value) {
    return value == std::floor(value) && value >= static_cast<double>(min) && value <= static_cast<double>(max);
  };
  if (values != nullptr && !values->empty() && values->size() <= count_max && std::ranges::all_of(*values, fits)) {
    return {values->begin(), values->end()};
  }
  fail(fmt::format("{} must be a list of 1 to {} whole numbers, each {} to {}", name, count_max, min, max));
  return {min};
}

Status StepOptions::status() const {
  if (!status_.ok()) return status_;
  for (const auto& [name, value] : options_) {
    if (!read_.contains(name)) {
      return Status::invalid_argument(
          fmt::format("step '{}': there is no option '{}'; the options are {}", step_, name, fmt::join(read_, ", ")));
    }
  }
  return Status();
}

}  // namespace foliot
