#include "app/commands/devices_command.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/commands/json_line.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/vulkan/driver.h"
#include "foundation/base/units.h"
#include "foundation/platform/memory.h"
#include "foundation/platform/processor.h"
#include "foundation/platform/topology.h"
#include "node/devices/device_places.h"

namespace foliot {
namespace {

// The limit after raising it as far as this process may, as serving does.
std::string locked_memory_limit() {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0) return "no limit";
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "no limit";
  return fmt::format("{} (ulimit -l); a larger page cache is not locked into memory", format_bytes(limit.rlim_cur));
}

void print_cores(const Topology& topology) {
  for (const CoreSet& cores : topology.usable_by_node()) {
    const auto first = std::ranges::find(topology.cores, cores.front(), &Topology::Core::number);
    fmt::print("        cores          {} of node {}\n", to_string(cores), first->node);
  }
  const DevicePlaces places = default_device_places(topology);
  for (size_t device = 0; device < places.size(); ++device) {
    fmt::print("        device {:<7} {}\n", device, to_string(places[device]));
  }
}

void print_cpu() {
  fmt::print("cpu     {}\n", processor_name());
  fmt::print("        processors     {}\n", usable_processors());
  if (const auto topology = read_topology(); topology.ok()) print_cores(*topology);
  fmt::print("        kernels        {}\n", make_cpu_device()->fingerprint());
  const auto available = available_memory_bytes();
  fmt::print("        memory         {}{}\n", format_bytes(total_memory_bytes()),
             available ? fmt::format(", {} available", format_bytes(*available)) : "");
  fmt::print("        locked memory  {}\n", locked_memory_limit());
}

void print_gpu(size_t number, const VulkanGpu& gpu) {
  fmt::print("gpu {:<3} {}\n", number, gpu.name);
  fmt::print("        driver         {}\n", gpu.driver);
  fmt::print("        memory         {}\n", format_bytes(gpu.memory_bytes));
  const std::string use = gpu.is_processor ? "only when asked for: it computes on the CPU" : "when asked for";
  fmt::print("        used           {}{}\n", use, gpu.lacks.empty() ? "" : ", but it lacks " + gpu.lacks);
}

// One object for the processor, then one for each GPU; memory that cannot be known is left out.
void print_device_objects() {
  nlohmann::ordered_json cpu{{"kind", "cpu"}, {"name", processor_name()}, {"processors", usable_processors()}};
  if (const auto topology = read_topology(); topology.ok()) {
    for (const DevicePlace& place : default_device_places(*topology)) cpu["devices"].push_back(to_string(place));
  }
  cpu["kernels"] = make_cpu_device()->fingerprint();
  cpu["memory_bytes"] = total_memory_bytes();
  if (const auto available = available_memory_bytes()) cpu["available_bytes"] = *available;
  cpu["locked_memory"] = locked_memory_limit();
  print_json_line(cpu);
  const Result<std::vector<VulkanGpu>> gpus = vulkan_gpus();
  if (!gpus.ok()) return;
  for (const VulkanGpu& gpu : *gpus) {
    print_json_line({{"kind", "gpu"},
                     {"name", gpu.name},
                     {"driver", gpu.driver},
                     {"memory_bytes", gpu.memory_bytes},
                     {"is_processor", gpu.is_processor},
                     {"lacks", gpu.lacks}});
  }
}

Status print_gpus() {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<VulkanGpu> gpus, vulkan_gpus());
  for (size_t number = 0; number < gpus.size(); ++number) print_gpu(number, gpus[number]);
  return {};
}

}  // namespace

void add_devices_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List the processors and GPUs of this machine, and its limits");
  command->footer(
      "Processors and memory are those that this process may use: what its control group (a container's\n"
      "limits) and its CPU affinity leave. Cores are listed by NUMA node, and devices as `foliot serve` has\n"
      "them without --devices and --threads. GPUs are those that Vulkan's drivers find.");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print an object in each line");
  command->callback([json, &exit_code] {
    exit_code = 0;
    if (*json) return print_device_objects();
    print_cpu();
    if (const Status status = print_gpus(); !status.ok()) fmt::print("gpu     none: {}\n", status.message());
  });
}

}  // namespace foliot
