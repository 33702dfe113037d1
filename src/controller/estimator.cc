#include "controller/estimator.h"

#include <algorithm>

#include "base/check.h"

namespace foliot {
namespace {

constexpr Duration kDoubtInterval = Duration::milliseconds(500);
// What one doubt takes off the floor, and what one measurement gives back of it.
constexpr int64_t kFloorShare = 16;

}  // namespace

bool RollingProfile::record(Duration measured) {
  const Duration before = estimate_;
  last_[next_] = measured;
  next_ = (next_ + 1) % kWindow;
  count_ = std::min(count_ + 1, kWindow);
  estimate_ = *std::max_element(last_.begin(), last_.begin() + count_);
  return estimate_ != before;
}

void RollingProfile::doubt(Duration floor) {
  if (estimate_ <= floor) return;
  count_ = next_ = 0;
  estimate_ = std::max(estimate_ * 3 / 4, floor);
}

void Estimator::add_device() {
  places_.emplace_back();
  versions_.push_back(0);
}

void Estimator::forget_device(DeviceId device) {
  for (const Place& place : places_[device.value()]) {
    if (place.estimates != nullptr) unused_.push_back(place.profiles);
  }
  places_[device.value()].clear();
  ++versions_[device.value()];
}

void Estimator::add_model(const ModelInfo& model) {
  const uint32_t id = model.id.value();
  FOLIOT_CHECK(id <= seeds_.size());
  seeds_.resize(std::max<size_t>(seeds_.size(), id + 1));
  seeds_[id] = seed(model);
  beliefs_.resize(seeds_.size());
  beliefs_[id].assign(model.buckets.size(), Belief());
  for (auto& places : places_) {
    if (id >= places.size() || places[id].estimates == nullptr) continue;
    unused_.push_back(places[id].profiles);
    places[id] = Place();
  }
}

const Estimator::Place& Estimator::place(DeviceId device, ModelId model) const {
  static const Place kNone;
  const std::vector<Place>& places = places_[device.value()];
  return model.value() < places.size() ? places[model.value()] : kNone;
}

Estimator::ModelProfiles& Estimator::own(DeviceId device, ModelId model) {
  std::vector<Place>& places = places_[device.value()];
  if (model.value() >= places.size()) places.resize(seeds_.size());
  Place& place = places[model.value()];
  if (place.estimates != nullptr) return measured_[place.profiles];
  if (unused_.empty()) {
    unused_.push_back(static_cast<uint32_t>(measured_.size()));
    measured_.emplace_back();
  }
  place.profiles = unused_.back();
  unused_.pop_back();
  ModelProfiles& profiles = measured_[place.profiles];
  profiles = seeds_[model.value()];
  place.estimates = profiles.estimates.data();
  return profiles;
}

Duration Estimator::load(DeviceId device, ModelId model) const {
  const Place& found = place(device, model);
  return (found.estimates == nullptr ? seeds_[model.value()] : measured_[found.profiles]).load.estimate();
}

Duration Estimator::exec(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index) const {
  const Duration* estimates = place(device, model).estimates;
  const ModelProfiles& seed = seeds_[model.value()];
  if (estimates == nullptr) estimates = seed.estimates.data();
  return estimates[bucket.value() == 0 ? batch_index : bucket.value() * seed.sizes.size() + batch_index];
}

void Estimator::record_load(DeviceId device, ModelId model, Duration measured) {
  own(device, model).load.record(measured);
}

void Estimator::record_exec(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index, Duration measured) {
  ModelProfiles& profiles = own(device, model);
  const size_t first = bucket.value() * profiles.sizes.size();
  if (batch_index == 0) {
    Duration& floor = beliefs_[model.value()][bucket.value()].floor;
    const Duration raised =
        floor == Duration() ? seeds_[model.value()].exec[first].estimate() : floor + floor / kFloorShare;
    floor = std::min(measured, raised);
  }
  if (profiles.exec[first + batch_index].record(measured)) {
    profiles.update_estimates(bucket);
    ++versions_[device.value()];
  }
}

// Of all devices: which of them a policy judged the request by is not known.
void Estimator::doubt_exec(ModelId model, BucketId bucket, TimePoint now) {
  Belief& belief = beliefs_[model.value()][bucket.value()];
  if (now < belief.next_doubt) return;
  belief.next_doubt = now + kDoubtInterval;
  belief.floor -= belief.floor / kFloorShare;
  const auto doubt = [&](ModelProfiles& profiles) {
    profiles.exec[bucket.value() * profiles.sizes.size()].doubt(belief.floor);
    profiles.update_estimates(bucket);
  };
  doubt(seeds_[model.value()]);
  for (uint32_t device = 0; device < places_.size(); ++device) {
    const Place& found = place(DeviceId(device), model);
    if (found.estimates != nullptr) doubt(measured_[found.profiles]);
    ++versions_[device];
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
