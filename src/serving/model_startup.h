// ModelStartup: brings the models of a repository into service when a server or a worker
// starts, one by one: first those that were compiled before, then the others, each as soon
// as it is compiled. The catalog shows all of them from the beginning, as LOADING, READY,
// or UNAVAILABLE with the reason.
#ifndef FOLIOT_SERVING_MODEL_STARTUP_H_
#define FOLIOT_SERVING_MODEL_STARTUP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/catalog.h"
#include "repository/model_folder.h"
#include "repository/package_store.h"
#include "serving/compiled_model.h"
#include "serving/model_host.h"
#include "serving/startup_reporter.h"

namespace foliot {

// Threading: one thread.
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
  std::vector<uint64_t> uncompiled_bytes() const;  // of their files
  // Compiles what is not, without serving it yet.
  void compile_others();
  // Serves what is compiled; then compiles and serves what is not.
  void serve_compiled(ModelHost& host);
  void serve_others(ModelHost& host);

  const StartupProgress& progress() const { return progress_; }

 private:
  // nullopt: it cannot be, or compiling was cancelled.
  std::optional<CompiledModel> compile(const ModelFolder& folder);
  void serve(const CompiledModel& model, ModelHost& host);
  void fail(const ModelFolder& folder, const Status& status);

  const Parts parts_;
  std::vector<CompiledModel> compiled_;
  std::vector<ModelFolder> uncompiled_;
  StartupProgress progress_;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_MODEL_STARTUP_H_
