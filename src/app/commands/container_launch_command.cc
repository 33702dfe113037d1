#include "app/commands/container_launch_command.h"

#include <string_view>
#include <system_error>

namespace foliot {
namespace {

constexpr std::string_view kLaunchName = "container-launch";

}  // namespace

std::vector<std::string> container_launch_command() { return {"/proc/self/exe", std::string(kLaunchName)}; }

bool is_container_launch(int argc, char** argv) { return argc >= 2 && argv[1] == kLaunchName; }

std::filesystem::path python_package_folder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed = program.parent_path().parent_path() / "share" / "foliot" / "python";
  return std::filesystem::exists(installed / "foliot", error) ? installed : FOLIOT_PYTHON_PACKAGE;
}

}  // namespace foliot
