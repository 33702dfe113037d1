// `foliot container-launch`: the process that becomes one replica of a container.
// Not for people: a server writes its standard input.
#ifndef FOLIOT_APP_COMMANDS_CONTAINER_LAUNCH_COMMAND_H_
#define FOLIOT_APP_COMMANDS_CONTAINER_LAUNCH_COMMAND_H_

#include <filesystem>
#include <string>
#include <vector>

namespace foliot {

// The command line that starts this program as that process.
std::vector<std::string> container_launch_command();
// Whether this process is one. Checked before anything else is done.
bool is_container_launch(int argc, char** argv);

// The folder that the Python package `foliot` lies in: share/foliot/python beside this program's
// folder, where it is installed, or as the build has it.
std::filesystem::path python_package_folder();

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_CONTAINER_LAUNCH_COMMAND_H_
