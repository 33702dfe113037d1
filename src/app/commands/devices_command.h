// `foliot devices`: the processors and GPUs of this machine, and its limits.
#ifndef FOLIOT_APP_COMMANDS_DEVICES_COMMAND_H_
#define FOLIOT_APP_COMMANDS_DEVICES_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_devices_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_DEVICES_COMMAND_H_
