// `foliot completion`: scripts by which bash, zsh and fish complete commands, flags and values.
#ifndef FOLIOT_APP_COMMANDS_COMPLETION_COMMAND_H_
#define FOLIOT_APP_COMMANDS_COMPLETION_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_completion_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_COMPLETION_COMMAND_H_
