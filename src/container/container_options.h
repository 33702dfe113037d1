// ContainerOptions: what the process of a container is started with, as model.toml and
// the server determine it.
#ifndef FOLIOT_CONTAINER_CONTAINER_OPTIONS_H_
#define FOLIOT_CONTAINER_CONTAINER_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "platform/core_set.h"

namespace foliot {

struct ContainerOptions {
  std::string name;                   // of the model
  std::filesystem::path folder;       // that model.py lies in; absolute
  std::string python = "python3";     // the interpreter: a name in PATH, or an absolute path
  std::filesystem::path package;      // the folder that the Python package `foliot` lies in; absolute
  std::vector<std::string> launcher;  // a program that calls launch_container(), and its arguments
  // NAME=VALUE each, of [container.environment]; these replace the variables that
  // container_environment() sets.
  std::vector<std::string> environment{};
  CoreSet cores{};            // that it runs on; empty: any
  uint64_t memory_bytes = 0;  // 0: no limit
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
};

// The environment of the process, which has its own folder for temporary files: PATH and
// HOME among others; nothing else of the server's, which may contain secrets.
std::vector<std::string> container_environment(const ContainerOptions& options, const std::filesystem::path& temporary);

}  // namespace foliot

#endif  // FOLIOT_CONTAINER_CONTAINER_OPTIONS_H_
