// `foliot demo`: a network made here is served and asked more than this machine can answer.
#ifndef FOLIOT_APP_COMMANDS_DEMO_COMMAND_H_
#define FOLIOT_APP_COMMANDS_DEMO_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

// `exit_code` is set when the command has run.
void add_demo_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_DEMO_COMMAND_H_
