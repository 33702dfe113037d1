#include "app/commands/logger_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "app/commands/help_formatter.h"

namespace foliot {

void add_logger_flags(CLI::App& app, LoggerOptions& options) {
  const FlagGroup group(app, "Log lines");
  app.add_option("--log-format", options.format, "form of the lines on standard error")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, LoggerFormat>{{"text", LoggerFormat::kText}, {"json", LoggerFormat::kJson}}))
      ->default_str("text");
  app.add_option("--log-level", options.level, "the least level of these lines")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Severity>{{"debug", Severity::kDebug},
                                                                          {"info", Severity::kInfo},
                                                                          {"warning", Severity::kWarning},
                                                                          {"error", Severity::kError}}))
      ->default_str("info");
}

// One call that writes it whole: lines of several processes do not mix.
LoggerSink standard_error() {
  return [](std::string_view line) { static_cast<void>(write(STDERR_FILENO, line.data(), line.size()) < 0); };
}

LogLevels log_levels(const LoggerOptions& options) {
  return {.info = options.level <= Severity::kInfo, .warning = options.level <= Severity::kWarning};
}

void say(Logger& log, const std::string& line) {
  if (log.options().format == LoggerFormat::kJson) return log.write(Severity::kInfo, line);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace foliot
