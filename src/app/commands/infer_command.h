// `foliot infer`: asks a running server for one inference.
#ifndef FOLIOT_APP_COMMANDS_INFER_COMMAND_H_
#define FOLIOT_APP_COMMANDS_INFER_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_infer_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_INFER_COMMAND_H_
