#include "tasks/served_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tasks/task_interface.h"

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

ServedTasks::ServedTasks(Catalog& catalog, TaskSink& sink) : catalog_(catalog) { registration_->sink = &sink; }

ServedTasks::~ServedTasks() {
  watch_.reset();
  const std::unique_lock lock(registration_->mutex);
  registration_->sink = nullptr;
}

void ServedTasks::Registration::begin(const ModelInfo& info) {
  const std::shared_lock lock(mutex);
  if (sink != nullptr) sink->add_task(info.task);
}

void ServedTasks::Registration::end(const ModelInfo& info) {
  const std::shared_lock lock(mutex);
  if (sink != nullptr) sink->remove_task(info.task->id);
}

void ServedTasks::serve(std::vector<TaskSpec> tasks) {
  for (TaskSpec& task : tasks) {
    const std::string name = task.name;
    tasks_[name] = std::move(task);
  }
  for (const auto& [name, task] : tasks_) {
    for (const VariantSpec& variant : task.variants) by_model_[variant.model].push_back(&task);
  }
  watch_ = catalog_.watch([this](const std::string& name, const Catalog::EntryPtr& entry) { on_change(name, entry); });
  const std::lock_guard lock(mutex_);
  for (const auto& [name, task] : tasks_) update(task);
}

void ServedTasks::on_change(const std::string& name, const Catalog::EntryPtr& entry) {
  // Entries of tasks are put here, and those of applications by a thread that holds their lock.
  if (entry != nullptr && entry->role != EntryRole::kModel) return;
  const auto own = tasks_.find(name);
  const auto changed = by_model_.find(name);
  if (own == tasks_.end() && changed == by_model_.end()) return;
  const std::lock_guard lock(mutex_);
  if (own != tasks_.end()) update(own->second);
  if (changed == by_model_.end()) return;
  for (const TaskSpec* task : changed->second) update(*task);
}

void ServedTasks::update(const TaskSpec& task) {
  const Catalog::EntryPtr shown = catalog_.find(task.name);
  if (shown != nullptr && shown->role != EntryRole::kTask) return;
  CatalogEntry entry = entry_of(task, shown);
  const bool is_shown = shown != nullptr && shown->state == entry.state && shown->reason == entry.reason &&
                        shown->info == entry.info && shown->wanted == entry.wanted;
  if (!is_shown) catalog_.put(std::move(entry));
}

CatalogEntry ServedTasks::entry_of(const TaskSpec& task, const Catalog::EntryPtr& shown) {
  CatalogEntry entry{.name = task.name, .version = "1", .reason = {}, .info = {}, .role = EntryRole::kTask};
  if (!task.status.ok()) {
    entry.reason = task.status.message();
    return entry;
  }
  std::vector<TaskVariant> variants;
  bool loading = false;
  bool wanted = false;
  for (const VariantSpec& variant : task.variants) {
    const Catalog::EntryPtr model = catalog_.find(variant.model);
    entry.models.push_back(variant.model);
    wanted = wanted || model == nullptr || model->wanted;
    if (is_ready_model(model)) {
      variants.push_back({model->info, variant.accuracy});
      continue;
    }
    loading = loading || (model != nullptr && model->state == ModelState::kLoading);
    entry.reason += fmt::format("{}{}", entry.reason.empty() ? "" : "; ", state_of_variant(variant.model, model));
  }
  entry.wanted = wanted;
  if (variants.empty()) {
    entry.state = loading ? ModelState::kLoading : ModelState::kUnavailable;
    return entry;
  }
  if (shown != nullptr && shown->info != nullptr && is_made_of(*shown->info, variants)) {
    entry.info = shown->info;
  } else {
    const auto described = describe_task(task, std::move(variants), ServedTaskId(last_id_ + 1));
    if (!described.ok()) {
      entry.reason = described.status().message();
      return entry;
    }
    ++last_id_;
    entry.info = registered(*described);
  }
  entry.state = ModelState::kReady;
  return entry;
}

std::shared_ptr<const ModelInfo> ServedTasks::registered(const std::shared_ptr<const ModelInfo>& info) const {
  registration_->begin(*info);
  return {info.get(), [info, registration = registration_](const ModelInfo*) { registration->end(*info); }};
}

}  // namespace foliot
