// `foliot keys`: makes API keys.
#ifndef FOLIOT_APP_COMMANDS_KEYS_COMMAND_H_
#define FOLIOT_APP_COMMANDS_KEYS_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_keys_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_KEYS_COMMAND_H_
