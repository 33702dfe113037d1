#include "controller/estimator.h"

#include <algorithm>

#include "base/check.h"

namespace foliot {

bool RollingProfile::record(Duration measured) {
  const Duration before = estimate_;
  last_[next_] = measured;
  next_ = (next_ + 1) % kWindow;
  count_ = std::min(count_ + 1, kWindow);
  estimate_ = *std::max_element(last_.begin(), last_.begin() + count_);
  return estimate_ != before;
}

void RollingProfile::doubt(TimePoint now) {
  if (now < next_doubt_) return;
  next_doubt_ = now + kDoubtInterval;
  count_ = next_ = 0;
  estimate_ = estimate_ * 3 / 4;
}

void Estimator::add_device() { positions_.emplace_back(); }

void Estimator::add_model(const ModelInfo& model) {
  const uint32_t id = model.id.value();
  FOLIOT_CHECK(id <= seeds_.size());
  if (id == seeds_.size()) seeds_.emplace_back();
  seeds_[id] = seed(model);
  for (auto& positions : positions_) {
    if (id >= positions.size() || positions[id] == 0) continue;
    unused_.push_back(positions[id] - 1);
    positions[id] = 0;
  }
}

const Estimator::ModelProfiles& Estimator::at(DeviceId device, ModelId model) const {
  const std::vector<uint32_t>& positions = positions_[device.value()];
  const uint32_t position = model.value() < positions.size() ? positions[model.value()] : 0;
  return position == 0 ? seeds_[model.value()] : measured_[position - 1];
}

Estimator::ModelProfiles& Estimator::own(DeviceId device, ModelId model) {
  std::vector<uint32_t>& positions = positions_[device.value()];
  if (model.value() >= positions.size()) positions.resize(seeds_.size());
  uint32_t& position = positions[model.value()];
  if (position != 0) return measured_[position - 1];
  if (unused_.empty()) {
    unused_.push_back(static_cast<uint32_t>(measured_.size()));
    measured_.emplace_back();
  }
  position = unused_.back() + 1;
  unused_.pop_back();
  return measured_[position - 1] = seeds_[model.value()];
}

Duration Estimator::load(DeviceId device, ModelId model) const { return at(device, model).load.estimate(); }

Duration Estimator::exec(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index) const {
  const ModelProfiles& profiles = at(device, model);
  return profiles.estimates[bucket.value() * profiles.sizes.size() + batch_index];
}

void Estimator::record_load(DeviceId device, ModelId model, Duration measured) {
  own(device, model).load.record(measured);
}

void Estimator::record_exec(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index, Duration measured) {
  ModelProfiles& profiles = own(device, model);
  if (profiles.exec[bucket.value() * profiles.sizes.size() + batch_index].record(measured)) {
    profiles.update_estimates(bucket);
  }
}

void Estimator::doubt_exec(ModelId model, BucketId bucket, TimePoint now) {
  for (uint32_t device = 0; device < positions_.size(); ++device) {
    ModelProfiles& profiles = own(DeviceId(device), model);
    profiles.exec[bucket.value() * profiles.sizes.size()].doubt(now);
    profiles.update_estimates(bucket);
  }
}

void Estimator::ModelProfiles::update_estimates(BucketId bucket) {
  const size_t first = bucket.value() * sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    Duration estimate = exec[first + i].estimate();
    if (i > 0) {
      const int64_t rows = sizes[i];
      const int64_t smaller_rows = sizes[i - 1];
      estimate = std::min(estimate, estimates[first + i - 1] * (5 * rows) / (4 * smaller_rows));
    }
    estimates[first + i] = estimate;
  }
}

Estimator::ModelProfiles Estimator::seed(const ModelInfo& model) {
  ModelProfiles profiles{.load = RollingProfile(model.seed_load), .sizes = model.batch_sizes};
  for (const Bucket& bucket : model.buckets) {
    FOLIOT_CHECK(bucket.seed_exec.size() == model.batch_sizes.size());
    for (const Duration duration : bucket.seed_exec) profiles.exec.emplace_back(duration);
  }
  profiles.estimates.resize(profiles.exec.size());
  for (uint16_t bucket = 0; bucket < model.buckets.size(); ++bucket) profiles.update_estimates(BucketId(bucket));
  return profiles;
}

}  // namespace foliot
