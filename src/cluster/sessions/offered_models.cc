#include "cluster/sessions/offered_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

std::vector<RowLayout> layouts_of(const ModelInfo& model) {
  std::vector<RowLayout> layouts;
  for (uint16_t bucket = 0; bucket < model.buckets.size(); ++bucket) {
    layouts.push_back(row_layout(model, BucketId(bucket)));
  }
  return layouts;
}

Status unknown(ModelId model) {
  return Status::invalid_argument(fmt::format("model {} is not this worker's", model.value()));
}

}  // namespace

std::optional<ModelId> OfferedModels::add(std::shared_ptr<const ModelInfo> model) {
  const ModelId id = model->id;
  std::optional<ModelId> earlier;
  for (auto& [other, offered] : models_) {
    if (offered.withdrawn || offered.info->name != model->name) continue;
    offered.withdrawn = true;
    if (!offered.released) earlier = other;
  }
  Model added{.layouts = layouts_of(*model)};
  added.info = std::move(model);
  FOLIOT_CHECK(models_.emplace(id, std::move(added)).second);
  return earlier;
}

bool OfferedModels::remove(ModelId model, Gone gone) {
  Model& removed = models_.at(model);
  removed.gone = std::move(gone);
  const bool first = !std::exchange(removed.withdrawn, true) && !removed.released;
  forget_if_over(model);
  return first;
}

void OfferedModels::forget_if_over(ModelId model) {
  const auto found = models_.find(model);
  if (!found->second.released || !found->second.gone) return;
  const Gone gone = std::move(found->second.gone);
  models_.erase(found);
  gone();
}

const std::vector<ModelId>& OfferedModels::begin() {
  lose_names();
  listed_.clear();
  std::vector<ModelId> over;
  for (auto& [id, model] : models_) {
    if (model.withdrawn) model.released = true;
    (model.withdrawn || model.released ? over : listed_).push_back(id);
  }
  for (const ModelId id : over) forget_if_over(id);
  std::ranges::stable_sort(listed_, std::greater(), [this](ModelId id) { return models_.at(id).named_at; });
  return listed_;
}

Status OfferedModels::welcome(std::span<const ModelId> names) {
  if (names.size() != listed_.size()) {
    return Status::invalid_argument(fmt::format("{} names for {} models", names.size(), listed_.size()));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == kUnnamed) {
      models_.at(listed_[i]).nameless = true;
    } else {
      FOLIOT_RETURN_IF_ERROR(name(listed_[i], names[i]));
    }
  }
  return Status();
}

Status OfferedModels::name(ModelId model, ModelId name) {
  Model* named = find(model);
  if (named == nullptr) return unknown(model);
  if (named->name != kUnnamed || named->released || name == kUnnamed || by_name_.contains(name)) {
    return Status::invalid_argument(
        fmt::format("model {} has a name, or the name {} a model", model.value(), name.value()));
  }
  named->name = name;
  named->named_at = ++namings_;
  named->nameless = false;
  by_name_.emplace(name, model);
  return Status();
}

Status OfferedModels::release(ModelId model) {
  Model* released = find(model);
  if (released == nullptr || released->released) return unknown(model);
  by_name_.erase(std::exchange(released->name, kUnnamed));
  released->released = true;
  forget_if_over(model);
  return Status();
}

void OfferedModels::lose_names() {
  by_name_.clear();
  for (auto& [id, model] : models_) model.name = kUnnamed;
}

std::optional<ModelId> OfferedModels::named(ModelId name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::vector<ModelId> OfferedModels::strays() const {
  std::vector<ModelId> strays;
  for (const auto& [id, model] : models_) {
    if (model.withdrawn || model.nameless) strays.push_back(id);
  }
  return strays;
}

const RowLayout* OfferedModels::layout(ModelId model, BucketId bucket) const {
  const std::vector<RowLayout>& layouts = models_.at(model).layouts;
  return bucket.value() < layouts.size() ? &layouts[bucket.value()] : nullptr;
}

OfferedModels::Model* OfferedModels::find(ModelId model) {
  const auto found = models_.find(model);
  return found == models_.end() ? nullptr : &found->second;
}

}  // namespace foliot
