#include "app/commands/confined_compile_command.h"

#include <string_view>

#include "engine/device/cpu/cpu_device.h"
#include "foundation/process/fork_server.h"
#include "models/repository/compile_process.h"

namespace foliot {
namespace {

constexpr std::string_view kName = "confined-compile";

}  // namespace

std::vector<std::string> confined_compile_command() { return {"/proc/self/exe", std::string(kName)}; }

bool is_confined_compile(int argc, char** argv) { return argc >= 2 && argv[1] == kName; }

int confined_compile(int argc, char** argv) {
  if (argc > 2 && argv[2] == kStandBy) serve_forks();
  return serve_compile_request(
      [](uint32_t threads) { return make_cpu_device({.threads = threads, .lock_memory = false}); });
}

}  // namespace foliot
