// `foliot simulate`: an experiment in virtual time.
#ifndef FOLIOT_APP_COMMANDS_SIMULATE_COMMAND_H_
#define FOLIOT_APP_COMMANDS_SIMULATE_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_simulate_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_SIMULATE_COMMAND_H_
