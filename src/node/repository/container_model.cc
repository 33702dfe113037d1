#include "node/repository/container_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/container/container_engine.h"
#include "foundation/base/hash.h"
#include "foundation/config/code_file.h"
#include "models/repository/model_hash.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// Expected of LOAD, which does nothing.
constexpr Duration kLoad = Duration::milliseconds(1);

ContainerConfig config_of(const ModelFolder& folder) { return folder.config.container.value_or(ContainerConfig()); }

// All that the processes are started with, but their files.
std::string fingerprint(const ContainerConfig& config) {
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", config.python, config.replicas,
                                 config.batch_size_max.value_or(0), config.memory_bytes.value_or(0), config.network,
                                 config.trust_pickle, config.start_timeout.nanoseconds());
  if (config.disk_bytes) text += fmt::format("disk {}\n", *config.disk_bytes);
  text += to_string(config.cores) + "\n";
  for (const uint32_t gpu : config.gpus) text += fmt::format("gpu {}\n", gpu);
  for (const fs::path& path : config.readable) text += path.string() + "\n";
  for (const auto& [name, value] : config.environment) text += fmt::format("{}={}\n", name, value);
  return text;
}

// Passes on what `foliot.adapters.file_model` asks for: of inputs and outputs a line each. A file that MLServer's
// scikit-learn or MLflow runtime would read is trusted as there.
void add_file_model(const ModelFolder& folder, ContainerOptions& options) {
  const ForeignSettings& foreign = folder.foreign;
  const std::string& runtime = foreign.runtime.empty() ? folder.config.runtime : foreign.runtime;
  options.environment.push_back(fmt::format("FOLIOT_MODEL_FILE={}", folder.model.filename().string()));
  if (!runtime.empty()) options.environment.push_back(fmt::format("FOLIOT_MLSERVER_RUNTIME={}", runtime));
  options.trust_pickle = options.trust_pickle || runtime == "mlserver_sklearn" || runtime == "mlserver_mlflow";
  std::string inputs, outputs;
  for (const DeclaredTensor& tensor : foreign.tensors) {
    if (tensor.is_output) {
      outputs += tensor.name + "\n";
    } else {
      inputs += fmt::format("{} {}\n", tensor.type ? to_string(*tensor.type) : "", tensor.name);
    }
  }
  if (!foreign.predict_fn.empty()) options.environment.push_back("FOLIOT_PREDICT_FN=" + foreign.predict_fn);
  if (!inputs.empty()) options.environment.push_back("FOLIOT_INPUTS=" + inputs);
  if (!outputs.empty()) options.environment.push_back("FOLIOT_OUTPUTS=" + outputs);
}

}  // namespace

Result<ContainerOptions> container_options(const ModelFolder& folder, const std::vector<std::string>& launcher,
                                           const fs::path& package, const ContainerSafety& safety) {
  std::error_code error;
  const fs::path code = fs::absolute(folder.model.parent_path(), error);
  if (error) return Status::internal(fmt::format("{}: {}", folder.model.string(), error.message()));
  const ContainerConfig config = config_of(folder);
  ContainerOptions options{.name = folder.name,
                           .folder = code,
                           .python = config.python,
                           .package = package,
                           .launcher = launcher,
                           .cores = config.cores,
                           .memory_bytes = config.memory_bytes.value_or(0),
                           .disk_bytes = config.disk_bytes.value_or(kContainerDiskBytesDefault),
                           .network = config.network,
                           .gpus = config.gpus,
                           .readable = config.readable,
                           .trust_pickle = config.trust_pickle,
                           .start_timeout = config.start_timeout,
                           .batch_size_max = config.batch_size_max,
                           .safety = safety};
  if (folder.model.filename() != kCodeFile) add_file_model(folder, options);
  for (const auto& [name, value] : config.environment) options.environment.push_back(fmt::format("{}={}", name, value));
  return options;
}

Result<std::string> container_content(const ModelFolder& folder) {
  StreamHash hash;
  FOLIOT_RETURN_IF_ERROR(add_model_files(folder.model, hash));
  std::string how = fingerprint(config_of(folder));
  if (folder.model.filename() != kCodeFile) {
    ContainerOptions options;
    add_file_model(folder, options);
    for (const std::string& variable : options.environment) how += variable + "\n";
  }
  hash.update(std::as_bytes(std::span(how)));
  return hash.digest_hex();
}

ContainerModel::ContainerModel(ModelFolder folder, std::string content, ReplicaKinds& kinds, std::string kind)
    : folder_(std::move(folder)), content_(std::move(content)), kinds_(kinds), kind_(std::move(kind)) {}

Result<std::unique_ptr<ContainerModel>> ContainerModel::start(const ModelFolder& folder, const ContainerParts& parts,
                                                              const std::function<bool()>& cancelled) {
  FOLIOT_ASSIGN_OR_RETURN(const ContainerOptions options,
                          container_options(folder, parts.launcher, parts.package, parts.safety));
  FOLIOT_ASSIGN_OR_RETURN(std::string content, container_content(folder));
  ReplicaKinds& kinds = parts.replicas.place.kinds();
  FOLIOT_ASSIGN_OR_RETURN(std::string kind, kinds.take(folder.name));
  std::unique_ptr<ContainerModel> model(new ContainerModel(folder, std::move(content), kinds, std::move(kind)));
  for (uint32_t i = 0; i < config_of(folder).replicas; ++i) {
    model->replicas_.emplace_back(parts.replicas, fmt::format("{}/{}", folder.name, i), options, model->kind_);
  }
  Replica& first = model->replicas_.front();
  FOLIOT_RETURN_IF_ERROR(first.start());
  FOLIOT_ASSIGN_OR_RETURN(model->measured_, first.wait_until_measured(cancelled));
  return model;
}

ModelInfo ContainerModel::info(ModelId id) const {
  ModelInfo info = container_model(measured_.description, kind_, measured_.batch_sizes, measured_.durations);
  info.id = id;
  info.name = folder_.name;
  info.version = folder_.version;
  info.content = content_;
  info.only().seed_load = kLoad;
  info.default_slo = folder_.config.default_slo;
  info.weight = folder_.config.weight;
  info.batch_delay = folder_.config.batch_delay;
  info.cache = folder_.config.cache;
  return info;
}

// The first has started already.
Status ContainerModel::serve(std::shared_ptr<const ModelInfo> model) {
  for (Replica& replica : replicas_) replica.serve(model);
  for (size_t i = 1; i < replicas_.size(); ++i) FOLIOT_RETURN_IF_ERROR(replicas_[i].start());
  return replicas_.front().wait_until_joined();
}

void ContainerModel::stop() {
  if (std::exchange(stopped_, true)) return;
  for (Replica& replica : replicas_) replica.stop();
  kinds_.give_back(kind_);
}

}  // namespace foliot
