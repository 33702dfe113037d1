// RepositoryVariants: the VariantHost of a server. Variants are compiled to the store of packages, in the background as
// any model that comes later, and served from their draft. A publication moves folders within the repository's file
// system:
//
//   1. the draft's file `publishing` names the variants
//   2. their folders are moved to the repository; none takes the place of another
//   3. task.toml, which has the variants besides those that it had, is moved to its place
//
// So a process that ends in between leaves models without their task, until the registration goes on; take_back() moves
// them into the draft again.
//
// Threading: any; publications one at a time.
#ifndef FOLIOT_NODE_REPOSITORY_REPOSITORY_VARIANTS_H_
#define FOLIOT_NODE_REPOSITORY_REPOSITORY_VARIANTS_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "answer/tasks/task_spec.h"
#include "edge/jobs/variant_host.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/core/catalog.h"
#include "models/repository/model_config.h"
#include "models/repository/package_store.h"
#include "node/repository/repository_service.h"

namespace foliot {

class RepositoryVariants final : public VariantHost {
 public:
  struct Parts {
    Catalog& catalog;
    PackageStore& packages;
    RepositoryService& models;
    std::filesystem::path repository;
    ModelConfig defaults;  // of models
    // Serves the tasks of the repository as they are now.
    std::function<void()> read_tasks;
  };
  // All references outlive this.
  explicit RepositoryVariants(Parts parts) : parts_(std::move(parts)) {}

  std::filesystem::path drafts() const override { return parts_.repository / ".registrations"; }
  Status check(const TaskAddition& addition) const override;
  Status try_out(const std::string& model, const std::filesystem::path& folder, const JobContext& context) override;
  void withdraw(const std::string& model) override;
  Status publish(const std::filesystem::path& draft, const TaskAddition& addition) override;
  void take_back(const std::filesystem::path& draft) override;

 private:
  std::filesystem::path folder_of(const std::string& name) const { return parts_.repository / name; }
  std::filesystem::path task_file(const std::string& task) const { return folder_of(task) / "task.toml"; }
  Status check_new(const std::string& name) const;
  // The task with the variants added.
  Result<std::string> task_text(const TaskAddition& addition) const;
  Status check_interfaces(const TaskSpec& task) const;
  Status move_all(const std::filesystem::path& draft, const TaskAddition& addition, const std::string& text);
  Status move_task(const std::filesystem::path& draft, const std::string& task) const;

  const Parts parts_;
  Mutex publishing_;  // of the files of tasks
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_REPOSITORY_VARIANTS_H_
