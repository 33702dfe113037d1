#include "app/commands/confined_compile_command.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/device/cpu/cpu_device.h"
#include "engine/device/vulkan/vulkan_device.h"
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
  const auto make_device = [](const CompileRequest& request) -> Result<std::unique_ptr<Device>> {
    if (request.gpu.empty()) return {make_cpu_device({.threads = request.threads, .lock_memory = false})};
    FOLIOT_ASSIGN_OR_RETURN(std::shared_ptr<VulkanDriver> driver, VulkanDriver::open({.which = request.gpu}));
    return {make_vulkan_device(std::move(driver))};
  };
  const auto allow_gpu = [](Confinement& confinement) {
    VulkanFiles files = vulkan_files();
    std::ranges::move(files.readable, std::back_inserter(confinement.readable));
    confinement.controlled = std::move(files.controlled);
  };
  return serve_compile_request({make_device, allow_gpu});
}

}  // namespace foliot
