// `foliot import`: writes what settings of other servers say as model.toml.
#ifndef FOLIOT_APP_COMMANDS_IMPORT_COMMAND_H_
#define FOLIOT_APP_COMMANDS_IMPORT_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_import_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_IMPORT_COMMAND_H_
