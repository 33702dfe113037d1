#include "edge/requests/server_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace foliot {
namespace {

struct Shown {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(const std::string& value) const { return fmt::format("'{:.64}'", value); }
};

template <typename Settings>
Status unknown_setting(std::string_view what, std::string_view name, const Settings& settings) {
  std::vector<std::string> names;
  for (const auto& [known, value] : settings) names.push_back(known);
  return Status::invalid_argument(
      fmt::format("there is no {} setting '{:.64}'; there are {}", what, name, fmt::join(names, ", ")));
}

}  // namespace

std::map<std::string, LogSetting> log_settings(const LogLevels& levels) {
  return {{"log_file", std::string()}, {"log_info", levels.info},          {"log_warning", levels.warning},
          {"log_error", true},         {"log_verbose_level", uint64_t{0}}, {"log_format", std::string("default")}};
}

Status check_log_setting(const LogLevels& levels, std::string_view name, const LogSetting& value) {
  const auto settings = log_settings(levels);
  const auto found = settings.find(std::string(name));
  if (found == settings.end()) return unknown_setting("log", name, settings);
  if (found->second == value) return Status();
  return Status::unimplemented(
      fmt::format("log setting '{}' is {} and cannot be changed to {} while the server runs; start it with another "
                  "--log-level or --log-format",
                  name, std::visit(Shown(), found->second), std::visit(Shown(), value)));
}

std::map<std::string, std::vector<std::string>> trace_settings(const TraceExport& traces) {
  const std::string rate = traces.share > 0 ? fmt::format("{:.0f}", 1 / traces.share) : "0";
  return {{"trace_level", {traces.on ? "TIMESTAMPS" : "OFF"}},
          {"trace_rate", {traces.on ? rate : "1000"}},
          {"trace_count", {"-1"}},
          {"log_frequency", {"0"}},
          {"trace_file", {""}},
          {"trace_mode", {traces.on ? "opentelemetry" : "triton"}}};
}

Status check_trace_setting(const TraceExport& traces, std::string_view name, const std::vector<std::string>& values) {
  const auto settings = trace_settings(traces);
  const auto found = settings.find(std::string(name));
  if (found == settings.end()) return unknown_setting("trace", name, settings);
  if (values.empty() || found->second == values) return Status();
  return Status::unimplemented(fmt::format(
      "trace setting '{}' is '{}' and cannot be changed to '{}' while the server runs; start it with {}, or "
      "with --log FOLDER for `foliot explain` and `foliot trace export`",
      name, found->second.front(), fmt::join(values, ", "),
      traces.on ? "another --otlp-share" : "--otlp URL, the collector to which spans go"));
}

}  // namespace foliot
