// The launcher of a container: the program that the server starts, which confines itself
// (foundation/process/confinement.h) and becomes the interpreter that runs user code.
//
// It reads a ContainerLaunch from its standard input, asks the interpreter, which is
// trusted, for the folders of its libraries, and confines itself to these, the
// container's folder, and its folder for temporary files. What runs then begins on
// the cores that it was given. A failure is reported as a
// container reports one: as a packet on descriptor 3. What the kernel cannot limit is
// printed to the standard error.
//
// Threading: none.
#ifndef FOLIOT_ENGINE_CONTAINER_CONTAINER_LAUNCH_H_
#define FOLIOT_ENGINE_CONTAINER_CONTAINER_LAUNCH_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/container_options.h"
#include "foundation/base/status.h"
#include "foundation/platform/core_set.h"

namespace foliot {

// What the launcher needs of ContainerOptions.
struct ContainerLaunch {
  std::string python{};
  std::string module = "foliot.runtime";  // run with the folder as its argument
  std::filesystem::path folder{};
  std::filesystem::path package{};
  std::filesystem::path temporary{};
  std::vector<std::filesystem::path> readable{};
  CoreSet cores{};  // empty: any
  uint64_t memory_bytes = 0;
  // Of files below `temporary`, which then are in memory and the container's own, where the kernel has that; 0: they
  // are on disk, for the server to read.
  uint64_t disk_bytes = 0;
  bool network = false;
  std::vector<uint32_t> gpus{};
  // The server asked for namespaces (ChildOptions).
  bool namespaces = false;
  ContainerSafety safety{};
  // Prints what this kernel lacks to confine a container, a line each, to the standard output, and does nothing else.
  bool probes = false;

  bool operator==(const ContainerLaunch&) const = default;
};

std::string encode_launch(const ContainerLaunch& launch);
// Errors: kInvalidArgument for what encode_launch() did not make.
Result<ContainerLaunch> decode_launch(std::string_view text);

// For `foliot container-launch`: returns only if it failed, with the exit code. REQUIRES:
// the process has one thread, and nothing was read from the standard input.
int launch_container();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_CONTAINER_LAUNCH_H_
