#include "app/commands/confined_compile_command.h"

#include "device/cpu/cpu_device.h"
#include "repository/compile_process.h"

namespace foliot {
namespace {

constexpr const char* kName = "confined-compile";

}  // namespace

void add_confined_compile_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(kName, "The process in which a server compiles a model");
  command->group("");  // not shown
  command->callback([&exit_code] {
    exit_code = serve_compile_request(
        [](uint32_t threads) { return make_cpu_device({.threads = threads, .lock_memory = false}); });
  });
}

std::vector<std::string> confined_compile_command() { return {"/proc/self/exe", kName}; }

}  // namespace foliot
