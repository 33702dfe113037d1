#include "node/server/application_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "answer/selection/application.h"
#include "node/files/definition_files.h"

namespace foliot {
namespace {

std::vector<std::string> with_own_policies(const std::vector<Application>& applications) {
  std::vector<std::string> names;
  for (const Application& application : applications) {
    if (application.status.ok() && application.own != nullptr) names.push_back(application.name);
  }
  return names;
}

}  // namespace

ApplicationFolder::ApplicationFolder(Options options, SelectedInference& inference, Catalog& catalog, Reports reports)
    : options_(std::move(options)), inference_(inference), catalog_(catalog), reports_(std::move(reports)) {}

Status ApplicationFolder::start() {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<Application> applications, scan_applications(options_.folder));
  for (const Application& application : applications) {
    if (std::string caution = application.caution(); !caution.empty()) reports_.on_note(caution);
    if (application.status.ok()) continue;
    reports_.on_note(
        fmt::format("application '{}' cannot be served: {}", application.name, application.status.message()));
  }
  if (options_.feedback_log != nullptr) {
    inference_.describe_selections();
    inference_.log_feedback(*options_.feedback_log);
  }
  const std::vector<std::string> with_own = with_own_policies(applications);
  inference_.serve(std::move(applications), catalog_);
  if (!options_.state.empty()) {
    state_keeper_ = std::make_unique<StateKeeper>(inference_, reports_.on_failure);
    FOLIOT_RETURN_IF_ERROR(state_keeper_->start(options_.state));
  }
  return run_policies(with_own);
}

// One that is defined and cannot be served yet has its runner already, and one that is served still has it.
Status ApplicationFolder::run_policies(const std::vector<std::string>& with_own) {
  std::map<std::shared_ptr<ServedApplication>, std::unique_ptr<PolicyRunner>> before = std::move(runners_);
  runners_.clear();
  for (const std::shared_ptr<ServedApplication>& served : inference_.served_applications()) {
    if (std::ranges::count(with_own, served->application()->name) == 0 && served->own_policy() == nullptr) continue;
    std::unique_ptr<PolicyRunner>& runner = runners_[served] = std::move(before[served]);
    if (runner != nullptr) continue;
    runner = std::make_unique<PolicyRunner>(options_.policies, served,
                                            PolicyRunner::Reports{reports_.on_failure, reports_.on_line});
    FOLIOT_RETURN_IF_ERROR(runner->start());
  }
  return Status();
}

WatchedFiles ApplicationFolder::definitions() {
  const auto take = [this]() -> Result<std::vector<std::string>> {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<Application> all, scan_applications(options_.folder));
    const std::vector<std::string> with_own = with_own_policies(all);
    std::vector<std::string> notes = inference_.replace(std::move(all));
    FOLIOT_RETURN_IF_ERROR(run_policies(with_own));
    return notes;
  };
  return definition_files(options_.folder, "application.toml", take, reports_.on_failure);
}

void ApplicationFolder::stop() {
  runners_.clear();
  if (state_keeper_ != nullptr) state_keeper_->stop();
}

}  // namespace foliot
