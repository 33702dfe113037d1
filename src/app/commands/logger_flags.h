// Logger flags, and the sink of the log: standard error.
#ifndef FOLIOT_APP_COMMANDS_LOGGER_FLAGS_H_
#define FOLIOT_APP_COMMANDS_LOGGER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "edge/requests/server_settings.h"
#include "foundation/logging/logger.h"

namespace foliot {

// Called for events of a part, from any of its threads.
using JournalFunction = std::function<void(Severity, const std::string&)>;

void add_logger_flags(CLI::App& app, LoggerOptions& options);
LoggerSink standard_error();
// As clients see it.
LogLevels log_levels(const LoggerOptions& options);

// Output for the person who started a part: a line on standard output or, with JSON for
// a program, of the log.
void say(Logger& log, const std::string& line);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_LOGGER_FLAGS_H_
