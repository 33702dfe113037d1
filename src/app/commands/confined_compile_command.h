// `foliot confined-compile`: the process in which a server compiles one model.
// Not for people: the server writes its standard input and reads its output.
#ifndef FOLIOT_APP_COMMANDS_CONFINED_COMPILE_COMMAND_H_
#define FOLIOT_APP_COMMANDS_CONFINED_COMPILE_COMMAND_H_

#include <string>
#include <vector>

namespace foliot {

// The command line that starts this program as that process.
std::vector<std::string> confined_compile_command();
// Whether this process is one. Checked before anything else is done, which would take
// as long as compiling a small model does.
bool is_confined_compile(int argc, char** argv);
// Returns the exit code.
int confined_compile(int argc, char** argv);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_CONFINED_COMPILE_COMMAND_H_
