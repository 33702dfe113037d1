// foliot versions: lists the versions of a personal model of a running server, compares one, takes one, rolls back.
#ifndef FOLIOT_APP_COMMANDS_VERSIONS_COMMAND_H_
#define FOLIOT_APP_COMMANDS_VERSIONS_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_versions_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_VERSIONS_COMMAND_H_
