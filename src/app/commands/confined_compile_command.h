// `foliot confined-compile`: the process in which a server compiles one model.
// Not for people: the server writes its standard input and reads its output.
#ifndef FOLIOT_APP_COMMANDS_CONFINED_COMPILE_COMMAND_H_
#define FOLIOT_APP_COMMANDS_CONFINED_COMPILE_COMMAND_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foliot {

void add_confined_compile_command(CLI::App& app, int& exit_code);
// This program, told to be that process.
std::vector<std::string> confined_compile_command();

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_CONFINED_COMPILE_COMMAND_H_
