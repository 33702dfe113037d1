// ModelStartup: brings the models of a repository into service when a server or a worker
// starts: first those that were compiled before, then the others, each as soon as its
// smallest batch size is compiled (node/repository/repository_service.h). The catalog shows all of
// them from the beginning, as LOADING, READY, or UNAVAILABLE with the reason.
#ifndef FOLIOT_NODE_REPOSITORY_MODEL_STARTUP_H_
#define FOLIOT_NODE_REPOSITORY_MODEL_STARTUP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/core/catalog.h"
#include "models/repository/model_folder.h"
#include "models/repository/package_store.h"
#include "node/devices/compiled_model.h"
#include "node/repository/model_host.h"
#include "node/repository/repository_service.h"
#include "node/repository/startup_reporter.h"

namespace foliot {

// Threading: one thread, besides the service's.
class ModelStartup {
 public:
  struct Parts {
    Catalog& catalog;
    PackageStore& packages;
    StartupReporter& reporter;
    std::function<bool()> cancelled;  // asked several times a second; ends any step early
  };
  // What the parts refer to outlives this.
  explicit ModelStartup(Parts parts) : parts_(std::move(parts)) {}

  // Shows the models and opens what was compiled before. Once, first.
  void find(const std::vector<ModelFolder>& folders);
  // After find(): what a worker's memory is planned by.
  const std::vector<CompiledModel>& compiled() const { return compiled_; }
  // Of the files of those that are to be compiled.
  std::vector<uint64_t> uncompiled_bytes() const;
  // Has the others compiled, and served once the service has a ModelHost. It outlives neither
  // this nor the parts.
  void load_others(RepositoryService& repository);
  // Serves what is compiled.
  void serve_compiled(ModelHost& host);
  // Returns when each of the others is served, or cannot be, or when cancelled; the service
  // has stopped then.
  void wait_for_others(RepositoryService& repository);

  StartupProgress progress();

 private:
  void serve(const CompiledModel& model, ModelHost& host);
  void fail(const ModelFolder& folder, const Status& status);
  void on_loaded(const std::string& name, const Status& status);

  const Parts parts_;
  std::vector<CompiledModel> compiled_;
  std::vector<ModelFolder> uncompiled_;
  Mutex mutex_;  // also of the reporter's calls
  Condition loaded_;
  StartupProgress progress_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_MODEL_STARTUP_H_
