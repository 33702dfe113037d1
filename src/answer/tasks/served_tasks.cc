#include "answer/tasks/served_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "answer/tasks/task_interface.h"

namespace foliot {
namespace {

bool is_ready_model(const Catalog::EntryPtr& entry) {
  return entry != nullptr && entry->role == EntryRole::kModel && entry->state == ModelState::kReady &&
         entry->info != nullptr;
}

// Why a variant is not served.
std::string state_of_variant(const std::string& model, const Catalog::EntryPtr& entry) {
  if (entry == nullptr) return fmt::format("variant '{}' is not in the repository", model);
  if (entry->role != EntryRole::kModel) {
    return fmt::format("variant '{}' is {} {}, and not a model", model,
                       entry->role == EntryRole::kApplication ? "an" : "a", to_string(entry->role));
  }
  return fmt::format("variant '{}' is {}{}{}", model, to_string(entry->state), entry->reason.empty() ? "" : ": ",
                     entry->reason);
}

bool is_made_of(const ModelInfo& info, const std::vector<TaskVariant>& variants) {
  return std::ranges::equal(info.task->variants, variants, {}, &TaskVariant::model, &TaskVariant::model);
}

}  // namespace

// A variant that is a task is named as such where its state is asked.
void ServedTaskKind::check(Spec& /*task*/, const std::set<std::string>& /*tasks*/) {}

bool ServedTaskKind::is_same(const Spec& a, const Spec& b) {
  return a.content == b.content && a.status.message() == b.status.message() &&
         std::ranges::equal(a.variants, b.variants, [](const VariantSpec& one, const VariantSpec& other) {
           return one.model == other.model && one.accuracy == other.accuracy;
         });
}

std::set<std::string> ServedTaskKind::model_names(const Spec& task) {
  std::set<std::string> models;
  for (const VariantSpec& variant : task.variants) models.insert(variant.model);
  return models;
}

void ServedTaskKind::describe(const Spec& task, const Catalog& catalog, const std::shared_ptr<const ModelInfo>& shown,
                              uint32_t id, CatalogEntry& entry) {
  std::vector<TaskVariant> variants;
  bool loading = false;
  entry.wanted = false;
  for (const VariantSpec& variant : task.variants) {
    const Catalog::EntryPtr model = catalog.find(variant.model);
    entry.models.push_back(variant.model);
    entry.wanted = entry.wanted || model == nullptr || model->wanted;
    if (is_ready_model(model)) {
      variants.push_back({model->info, variant.accuracy});
      continue;
    }
    loading = loading || (model != nullptr && model->state == ModelState::kLoading);
    entry.reason += fmt::format("{}{}", entry.reason.empty() ? "" : "; ", state_of_variant(variant.model, model));
  }
  if (variants.empty()) {
    entry.state = loading ? ModelState::kLoading : ModelState::kUnavailable;
  } else if (shown != nullptr && is_made_of(*shown, variants)) {
    entry.info = shown;
  } else if (const auto described = describe_task(task, std::move(variants), ServedTaskId(id)); described.ok()) {
    entry.info = *described;
  } else {
    entry.reason = described.status().message();
  }
}

}  // namespace foliot
