// ContainerOptions: what the process of a container is started with, as model.toml and
// the server determine it.
#ifndef FOLIOT_ENGINE_CONTAINER_CONTAINER_OPTIONS_H_
#define FOLIOT_ENGINE_CONTAINER_CONTAINER_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/platform/core_set.h"
#include "foundation/process/kernel_limits.h"

namespace foliot {

inline constexpr uint64_t kContainerDiskBytesDefault = uint64_t{1} << 30;

// What holds for all containers of a server.
struct ContainerSafety {
  bool strict = false;    // none is started that this kernel cannot confine fully
  KernelLimits kernel{};  // for tests

  bool operator==(const ContainerSafety&) const = default;
};

struct ContainerOptions {
  std::string name{};                     // of the model
  std::filesystem::path folder{};         // that model.py lies in; absolute
  std::string module = "foliot.runtime";  // that the interpreter runs, with the folder as its argument
  std::string python = "python3";         // the interpreter: a name in PATH, or an absolute path
  std::filesystem::path package{};        // the folder that the Python package `foliot` lies in; absolute
  std::vector<std::string> launcher{};    // a program that calls launch_container(), and its arguments
  // NAME=VALUE each, of [container.environment]; these replace the variables that
  // container_environment() sets.
  std::vector<std::string> environment{};
  CoreSet cores{};            // that it runs on; empty: any
  uint64_t memory_bytes = 0;  // 0: no limit
  // Of its temporary files, which are in memory where the kernel allows a file system of its own; above 0.
  uint64_t disk_bytes = kContainerDiskBytesDefault;
  bool network = false;
  // The GPUs that it may use, of NVIDIA's driver: N is /dev/nvidiaN.
  std::vector<uint32_t> gpus{};
  std::vector<std::filesystem::path> readable{};  // further files and folders; absolute
  bool trust_pickle = false;
  // Until its description is received. Imports of large frameworks take ten seconds from
  // a cold disk.
  Duration start_timeout = Duration::seconds(60);
  // The description's, if that is less; nullopt: the description's.
  std::optional<uint32_t> batch_size_max{};
  ContainerSafety safety{};
};

// The environment of the process, which has its own folder for temporary files: PATH and
// HOME among others; nothing else of the server's, which may contain secrets.
std::vector<std::string> container_environment(const ContainerOptions& options, const std::filesystem::path& temporary);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_CONTAINER_OPTIONS_H_
