#include "models/repository/container_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

void read_python(TomlReader& reader, std::string& to) {
  reader.text("python", to);
  if (to.starts_with('/') || to.find('/') == std::string::npos) return;
  reader.fail_value("python", "must be a name in PATH, e.g. \"python3\", or a path that begins with '/'");
}

void read_cores(TomlReader& reader, CoreSet& to) {
  if (!reader.has("cores")) return reader.leave("cores");
  std::string text;
  reader.text("cores", text);
  auto cores = parse_core_set(text);
  if (cores.ok() && !cores->empty()) {
    to = *std::move(cores);
    return;
  }
  reader.fail_value("cores", fmt::format("must be a list of cores in quotes, e.g. \"4-7\"{}{}", cores.ok() ? "" : ": ",
                                         cores.status().message()));
}

void read_gpus(TomlReader& reader, std::vector<uint32_t>& to) {
  reader.wholes("gpus", to, kGpusMax - 1);
  std::ranges::sort(to);
  const auto twice = std::ranges::adjacent_find(to);
  if (twice != to.end()) reader.fail("gpus", fmt::format("must have each GPU once, not {} twice", *twice));
}

void read_readable(TomlReader& reader, std::vector<std::filesystem::path>& to) {
  std::vector<std::string> paths;
  reader.texts("readable", paths);
  for (const std::string& path : paths) {
    if (!path.starts_with('/')) reader.fail_value("readable", "must be paths that begin with '/'");
  }
  to.assign(paths.begin(), paths.end());
}

void read_compile(TomlReader& reader, bool& to) {
  std::string when = "auto";
  reader.text("compile", when);
  if (when != "auto" && when != "never") reader.fail_value("compile", "must be \"auto\" or \"never\"");
  to = when == "auto";
}

Status read_environment(TomlReader reader, std::map<std::string, std::string>& to) {
  for (const std::string& name : reader.keys()) {
    reader.any_text(name, to[name]);
    const bool plain = !name.empty() && name.find('=') == std::string::npos && name.find('\0') == std::string::npos;
    if (!plain) reader.fail(name, "must be the name of a variable: not empty, and without '='");
    if (to[name].find('\0') != std::string::npos) reader.fail(name, "must not contain a byte that is 0");
  }
  return reader.finish();
}

}  // namespace

Result<ContainerConfig> read_container_config(TomlReader reader) {
  ContainerConfig config;
  read_python(reader, config.python);
  reader.whole("replicas", config.replicas, 1, kReplicasMax);
  reader.whole("batch_size_max", config.batch_size_max, 1, kBatchSizeMax);
  read_cores(reader, config.cores);
  reader.bytes("memory", config.memory_bytes);
  if (config.memory_bytes == 0) reader.fail_value("memory", "must be above 0");
  reader.bytes("disk", config.disk_bytes);
  if (config.disk_bytes == 0) reader.fail_value("disk", "must be above 0");
  reader.flag("network", config.network);
  read_gpus(reader, config.gpus);
  read_readable(reader, config.readable);
  reader.flag("trust_pickle", config.trust_pickle);
  reader.positive("start_timeout", config.start_timeout);
  read_compile(reader, config.compile);
  if (auto environment = reader.table("environment")) {
    FOLIOT_RETURN_IF_ERROR(read_environment(*std::move(environment), config.environment));
  }
  const auto visible = config.environment.find("CUDA_VISIBLE_DEVICES");
  if (config.gpus.empty() && visible != config.environment.end() && !visible->second.empty()) {
    reader.fail(
        "CUDA_VISIBLE_DEVICES alone lets a container use no GPU: give 'gpus' in [container], e.g. gpus = [0]; the code "
        "then sees these, from 0 on");
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return config;
}

}  // namespace foliot
