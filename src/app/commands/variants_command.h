// foliot variants: what is known of each variant of a task, and which are worth having.
#ifndef FOLIOT_APP_COMMANDS_VARIANTS_COMMAND_H_
#define FOLIOT_APP_COMMANDS_VARIANTS_COMMAND_H_

namespace CLI {
class App;
}

namespace foliot {

void add_variants_command(CLI::App& app, int& exit_code);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_VARIANTS_COMMAND_H_
