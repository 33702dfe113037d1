#include "repository/container_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/units.h"

namespace foliot {
namespace {

class ContainerReader {
 public:
  explicit ContainerReader(const std::filesystem::path& file) : file_(file) {}

  Result<ContainerConfig> read(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr) return error(node, "'container' must be a table: [container]");
    for (const auto& [key, value] : *table) FOLIOT_RETURN_IF_ERROR(read_key(key.str(), value));
    const auto visible = config_.environment.find("CUDA_VISIBLE_DEVICES");
    if (config_.gpus.empty() && visible != config_.environment.end() && !visible->second.empty()) {
      return error(node,
                   "CUDA_VISIBLE_DEVICES alone lets a container use no GPU: give 'gpus' in [container], "
                   "e.g. gpus = [0]; the code then sees these, from 0 on");
    }
    return std::move(config_);
  }

 private:
  Status error(const toml::node& node, std::string_view message) const {
    return Status::invalid_argument(fmt::format("{}:{}: {}", file_.string(), node.source().begin.line, message));
  }

  Status read_key(std::string_view key, const toml::node& value) {
    if (key == "python") return read_python(value);
    if (key == "replicas") return read_number(key, value, kReplicasMax, config_.replicas);
    if (key == "batch_size_max") return read_number(key, value, kBatchSizeMax, config_.batch_size_max.emplace());
    if (key == "cores") return read_cores(value);
    if (key == "memory") return read_memory(value);
    if (key == "network") return read_flag(key, value, config_.network);
    if (key == "gpus") return read_gpus(value);
    if (key == "readable") return read_readable(value);
    if (key == "trust_pickle") return read_flag(key, value, config_.trust_pickle);
    if (key == "start_timeout") return read_start_timeout(value);
    if (key == "environment") return read_environment(value);
    return error(value,
                 fmt::format("unknown key '{}' in [container]; known are python, replicas, batch_size_max, "
                             "cores, memory, network, gpus, readable, trust_pickle, start_timeout, and the table "
                             "[container.environment]",
                             key));
  }

  Status read_python(const toml::node& value) {
    const auto* text = value.as_string();
    const bool named = text != nullptr && !text->get().empty();
    if (!named || (text->get().front() != '/' && text->get().find('/') != std::string::npos)) {
      return error(value, "'python' must be a name in PATH, e.g. \"python3\", or a path that begins with '/'");
    }
    config_.python = text->get();
    return Status();
  }

  Status read_number(std::string_view key, const toml::node& value, uint32_t most, uint32_t& to) {
    const auto* number = value.as_integer();
    if (number == nullptr || number->get() < 1 || number->get() > most) {
      const std::string given = number == nullptr ? "" : fmt::format(", and is {}", number->get());
      return error(value, fmt::format("'{}' must be a whole number from 1 to {}{}", key, most, given));
    }
    to = static_cast<uint32_t>(number->get());
    return Status();
  }

  Status read_flag(std::string_view key, const toml::node& value, bool& to) {
    const auto* flag = value.as_boolean();
    if (flag == nullptr) return error(value, fmt::format("'{}' must be true or false", key));
    to = flag->get();
    return Status();
  }

  Status read_cores(const toml::node& value) {
    const auto* text = value.as_string();
    auto cores = text == nullptr ? Status::invalid_argument("it is no text") : parse_core_set(text->get());
    if (cores.ok() && cores->empty()) cores = Status::invalid_argument("it names no core");
    if (!cores.ok()) {
      return error(
          value, fmt::format("'cores' must be a list of cores in quotes, e.g. \"4-7\": {}", cores.status().message()));
    }
    config_.cores = *std::move(cores);
    return Status();
  }

  Status read_memory(const toml::node& value) {
    const auto* text = value.as_string();
    const auto bytes = text == nullptr ? Status::invalid_argument("") : parse_bytes(text->get());
    if (!bytes.ok() || *bytes == 0) return error(value, "'memory' must be an amount in quotes, e.g. \"4GiB\"");
    config_.memory_bytes = *bytes;
    return Status();
  }

  Status read_gpus(const toml::node& value) {
    const auto* array = value.as_array();
    if (array == nullptr)
      return error(value, "'gpus' must be a list of numbers, e.g. [0]; `foliot devices` lists them");
    config_.gpus.clear();
    for (const auto& element : *array) {
      const auto* number = element.as_integer();
      if (number == nullptr || number->get() < 0 || number->get() >= kGpusMax) {
        const std::string given = number == nullptr ? "" : fmt::format(", and one is {}", number->get());
        return error(element, fmt::format("each of 'gpus' must be a whole number from 0 to {}{}", kGpusMax - 1, given));
      }
      config_.gpus.push_back(static_cast<uint32_t>(number->get()));
    }
    std::ranges::sort(config_.gpus);
    const auto twice = std::ranges::adjacent_find(config_.gpus);
    if (twice != config_.gpus.end()) return error(value, fmt::format("'gpus' has {} twice", *twice));
    return Status();
  }

  Status read_readable(const toml::node& value) {
    const auto* array = value.as_array();
    if (array == nullptr) return error(value, "'readable' must be a list of paths, e.g. [\"/data\"]");
    config_.readable.clear();
    for (const auto& element : *array) {
      const auto* path = element.as_string();
      if (path == nullptr || !path->get().starts_with('/')) {
        return error(element, "each of 'readable' must be a path in quotes that begins with '/'");
      }
      config_.readable.emplace_back(path->get());
    }
    return Status();
  }

  Status read_start_timeout(const toml::node& value) {
    const auto* text = value.as_string();
    const auto timeout = text == nullptr ? Status::invalid_argument("") : parse_duration(text->get());
    if (!timeout.ok() || *timeout <= Duration()) {
      return error(value, "'start_timeout' must be a duration above zero in quotes, e.g. \"60s\"");
    }
    config_.start_timeout = *timeout;
    return Status();
  }

  Status read_environment(const toml::node& value) {
    const auto* table = value.as_table();
    if (table == nullptr) return error(value, "'environment' must be a table: [container.environment]");
    config_.environment.clear();
    for (const auto& [name, text] : *table) {
      const bool plain = !name.str().empty() && name.str().find('=') == std::string_view::npos &&
                         name.str().find('\0') == std::string_view::npos;
      if (!plain || !text.is_string() || text.as_string()->get().find('\0') != std::string::npos) {
        return error(text,
                     fmt::format("the variable '{}' must have a name without '=' and a text as its value", name.str()));
      }
      config_.environment.emplace(name.str(), text.as_string()->get());
    }
    return Status();
  }

  const std::filesystem::path& file_;
  ContainerConfig config_;
};

}  // namespace

Result<ContainerConfig> read_container_config(const std::filesystem::path& file, const toml::node& node) {
  return ContainerReader(file).read(node);
}

}  // namespace foliot
