// `foliot top`.
#ifndef FOLIOT_APP_COMMANDS_TOP_COMMAND_H_
#define FOLIOT_APP_COMMANDS_TOP_COMMAND_H_

namespace CLI {
class App;
}

namespace foliot {

// Adds the command to `app`; when it is parsed it runs, and leaves its exit status
// in `exit_code`, which outlives `app`.
void add_top_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_TOP_COMMAND_H_
