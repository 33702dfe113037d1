// ConvertedModels: files of frameworks as ONNX, which a confined process makes of them with the libraries of its
// container (python/foliot/onnx_maker.py). Kept on disk under the hash of the file, of what the container is started
// with and of the libraries' versions; so are the reasons of those that cannot be converted.
//
// A conversion is made by code that is trusted as little as a container's: the compiler reads the graph and
// the answers in a confined process, and what the description says is what a container's would.
//
// Threading: any; of several that want the same conversion each makes it.
#ifndef FOLIOT_NODE_REPOSITORY_CONVERTED_MODELS_H_
#define FOLIOT_NODE_REPOSITORY_CONVERTED_MODELS_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/tensor.h"
#include "models/repository/model_folder.h"
#include "node/repository/container_model.h"

namespace foliot {

class ConvertedModels {
 public:
  // `folder` is made when it is needed.
  explicit ConvertedModels(std::filesystem::path folder) : folder_(std::move(folder)) {}

  struct Converted {
    std::filesystem::path model;  // the .onnx file, in a folder of its own
    // The container's; the graph must have the same.
    std::vector<TensorSpec> inputs;
    std::vector<TensorSpec> outputs;
    std::string note{};  // what the container would have printed; empty: nothing
  };
  // Errors, which say why the model stays a container: kUnimplemented if it cannot be converted; kResourceExhausted if
  // that took too long; kUnavailable if cancelled; kInternal. REQUIRES: model.is_convertible().
  Result<Converted> get(const ModelFolder& model, const ContainerParts& parts, const std::function<bool()>& cancelled);

 private:
  Result<std::string> versions_of(const ContainerOptions& options, const std::function<bool()>& cancelled);
  Status make(ContainerOptions options, const std::filesystem::path& place, const std::function<bool()>& cancelled);

  const std::filesystem::path folder_;
  Mutex mutex_;
  std::map<std::string, std::string> versions_ GUARDED_BY(mutex_);  // by interpreter, of all that ever were asked
};

// Compares the inputs and outputs of a program, as its package says, with those of the container. Errors:
// kUnimplemented, naming what differs.
Status check_interface(const Program& program, const ConvertedModels::Converted& converted);

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_CONVERTED_MODELS_H_
