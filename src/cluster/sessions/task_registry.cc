#include "cluster/sessions/task_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answer/tasks/task_file.h"
#include "answer/tasks/task_interface.h"
#include "cluster/sessions/pipeline_registry.h"

namespace foliot {
namespace {

// Those that are served, by accuracy.
std::vector<TaskVariant> variants_of(const TaskSpec& spec, const ModelsByName& models) {
  std::vector<TaskVariant> variants;
  for (const VariantSpec& variant : spec.variants) {
    const auto model = models.find(variant.model);
    if (model != models.end()) variants.push_back({model->second, variant.accuracy});
  }
  return variants;
}

}  // namespace

TaskSpec TaskKind::parse(const Definition& task) {
  const std::string file = task.name + "/task.toml";
  return parse_task(task.name, file, text_of(task.lines), [&](const std::string& other) -> Result<Accuracies> {
    if (!task.accuracies.empty()) {
      return parse_accuracies(text_of(task.accuracies), fmt::format("{}/{}", task.name, other));
    }
    return Status::invalid_argument(
        fmt::format("{}: accuracies is '{}', which a worker could not read; its log says why", file, other));
  });
}

bool TaskKind::equal(const Spec& a, const Spec& b) {
  return a.default_slo == b.default_slo && a.accuracy == b.accuracy && a.variants == b.variants;
}

std::string TaskKind::missing(const Spec& spec, const ModelsByName& models) {
  std::string reason;
  for (const VariantSpec& variant : spec.variants) {
    if (models.contains(variant.model)) continue;
    reason += fmt::format("{}variant '{}' is not served", reason.empty() ? "" : "; ", variant.model);
  }
  return reason;
}

bool TaskKind::can_serve(const Spec& spec, const ModelsByName& models) {
  return std::ranges::any_of(spec.variants, [&](const VariantSpec& variant) { return models.contains(variant.model); });
}

bool TaskKind::is_made_of(const ModelInfo& info, const Spec& spec, const ModelsByName& models) {
  return std::ranges::equal(info.task->variants, variants_of(spec, models), {}, &TaskVariant::model,
                            &TaskVariant::model);
}

std::vector<ModelId> TaskKind::models_of(const ModelInfo& info) {
  std::vector<ModelId> models;
  for (const TaskVariant& variant : info.task->variants) models.push_back(variant.model->id);
  return models;
}

std::vector<std::string> TaskKind::model_names(const ModelInfo& info) {
  std::vector<std::string> names;
  for (const TaskVariant& variant : info.task->variants) names.push_back(variant.model->name);
  return names;
}

Result<std::shared_ptr<const ModelInfo>> TaskKind::make(const Spec& spec, const ModelsByName& models, Id id) {
  return describe_task(spec, variants_of(spec, models), id);
}

}  // namespace foliot
