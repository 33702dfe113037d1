// foliot jobs: submits, lists, shows and cancels the jobs of a running server.
#ifndef FOLIOT_APP_COMMANDS_JOBS_COMMAND_H_
#define FOLIOT_APP_COMMANDS_JOBS_COMMAND_H_

#include <CLI/CLI.hpp>

namespace foliot {

void add_jobs_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_JOBS_COMMAND_H_
