// ContainerModel: one version of a container model on this machine: its replicas
// (node/replicas/replica.h), of which the first shows its inputs, outputs and durations.
//
// Threading: belongs to one thread at a time.
#ifndef FOLIOT_NODE_REPOSITORY_CONTAINER_MODEL_H_
#define FOLIOT_NODE_REPOSITORY_CONTAINER_MODEL_H_

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/core/model_info.h"
#include "models/repository/model_folder.h"
#include "node/replicas/replica.h"

namespace foliot {

// Where containers are served. All that it refers to outlives their models.
struct ContainerParts {
  ReplicaParts replicas;
  std::vector<std::string> launcher;  // the command that starts a process (engine/container/container_launch.h)
  std::filesystem::path package;      // the folder that the Python package `foliot` lies in
  ContainerSafety safety{};
};

// How the processes of this model are started. Errors: kInternal.
Result<ContainerOptions> container_options(const ModelFolder& folder, const std::vector<std::string>& launcher,
                                           const std::filesystem::path& package, const ContainerSafety& safety = {});

// ModelInfo::content: of its files and of its table [container]. Errors: add_model_files()'s.
Result<std::string> container_content(const ModelFolder& folder);

class ContainerModel {
 public:
  // Starts and measures a first process, which may take as long as start_timeout. Errors:
  // Replica::wait_until_measured()'s, ReplicaKinds::take()'s.
  static Result<std::unique_ptr<ContainerModel>> start(const ModelFolder& folder, const ContainerParts& parts,
                                                       const std::function<bool()>& cancelled);
  ~ContainerModel() { stop(); }
  ContainerModel(const ContainerModel&) = delete;
  ContainerModel& operator=(const ContainerModel&) = delete;

  ModelInfo info(ModelId id) const;
  // The controller has the model: from now on its replicas join, of which the first has when
  // this returns. Errors: Replica::wait_until_joined()'s, kResourceExhausted.
  Status serve(std::shared_ptr<const ModelInfo> model);
  // Ends all processes, and returns when their devices are lost. Calling it again does
  // nothing.
  void stop();

 private:
  ContainerModel(ModelFolder folder, std::string content, ReplicaKinds& kinds, std::string kind);

  const ModelFolder folder_;
  const std::string content_;
  ReplicaKinds& kinds_;
  const std::string kind_;
  std::deque<Replica> replicas_;
  Replica::Measured measured_;
  bool stopped_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_CONTAINER_MODEL_H_
