// The command `foliot bench`.
#ifndef FOLIOT_APP_COMMANDS_BENCH_COMMAND_H_
#define FOLIOT_APP_COMMANDS_BENCH_COMMAND_H_

namespace CLI {
class App;
}

namespace foliot {

// Adds the command to `app`; when it is parsed it runs, and leaves in `exit_code`
// (which outlives `app`) 0 if the run was made, 1 if it could not be.
void add_bench_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_BENCH_COMMAND_H_
