// `foliot container check`: starts the container of a model's folder once, calls it, and
// prints what it found, or what is wrong with it.
#ifndef FOLIOT_APP_COMMANDS_CONTAINER_COMMAND_H_
#define FOLIOT_APP_COMMANDS_CONTAINER_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_container_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_CONTAINER_COMMAND_H_
