#include "controller/estimator.h"

#include <algorithm>

#include "base/check.h"

namespace foliot {

void RollingProfile::record(Duration measured) {
  last_[next_] = measured;
  next_ = (next_ + 1) % kWindow;
  count_ = std::min(count_ + 1, kWindow);
  estimate_ = *std::max_element(last_.begin(), last_.begin() + count_);
}

void Estimator::add_device() {
  auto& profiles = profiles_.emplace_back();
  for (const ModelInfo& model : models_) profiles.push_back(seed(model));
}

void Estimator::add_model(const ModelInfo& model) {
  const uint32_t id = model.id.value();
  FOLIOT_CHECK(id <= models_.size());
  if (id == models_.size()) {
    models_.push_back(model);
    for (auto& profiles : profiles_) profiles.push_back(seed(model));
  } else {
    models_[id] = model;
    for (auto& profiles : profiles_) profiles[id] = seed(model);
  }
}

Duration Estimator::load(DeviceId device, ModelId model) const { return at(device, model).load.estimate(); }

Duration Estimator::exec(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index) const {
  const ModelProfiles& profiles = at(device, model);
  return profiles.exec[bucket.value() * profiles.batch_sizes + batch_index].estimate();
}

void Estimator::record_load(DeviceId device, ModelId model, Duration measured) {
  at(device, model).load.record(measured);
}

void Estimator::record_exec(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index, Duration measured) {
  ModelProfiles& profiles = at(device, model);
  profiles.exec[bucket.value() * profiles.batch_sizes + batch_index].record(measured);
}

Estimator::ModelProfiles Estimator::seed(const ModelInfo& model) {
  ModelProfiles profiles{.load = RollingProfile(model.seed_load),
                         .batch_sizes = static_cast<uint32_t>(model.batch_sizes.size()),
                         .exec = {}};
  for (const Bucket& bucket : model.buckets) {
    FOLIOT_CHECK(bucket.seed_exec.size() == model.batch_sizes.size());
    for (const Duration duration : bucket.seed_exec) profiles.exec.emplace_back(duration);
  }
  return profiles;
}

}  // namespace foliot
