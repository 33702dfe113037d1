#include "pipeline/served_pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline/resolve.h"

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

ServedPipelines::ServedPipelines(Catalog& catalog, PipelineSink& sink) : catalog_(catalog) {
  registration_->sink = &sink;
}

ServedPipelines::~ServedPipelines() {
  watch_.reset();
  const std::unique_lock lock(registration_->mutex);
  registration_->sink = nullptr;
}

void ServedPipelines::Registration::begin(const ModelInfo& info) {
  const std::shared_lock lock(mutex);
  if (sink != nullptr) sink->add_pipeline(info.pipeline);
}

void ServedPipelines::Registration::end(const ModelInfo& info) {
  const std::shared_lock lock(mutex);
  if (sink != nullptr) sink->remove_pipeline(info.pipeline->id);
}

void ServedPipelines::serve(std::vector<PipelineSpec> pipelines) {
  for (PipelineSpec& pipeline : pipelines) {
    const std::string name = pipeline.name;
    pipelines_[name] = std::move(pipeline);
  }
  for (auto& [name, pipeline] : pipelines_) {
    check_models(pipeline);
    for (const StageSpec& stage : pipeline.stages) by_model_[stage.model].push_back(&pipeline);
  }
  watch_ = catalog_.watch([this](const std::string& name, const Catalog::EntryPtr& entry) { on_change(name, entry); });
  const std::lock_guard lock(mutex_);
  for (const auto& [name, pipeline] : pipelines_) update(pipeline);
}

void ServedPipelines::check_models(PipelineSpec& pipeline) const {
  for (const StageSpec& stage : pipeline.stages) {
    if (!pipeline.status.ok() || !pipelines_.contains(stage.model)) continue;
    pipeline.status = Status::invalid_argument(fmt::format("{}:{}: stage '{}' has '{}', a pipeline; stages have models",
                                                           pipeline.file, stage.line, stage.name, stage.model));
  }
}

void ServedPipelines::on_change(const std::string& name, const Catalog::EntryPtr& entry) {
  // Entries of applications are put by a thread that holds their lock, and those of pipelines here.
  if (entry != nullptr && entry->role != EntryRole::kModel) return;
  const auto own = pipelines_.find(name);
  const auto changed = by_model_.find(name);
  if (own == pipelines_.end() && changed == by_model_.end()) return;
  const std::lock_guard lock(mutex_);
  if (own != pipelines_.end()) update(own->second);
  if (changed == by_model_.end()) return;
  for (const PipelineSpec* pipeline : changed->second) update(*pipeline);
}

void ServedPipelines::update(const PipelineSpec& pipeline) {
  const Catalog::EntryPtr shown = catalog_.find(pipeline.name);
  if (shown != nullptr && shown->role != EntryRole::kPipeline) return;
  CatalogEntry entry = entry_of(pipeline, shown);
  const bool is_shown = shown != nullptr && shown->state == entry.state && shown->reason == entry.reason &&
                        shown->info == entry.info && shown->wanted == entry.wanted;
  if (!is_shown) catalog_.put(std::move(entry));
}

CatalogEntry ServedPipelines::entry_of(const PipelineSpec& pipeline, const Catalog::EntryPtr& shown) {
  CatalogEntry entry{.name = pipeline.name, .version = "1", .reason = {}, .info = {}, .role = EntryRole::kPipeline};
  if (!pipeline.status.ok()) {
    entry.reason = pipeline.status.message();
    return entry;
  }
  ModelsByName models;
  bool loading = false;
  for (const StageSpec& stage : pipeline.stages) {
    const Catalog::EntryPtr model = catalog_.find(stage.model);
    if (!models.contains(stage.model)) entry.models.push_back(stage.model);
    models[stage.model] = is_served(model) ? model->info : nullptr;
    if (models[stage.model] != nullptr) continue;
    loading = loading || (model != nullptr && model->state == ModelState::kLoading);
    entry.wanted = entry.wanted && (model == nullptr || model->wanted);
    entry.reason += fmt::format("{}{}", entry.reason.empty() ? "" : "; ", state_of(stage, model));
  }
  if (!entry.reason.empty()) {
    entry.state = loading ? ModelState::kLoading : ModelState::kUnavailable;
    return entry;
  }
  if (shown != nullptr && shown->info != nullptr && is_made_of(*shown->info, pipeline.stages, models)) return *shown;
  const auto resolved = resolve(pipeline, models, PipelineId(last_id_ + 1));
  if (!resolved.ok()) {
    entry.reason = resolved.status().message();
    return entry;
  }
  ++last_id_;
  entry.state = ModelState::kReady;
  entry.info = registered(*resolved);
  return entry;
}

std::shared_ptr<const ModelInfo> ServedPipelines::registered(const std::shared_ptr<const ModelInfo>& info) const {
  registration_->begin(*info);
  return {info.get(), [info, registration = registration_](const ModelInfo*) { registration->end(*info); }};
}

}  // namespace foliot
