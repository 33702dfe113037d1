#include "control/controller/waiting_work.h"

#include <optional>
#include <span>
#include <utility>

#include "control/controller/exec_of_rows.h"
#include "foundation/base/check.h"

namespace foliot {

void WaitingWork::change(const Request& request, int by) {
  if (request.request_class() != RequestClass::kDeadline) return;
  const uint32_t id = request.model.value();
  if (id >= models_.size()) models_.resize(id + 1);
  ModelWork& model = models_[id];
  if (request.bucket.value() >= model.rows.size()) model.rows.resize(request.bucket.value() + size_t{1});
  uint32_t& rows = model.rows[request.bucket.value()];
  FOLIOT_CHECK(by > 0 || rows > 0);
  rows += static_cast<uint32_t>(by);
  if (std::exchange(model.changed, true)) return;
  changed_.push_back(request.model);
}

Duration WaitingWork::on_kind(KindId kind) {
  refresh();
  return kind.value() < kinds_.size() ? kinds_[kind.value()] : Duration();
}

Duration WaitingWork::of_model(DeviceId device, ModelId id, BucketId bucket, uint32_t more) const {
  Duration work;
  const size_t buckets = cluster_.model(id).buckets.size();
  for (size_t i = 0; i < buckets; ++i) {
    const BucketId each(static_cast<uint16_t>(i));
    uint32_t rows = each == bucket ? more : 0;
    if (id.value() < models_.size() && i < models_[id.value()].rows.size()) rows += models_[id.value()].rows[i];
    if (rows == 0) continue;
    const std::span<const Duration> execs = cluster_.durations().execs(device, id, each, 0);
    work += exec_of_rows(cluster_.batch_sizes(device, id), rows, [&](size_t index) { return execs[index]; });
  }
  return work;
}

void WaitingWork::refresh() {
  for (const ModelId id : changed_) {
    ModelWork& model = models_[id.value()];
    model.changed = false;
    if (model.counted != Duration()) kinds_[model.kind.value()] -= model.counted;
    model.counted = Duration();
    const std::optional<DeviceId> device = cluster_.has_model(id) ? cluster_.first_able(id) : std::nullopt;
    if (!device) continue;
    model.kind = cluster_.device(*device).kind();
    model.counted = of_model(*device, id, BucketId(), 0);
    if (model.kind.value() >= kinds_.size()) kinds_.resize(model.kind.value() + size_t{1});
    kinds_[model.kind.value()] += model.counted;
  }
  changed_.clear();
}

}  // namespace foliot
