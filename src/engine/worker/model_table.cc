#include "engine/worker/model_table.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {

std::optional<uint32_t> WorkerModel::plan(BucketId bucket, uint32_t batch_size) const {
  const auto found = std::find(batch_sizes.begin(), batch_sizes.end(), batch_size);
  if (found == batch_sizes.end()) return std::nullopt;
  const size_t index = bucket.value() * batch_sizes.size() + static_cast<size_t>(found - batch_sizes.begin());
  if (index >= io_bytes.size()) return std::nullopt;
  return static_cast<uint32_t>(index);
}

ModelTable::ModelTable(uint32_t models_max) : models_max_(models_max), slots_(std::make_unique<Slot[]>(models_max)) {}

ModelTable::Slot& ModelTable::slot(ModelId id) {
  FOLIOT_CHECK(id.value() < models_max_);
  return slots_[id.value()];
}

const ModelTable::Slot& ModelTable::slot(ModelId id) const {
  FOLIOT_CHECK(id.value() < models_max_);
  return slots_[id.value()];
}

void ModelTable::add(WorkerModel model) {
  Slot& s = slot(model.id);
  FOLIOT_CHECK(!s.known.load());
  s.pages.reserve(model.pages);
  s.model = std::move(model);
  s.known.store(true, std::memory_order_release);
}

void ModelTable::remove(ModelId id) {
  Slot& s = slot(id);
  FOLIOT_CHECK(s.known.load() && !s.resident.load() && s.executing.load() == 0);
  s.known.store(false);
}

const WorkerModel* ModelTable::find(ModelId id) const {
  if (id.value() >= models_max_) return nullptr;
  const Slot& s = slots_[id.value()];
  return s.known.load(std::memory_order_acquire) ? &s.model : nullptr;
}

bool ModelTable::resident(ModelId id) const { return slot(id).resident.load(); }
std::vector<PageIndex>& ModelTable::pages(ModelId id) { return slot(id).pages; }
void ModelTable::set_resident(ModelId id) { slot(id).resident.store(true); }

// Each side first says what it is about to do and then looks at the other, in one
// total order: at most one of them goes ahead.
bool ModelTable::begin_unload(ModelId id) {
  Slot& s = slot(id);
  s.resident.store(false);
  if (s.executing.load() == 0) return true;
  s.resident.store(true);
  return false;
}

bool ModelTable::begin_exec(ModelId id) {
  Slot& s = slot(id);
  s.executing.fetch_add(1);
  if (s.resident.load()) return true;
  s.executing.fetch_sub(1);
  return false;
}

void ModelTable::end_exec(ModelId id) { slot(id).executing.fetch_sub(1); }

}  // namespace foliot
