// ContainerConfig: the table [container] of a model.toml: how the processes of a container
// model are started, and what they may do.
#ifndef FOLIOT_MODELS_REPOSITORY_CONTAINER_CONFIG_H_
#define FOLIOT_MODELS_REPOSITORY_CONTAINER_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/config/toml_reader.h"
#include "foundation/core/action.h"
#include "foundation/platform/core_set.h"

namespace foliot {

inline constexpr uint32_t kReplicasMax = 64;  // of one model
inline constexpr uint32_t kGpusMax = 128;     // of one machine, as CUDA has it

struct ContainerConfig {
  std::string python = "python3";                  // a name in PATH, or a path that begins with '/'
  uint32_t replicas = 1;                           // 1 to kReplicasMax
  std::optional<uint32_t> batch_size_max;          // 1 to kBatchSizeMax, at most; nullopt: as model.py wants
  CoreSet cores;                                   // on which all replicas run; empty: on any
  std::optional<uint64_t> memory_bytes;            // of one replica; nullopt: no limit
  std::optional<uint64_t> disk_bytes;              // of its temporary files; nullopt: kContainerDiskBytesDefault
  bool network = false;                            // whether it may reach the network
  std::vector<uint32_t> gpus;                      // that it may use, ascending; N is /dev/nvidiaN
  std::vector<std::filesystem::path> readable;     // further files and folders that it may read; absolute
  bool trust_pickle = false;                       // whether files that can run any code when read are read
  bool compile = true;                             // "auto": the file of a framework is compiled where it can be
  Duration start_timeout = Duration::seconds(60);  // until it has read its model
  std::map<std::string, std::string> environment;  // variables, by name

  bool operator==(const ContainerConfig&) const = default;
};

// Errors: kInvalidArgument naming file, line, key, value and limit.
Result<ContainerConfig> read_container_config(TomlReader reader);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_CONTAINER_CONFIG_H_
