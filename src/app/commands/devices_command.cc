#include "app/commands/devices_command.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda/driver.h"
#include "platform/memory.h"
#include "platform/processor.h"

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

void print_cpu() {
  fmt::print("cpu     {}\n", processor_name());
  fmt::print("        processors     {}\n", usable_processors());
  fmt::print("        kernels        {}\n", make_cpu_device()->fingerprint());
  const auto available = available_memory_bytes();
  fmt::print("        memory         {}{}\n", format_bytes(total_memory_bytes()),
             available ? fmt::format(", {} available", format_bytes(*available)) : "");
  fmt::print("        locked memory  {}\n", locked_memory_limit());
}

void print_gpu(const Gpu& gpu) {
  fmt::print("gpu {:<3} {}\n", gpu.ordinal, gpu.name);
  fmt::print("        capability     {}.{}, {} multiprocessors\n", gpu.capability_major, gpu.capability_minor,
             gpu.multiprocessors);
  fmt::print("        memory         {}\n", format_bytes(gpu.memory_bytes));
  fmt::print("        pages          {}\n", gpu.block_granularity == 0
                                                ? "none: it cannot put memory behind addresses"
                                                : "multiples of " + format_bytes(gpu.block_granularity));
}

Status print_gpus() {
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<CudaDriver> driver, open_cuda_driver());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<Gpu> gpus, driver->gpus());
  if (gpus.empty()) return Status::unavailable("NVIDIA's driver finds none");
  for (const Gpu& gpu : gpus) print_gpu(gpu);
  fmt::print("\nGPUs are listed only: this version runs models on the CPU.\n");
  return {};
}

}  // namespace

void add_devices_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List the processors and GPUs of this machine, and its limits");
  command->footer(
      "Processors and memory are those that this process may use: what its control group (a container's\n"
      "limits) and its CPU affinity leave. CUDA_VISIBLE_DEVICES hides GPUs.");
  command->callback([&exit_code] {
    print_cpu();
    if (const Status status = print_gpus(); !status.ok()) fmt::print("gpu     none: {}\n", status.message());
    exit_code = 0;
  });
}

}  // namespace foliot
