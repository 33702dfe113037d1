#include "node/server/application_folder.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "answer/selection/application.h"
#include "node/files/definition_files.h"

namespace foliot {

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
  inference_.serve(std::move(applications), catalog_);
  if (options_.state.empty()) return Status();
  state_keeper_ = std::make_unique<StateKeeper>(inference_, reports_.on_failure);
  return state_keeper_->start(options_.state);
}

WatchedFiles ApplicationFolder::definitions() {
  const auto take = [this]() -> Result<std::vector<std::string>> {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<Application> all, scan_applications(options_.folder));
    return inference_.replace(std::move(all));
  };
  return definition_files(options_.folder, "application.toml", take, reports_.on_failure);
}

void ApplicationFolder::stop() {
  if (state_keeper_ != nullptr) state_keeper_->stop();
}

}  // namespace foliot
