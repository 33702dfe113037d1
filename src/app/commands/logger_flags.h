// Flags of the log, and where it goes: standard error.
#ifndef FOLIOT_APP_COMMANDS_LOGGER_FLAGS_H_
#define FOLIOT_APP_COMMANDS_LOGGER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "logging/logger.h"

namespace foliot {

// Told what happens in a part, from any of its threads.
using JournalFunction = std::function<void(Severity, const std::string&)>;

void add_logger_flags(CLI::App& app, LoggerOptions& options);
LoggerSink standard_error();

// What is said to a person who started a part: a line on standard output, or, where a
// program reads what is said, the log's.
void say(Logger& log, const std::string& line);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_LOGGER_FLAGS_H_
