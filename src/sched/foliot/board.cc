#include "sched/foliot/board.h"

#include <algorithm>

namespace foliot::foliot_policy {

void Board::on_model_added(const ModelInfo& model) {
  if (model.id.value() >= models_.size()) models_.resize(model.id.value() + 1);
  models_[model.id.value()] = ModelState{.lanes = std::vector<Lane>(model.buckets.size()), .weight = model.weight};
}

void Board::on_devices() { loaded_.resize(cluster_.devices.size()); }

void Board::set_loaded(DeviceId device, ModelId model, bool loaded) {
  if (loaded) {
    loaded_[device.value()].insert(model.value());
    models_[model.value()].holders.insert(device.value());
  } else {
    loaded_[device.value()].erase(model.value());
    models_[model.value()].holders.erase(device.value());
  }
}

void Board::add(const Request& request, TimePoint now) {
  ModelState& state = model(request.model);
  state.lanes[request.bucket.value()].add(request);
  state.rate.record(now);
  if (!request.best_effort()) state.slo = request.deadline - request.arrival;
  changed(request.model);
}

void Board::remove(const Request& request) {
  model(request.model).lanes[request.bucket.value()].remove(request);
  changed(request.model);
}

void Board::erase(ModelId id, BucketId bucket, size_t position, size_t count) {
  model(id).lanes[bucket.value()].erase(position, count);
  changed(id);
}

void Board::changed(ModelId id) {
  ModelState& state = model(id);
  size_t queued = 0;
  for (const Lane& lane : state.lanes) queued += lane.size();
  state.queued = static_cast<uint32_t>(queued);
  if (queued > 0) {
    waiting_.insert(id.value());
  } else {
    waiting_.erase(id.value());
  }
}

Duration Board::work(DeviceId device, ModelId id) const {
  const std::vector<uint32_t>& sizes = cluster_.model(id).batch_sizes;
  Duration total;
  const ModelState& state = model(id);
  for (uint16_t bucket = 0; bucket < state.lanes.size(); ++bucket) {
    auto rows = static_cast<uint32_t>(state.lanes[bucket].with_deadline());
    for (size_t i = sizes.size(); i-- > 0 && rows > 0;) {
      const Duration exec = cluster_.estimator.exec(device, id, BucketId(bucket), static_cast<uint32_t>(i));
      total += exec * static_cast<int64_t>(rows / sizes[i]);
      rows %= sizes[i];
    }
  }
  return total;
}

Duration Board::backlog(DeviceId device, TimePoint now) const {
  Duration total = cluster_.device(device).exec_available(now) - now;
  waiting_.for_each_common(loaded_[device.value()], [&](uint32_t id) {
    total += work(device, ModelId(id)) / std::max<int64_t>(models_[id].holders.size(), 1);
  });
  return total;
}

}  // namespace foliot::foliot_policy
