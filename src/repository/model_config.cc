#include "repository/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/units.h"
#include "config/toml_file.h"
#include "core/action.h"

namespace foliot {
namespace {

class Reader {
 public:
  Reader(const std::filesystem::path& file, ModelConfig& config) : file_(file), config_(config) {}

  Status read(const toml::table& table) {
    for (const auto& [key, value] : table) FOLIOT_RETURN_IF_ERROR(read_key(key.str(), value));
    return Status();
  }

 private:
  Status error(const toml::node& node, std::string_view message) const {
    return Status::invalid_argument(fmt::format("{}:{}: {}", file_.string(), node.source().begin.line, message));
  }

  Status read_key(std::string_view key, const toml::node& value) {
    if (key == "name") return read_text(key, value, config_.name.emplace());
    if (key == "batch_dimension") return read_batch_dimension(value);
    if (key == "default_slo") return read_default_slo(value);
    if (key == "weight") return read_weight(value);
    if (key == "cache") return read_cache(value);
    if (key == "batch_sizes") return read_batch_sizes(value);
    if (key == "precision") return read_precision(value);
    if (key == "buckets") return read_buckets(value);
    if (key == "container") return read_container(value);
    return error(value, fmt::format("unknown key '{}'; known are name, default_slo, weight, cache, batch_sizes, "
                                    "batch_dimension, precision, and the tables [buckets] and [container]",
                                    key));
  }

  Status read_text(std::string_view key, const toml::node& value, std::string& to) {
    const auto* text = value.as_string();
    if (text == nullptr || text->get().empty()) return error(value, fmt::format("'{}' must be a text", key));
    to = text->get();
    return Status();
  }

  // One name, or a list of them.
  Status read_batch_dimension(const toml::node& value) {
    std::vector<std::string>& names = config_.compile.batch_dimensions;
    names.clear();
    if (value.is_string()) return read_text("batch_dimension", value, names.emplace_back());
    const auto* array = value.as_array();
    if (array == nullptr || array->empty()) {
      return error(value, "'batch_dimension' must be a name in quotes, or a list of names, e.g. [\"s10\", \"s86\"]");
    }
    for (const auto& element : *array)
      FOLIOT_RETURN_IF_ERROR(read_text("batch_dimension", element, names.emplace_back()));
    return Status();
  }

  Status read_default_slo(const toml::node& value) {
    const auto* text = value.as_string();
    if (text == nullptr) return error(value, "'default_slo' must be a duration in quotes, e.g. \"50ms\"");
    const Result<Duration> slo = parse_duration(text->get());
    if (!slo.ok()) return error(value, "'default_slo': " + slo.status().message());
    if (*slo <= Duration()) return error(value, "'default_slo' must be more than zero");
    config_.default_slo = *slo;
    return Status();
  }

  Status read_weight(const toml::node& value) {
    const std::optional<double> weight = value.value<double>();
    if (!weight || !std::isfinite(*weight) || *weight <= 0) {
      return error(value, "'weight' must be a number above 0: what one answer is worth against one of another model");
    }
    config_.weight = *weight;
    return Status();
  }

  Status read_cache(const toml::node& value) {
    const auto* cache = value.as_boolean();
    if (cache == nullptr) {
      return error(value,
                   "'cache' must be true or false: whether equal inputs may be answered with an earlier prediction");
    }
    config_.cache = cache->get();
    return Status();
  }

  Status read_container(const toml::node& value) {
    FOLIOT_ASSIGN_OR_RETURN(config_.container, read_container_config(file_, value));
    return Status();
  }

  // Positive whole numbers in ascending order.
  Result<std::vector<int64_t>> read_ascending(std::string_view key, const toml::node& value) {
    const auto* array = value.as_array();
    if (array == nullptr || array->empty()) return error(value, fmt::format("'{}' must be a list of numbers", key));
    std::vector<int64_t> numbers;
    for (const auto& element : *array) {
      const auto* number = element.as_integer();
      if (number == nullptr || number->get() < 1 || (!numbers.empty() && number->get() <= numbers.back())) {
        return error(value, fmt::format("'{}' must be whole numbers from 1 on, in ascending order", key));
      }
      numbers.push_back(number->get());
    }
    return numbers;
  }

  Status read_batch_sizes(const toml::node& value) {
    FOLIOT_ASSIGN_OR_RETURN(const auto numbers, read_ascending("batch_sizes", value));
    if (numbers.back() > kCompiledBatchSizeMax) {
      return error(value, fmt::format("'batch_sizes' may go up to {}", kCompiledBatchSizeMax));
    }
    config_.compile.batch_sizes.assign(numbers.begin(), numbers.end());
    return Status();
  }

  Status read_precision(const toml::node& value) {
    const auto* text = value.as_string();
    const auto precision = text == nullptr ? std::nullopt : parse_precision(text->get());
    if (!precision) return error(value, "'precision' must be \"float32\" or \"bfloat16\"");
    config_.compile.precision = *precision;
    return Status();
  }

  Status read_buckets(const toml::node& value) {
    const auto* table = value.as_table();
    if (table == nullptr) return error(value, "'buckets' must be a table, e.g. [buckets] and then sequence = [32, 64]");
    config_.compile.buckets.clear();
    for (const auto& [name, sizes] : *table) {
      FOLIOT_ASSIGN_OR_RETURN(auto numbers, read_ascending(name.str(), sizes));
      if (!config_.compile.buckets.empty() && numbers.size() != config_.compile.buckets.begin()->second.size()) {
        return error(sizes, "all lists of [buckets] must have the same length: bucket i takes entry i of each");
      }
      config_.compile.buckets[std::string(name.str())] = std::move(numbers);
    }
    return Status();
  }

  const std::filesystem::path& file_;
  ModelConfig& config_;
};

}  // namespace

std::filesystem::path config_file_of(const std::filesystem::path& model) {
  const std::filesystem::path folder = model.parent_path();
  const std::string version = folder.filename().string();
  const bool is_version = !version.empty() && version.find_first_not_of("0123456789") == std::string::npos;
  return (is_version ? folder.parent_path() : folder) / "model.toml";
}

Result<ModelConfig> read_model_config(const std::filesystem::path& file, const ModelConfig& defaults) {
  ModelConfig config = defaults;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return config;
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  FOLIOT_RETURN_IF_ERROR(Reader(file, config).read(table));
  return config;
}

}  // namespace foliot
