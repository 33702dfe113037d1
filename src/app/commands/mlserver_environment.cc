#include "app/commands/mlserver_environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace foliot {
namespace {

constexpr std::string_view kFileScheme = "file://";

// nullopt: it is not set, or empty.
std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

Result<uint16_t> parse_port(const char* name, const std::string& value) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), port);
  if (error == std::errc() && end == value.data() + value.size()) return port;
  return Status::invalid_argument(
      fmt::format("{} is '{}'; it must be a port from 0 to 65535: set it so, or unset it", name, value));
}

Result<std::filesystem::path> parse_uri(const char* name, std::string_view value) {
  if (value.starts_with(kFileScheme)) value.remove_prefix(kFileScheme.size());
  if (value.find("://") == std::string_view::npos) return std::filesystem::path(value);
  return Status::invalid_argument(
      fmt::format("{} is '{}', which is no path: fetch the model first, as KServe's storage initialiser does, and set "
                  "the path of its folder",
                  name, value));
}

// Calls `heed` with the value of a variable, unless an argument says otherwise; and says which of both.
Status heed_one(const CLI::App& command, const char* name, const std::string& argument, std::vector<std::string>& lines,
                const auto& heed) {
  const std::optional<std::string> value = variable(name);
  if (!value) return Status();
  if (command.get_option(argument)->count() > 0) {
    lines.push_back(fmt::format("environment: {}={} is not heeded, since {} is given", name, *value, argument));
    return Status();
  }
  FOLIOT_RETURN_IF_ERROR(heed(*value));
  lines.push_back(fmt::format("environment: {}={} is heeded as {}", name, *value, argument));
  return Status();
}

}  // namespace

Result<std::vector<std::string>> heed_mlserver_environment(const CLI::App& command, MlserverTargets targets) {
  std::vector<std::string> lines;
  const auto port_to = [](const char* name, uint16_t& to) {
    return [name, &to](const std::string& value) -> Status {
      FOLIOT_ASSIGN_OR_RETURN(to, parse_port(name, value));
      return Status();
    };
  };
  FOLIOT_RETURN_IF_ERROR(
      heed_one(command, "MLSERVER_HTTP_PORT", "--http-port", lines, port_to("MLSERVER_HTTP_PORT", targets.http_port)));
  FOLIOT_RETURN_IF_ERROR(
      heed_one(command, "MLSERVER_GRPC_PORT", "--grpc-port", lines, port_to("MLSERVER_GRPC_PORT", targets.grpc_port)));
  FOLIOT_RETURN_IF_ERROR(
      heed_one(command, "MLSERVER_MODEL_URI", "repository", lines, [&](const std::string& value) -> Status {
        FOLIOT_ASSIGN_OR_RETURN(targets.repository, parse_uri("MLSERVER_MODEL_URI", value));
        return Status();
      }));
  FOLIOT_RETURN_IF_ERROR(heed_one(command, "MLSERVER_MODEL_NAME", "--model-name", lines, [&](const std::string& value) {
    targets.model_name = value;
    return Status();
  }));
  if (const std::optional<std::string> value = variable("MLSERVER_MODEL_IMPLEMENTATION")) {
    targets.runtime = value->substr(0, value->find('.'));
    lines.push_back(fmt::format(
        "environment: MLSERVER_MODEL_IMPLEMENTATION={} says how a file of a framework is read; other models "
        "do not heed it",
        *value));
  }
  return lines;
}

}  // namespace foliot
