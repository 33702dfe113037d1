#include "answer/pipelines/served_pipelines.h"

#include <fmt/format.h>

#include "answer/pipelines/resolve.h"

namespace foliot {
namespace {

bool is_served(const Catalog::EntryPtr& entry) {
  return entry != nullptr && entry->role == EntryRole::kModel && entry->state == ModelState::kReady &&
         entry->info != nullptr;
}

// Why a stage's model is not served.
std::string state_of(const StageSpec& stage, const Catalog::EntryPtr& entry) {
  const std::string model = fmt::format("stage '{}' needs model '{}', which", stage.name, stage.model);
  if (entry == nullptr) return model + " is not in the repository";
  if (entry->role == EntryRole::kApplication) return model + " is an application";
  if (entry->role == EntryRole::kPersonal) return model + " is a personal model";
  if (entry->role == EntryRole::kTask) return model + " is a task; stages have models";
  return fmt::format("{} is {}{}{}", model, to_string(entry->state), entry->reason.empty() ? "" : ": ", entry->reason);
}

bool is_made_of(const ModelInfo& info, const std::vector<StageSpec>& stages, const ModelsByName& models) {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (info.pipeline->stages[i].model != models.at(stages[i].model)) return false;
  }
  return true;
}

}  // namespace

void ServedPipelineKind::check(Spec& pipeline, const std::set<std::string>& pipelines) {
  for (const StageSpec& stage : pipeline.stages) {
    if (!pipeline.status.ok() || !pipelines.contains(stage.model)) continue;
    pipeline.status = Status::invalid_argument(fmt::format("{}:{}: stage '{}' has '{}', a pipeline; stages have models",
                                                           pipeline.file, stage.line, stage.name, stage.model));
  }
}

bool ServedPipelineKind::is_same(const Spec& a, const Spec& b) {
  return a.content == b.content && a.status.message() == b.status.message();
}

std::set<std::string> ServedPipelineKind::model_names(const Spec& pipeline) {
  std::set<std::string> models;
  for (const StageSpec& stage : pipeline.stages) models.insert(stage.model);
  return models;
}

void ServedPipelineKind::describe(const Spec& pipeline, const Catalog& catalog,
                                  const std::shared_ptr<const ModelInfo>& shown, uint32_t id, CatalogEntry& entry) {
  ModelsByName models;
  bool loading = false;
  for (const StageSpec& stage : pipeline.stages) {
    const Catalog::EntryPtr model = catalog.find(stage.model);
    if (!models.contains(stage.model)) entry.models.push_back(stage.model);
    models[stage.model] = is_served(model) ? model->info : nullptr;
    if (models[stage.model] != nullptr) continue;
    loading = loading || (model != nullptr && model->state == ModelState::kLoading);
    entry.wanted = entry.wanted && (model == nullptr || model->wanted);
    entry.reason += fmt::format("{}{}", entry.reason.empty() ? "" : "; ", state_of(stage, model));
  }
  if (!entry.reason.empty()) {
    entry.state = loading ? ModelState::kLoading : ModelState::kUnavailable;
  } else if (shown != nullptr && is_made_of(*shown, pipeline.stages, models)) {
    entry.info = shown;
  } else if (const auto resolved = resolve(pipeline, models, PipelineId(id)); resolved.ok()) {
    entry.info = *resolved;
  } else {
    entry.reason = resolved.status().message();
  }
}

}  // namespace foliot
