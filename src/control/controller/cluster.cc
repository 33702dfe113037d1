#include "control/controller/cluster.h"

#include <algorithm>
#include <utility>

#include "control/controller/rolling_duration_model.h"

namespace foliot {

Cluster::Cluster() : Cluster(std::make_unique<RollingDurationModel>()) {}

Cluster::Cluster(std::unique_ptr<DurationModel> durations) : durations_(std::move(durations)) {
  intern_kind(kDefaultKind);
}

// ---- Kinds ----

bool Cluster::knows_kind(std::string_view name) const {
  return std::ranges::find(kinds_, name, &Kind::name) != kinds_.end();
}

KindId Cluster::intern_kind(std::string_view name) {
  const auto found = std::ranges::find(kinds_, name, &Kind::name);
  const auto id = static_cast<uint16_t>(found - kinds_.begin());
  if (found == kinds_.end()) {
    FOLIOT_CHECK(kinds_.size() < kKindsMax);
    kinds_.emplace_back().name = name;
    resize(kinds_.back());
  }
  return KindId(id);
}

std::vector<KindId> Cluster::intern_kinds_of(const ModelInfo& model) {
  std::vector<KindId> kinds;
  for (const Runnable& runnable : model.runnables) kinds.push_back(intern_kind(runnable.kind));
  return kinds;
}

void Cluster::resize(Kind& kind) const {
  kind.runnables.resize(models.size());
  kind.allowed.resize(models.size());
  kind.batch_sizes.resize(models.size());
}

// ---- Targets ----

bool Cluster::allows(const ModelTarget& target, const Kind& kind, uint32_t model) {
  const Runnable* runnable = kind.runnables[model];
  return runnable != nullptr && target.copies_most > 0 && runnable->batch_sizes.front() <= target.batch_most &&
         (target.kinds.empty() || std::ranges::count(target.kinds, kind.name) > 0);
}

std::optional<DeviceId> Cluster::find_first_able(ModelId model, const ModelTarget& target) const {
  std::optional<DeviceId> first;
  for (const Kind& kind : kinds_) {
    if (!kind.first_device || !allows(target, kind, model.value())) continue;
    first = std::min(first.value_or(*kind.first_device), *kind.first_device);
  }
  return first;
}

void Cluster::set_target(ModelId model, const ModelTarget& target) {
  FOLIOT_CHECK(has_model(model));
  targets_[model.value()] = target;
  apply_target(model.value());
}

void Cluster::apply_target(uint32_t model) {
  const ModelTarget& target = targets_[model];
  for (Kind& kind : kinds_) {
    kind.allowed[model] = allows(target, kind, model);
    kind.batch_sizes[model] = {};
    if (kind.runnables[model] == nullptr) continue;
    const std::vector<uint32_t>& sizes = kind.runnables[model]->batch_sizes;
    const auto end = std::upper_bound(sizes.begin() + 1, sizes.end(), target.batch_most);
    kind.batch_sizes[model] = {sizes.begin(), end};
  }
  first_able_[model] = find_first_able(ModelId(model), target);
  target.copies_least > 0 ? required_.insert(model) : required_.erase(model);
}

bool Cluster::lacks_required_model() const {
  for (auto id = required_.next(0); id; id = required_.next(*id + 1)) {
    if (held[*id] == 0 && first_able_[*id]) return true;
  }
  return false;
}

uint32_t Cluster::required_pages(const DeviceModel& device) const {
  uint32_t pages = 0;
  for (auto id = required_.next(0); id; id = required_.next(*id + 1)) {
    const ModelId model(*id);
    if (device.held(model) != Residency::kAbsent && !may_evict(model)) pages += this->pages(device.id(), model);
  }
  return pages;
}

// ---- Devices and models ----

DeviceModel& Cluster::add_device(KindId kind, uint32_t page_count) {
  const DeviceId id(static_cast<uint32_t>(devices.size()));
  devices.emplace_back(id, page_count, kind);
  ++kinds_[kind.value()].devices;
  if (!kinds_[kind.value()].first_device) {
    kinds_[kind.value()].first_device = id;
    const std::vector<bool>& allowed = kinds_[kind.value()].allowed;
    for (uint32_t m = 0; m < models.size(); ++m) {
      if (allowed[m]) first_able_[m] = std::min(first_able_[m].value_or(id), id);
    }
  }
  durations_->add_device(kind);
  return devices.back();
}

void Cluster::add_model(std::shared_ptr<const ModelInfo> model) {
  const std::vector<KindId> kinds = intern_kinds_of(*model);
  durations_->add_model(*model, kinds);
  put_model(std::move(model), kinds);
}

void Cluster::extend_model(std::shared_ptr<const ModelInfo> model) {
  const std::vector<KindId> kinds = intern_kinds_of(*model);
  durations_->extend_model(*model, kinds);
  put_model(std::move(model), kinds);
}

void Cluster::put_model(std::shared_ptr<const ModelInfo> model, std::span<const KindId> kinds) {
  const uint32_t id = model->id.value();
  FOLIOT_CHECK(id <= models.size());
  if (id == models.size()) {
    models.emplace_back();
    copies.push_back(0);
    held.push_back(0);
    targets_.emplace_back();
    withdrawn_.push_back(false);
    bucket_counts_.push_back(0);
    first_able_.emplace_back();
    for (Kind& kind : kinds_) resize(kind);
  }
  for (Kind& kind : kinds_) kind.runnables[id] = nullptr;
  for (size_t i = 0; i < kinds.size(); ++i) kinds_[kinds[i].value()].runnables[id] = &model->runnables[i];
  bucket_counts_[id] = static_cast<uint16_t>(model->buckets.size());
  models[id] = std::move(model);
  apply_target(id);
}

void Cluster::remove_model(ModelId model) {
  for (Kind& kind : kinds_) kind.runnables[model.value()] = nullptr;
  targets_[model.value()] = {};
  apply_target(model.value());
  models[model.value()] = nullptr;
  withdrawn_[model.value()] = false;
}

// ---- Copies and batch sizes ----

void Cluster::count_copies(const DeviceModel& device, bool there) {
  const auto count = [there](uint32_t& number) {
    FOLIOT_CHECK(there || number > 0);
    number += there ? 1 : -1;
  };
  for (const ModelId model : device.held()) {
    count(held[model.value()]);
    if (device.held(model) == Residency::kLoaded && !device.set_aside(model)) count(copies[model.value()]);
  }
}

uint32_t Cluster::batch_index(DeviceId device, ModelId model, uint32_t batch_size) const {
  const std::span<const uint32_t> allowed = batch_sizes(device, model);
  if (const auto found = std::ranges::find(allowed, batch_size); found != allowed.end()) {
    return static_cast<uint32_t>(found - allowed.begin());
  }
  const std::vector<uint32_t>& sizes = runnable(device, model)->batch_sizes;
  const auto found = std::ranges::find(sizes, batch_size);
  FOLIOT_CHECK(found != sizes.end());
  return static_cast<uint32_t>(found - sizes.begin());
}

}  // namespace foliot
