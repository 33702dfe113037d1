// `foliot init`: writes a model.toml to begin with.
#ifndef FOLIOT_APP_COMMANDS_INIT_COMMAND_H_
#define FOLIOT_APP_COMMANDS_INIT_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_init_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_INIT_COMMAND_H_
