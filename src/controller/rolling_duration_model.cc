#include "controller/rolling_duration_model.h"

#include <algorithm>
#include <utility>

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

void RollingDurationModel::add_device() {
  places_.emplace_back();
  ++revision_;
}

void RollingDurationModel::forget_device(DeviceId device) {
  for (const auto& block : places_[device.value()]) {
    if (block == nullptr) continue;
    for (const Place& place : *block) {
      if (place.estimates != nullptr) unused_.push_back(place.profiles);
    }
  }
  places_[device.value()].clear();
  ++revision_;
}

void RollingDurationModel::add_model(const ModelInfo& model) {
  const uint32_t id = model.id.value();
  FOLIOT_CHECK(id <= seeds_.size());
  seeds_.resize(std::max<size_t>(seeds_.size(), id + 1));
  seeds_[id] = seed(model);
  beliefs_.resize(seeds_.size());
  doubts_.resize(seeds_.size());
  beliefs_[id].assign(model.buckets.size(), Belief());
  for (uint32_t device = 0; device < places_.size(); ++device) {
    Place* own = find_own(DeviceId(device), model.id);
    if (own == nullptr) continue;
    unused_.push_back(own->profiles);
    *own = Place();
  }
  ++revision_;
}

void RollingDurationModel::extend_model(const ModelInfo& model) {
  const ModelProfiles larger = seed(model);
  seeds_[model.id.value()].extend(larger);
  for (uint32_t device = 0; device < places_.size(); ++device) {
    Place* own = find_own(DeviceId(device), model.id);
    if (own == nullptr) continue;
    ModelProfiles& profiles = measured_[own->profiles];
    profiles.extend(larger);
    own->estimates = profiles.estimates.data();
    own->exec = profiles.exec.data();
  }
  ++revision_;
}

RollingDurationModel::Place* RollingDurationModel::find_own(DeviceId device, ModelId model) {
  if (place(device, model).estimates == nullptr) return nullptr;
  return &(*places_[device.value()][model.value() / kPlacesPerBlock])[model.value() % kPlacesPerBlock];
}

const RollingDurationModel::Place& RollingDurationModel::own(DeviceId device, ModelId model) {
  auto& blocks = places_[device.value()];
  const uint32_t number = model.value() / kPlacesPerBlock;
  if (number >= blocks.size()) blocks.resize(seeds_.size() / kPlacesPerBlock + 1);
  if (blocks[number] == nullptr) blocks[number] = std::make_unique<PlaceBlock>();
  Place& place = (*blocks[number])[model.value() % kPlacesPerBlock];
  if (place.estimates != nullptr) return place;
  if (unused_.empty()) {
    unused_.push_back(static_cast<uint32_t>(measured_.size()));
    measured_.emplace_back();
  }
  place.profiles = unused_.back();
  unused_.pop_back();
  ModelProfiles& profiles = measured_[place.profiles];
  profiles = seeds_[model.value()];
  place.estimates = profiles.estimates.data();
  place.exec = profiles.exec.data();
  return place;
}

void RollingDurationModel::record_load(DeviceId device, ModelId model, Duration measured) {
  ModelProfiles& profiles = measured_[own(device, model).profiles];
  profiles.load.record(measured);
  profiles.estimates[0] = profiles.load.estimate();
}

void RollingDurationModel::record_exec(const ExecShape& shape, Duration measured) {
  const auto [device, model, bucket, batch_index] = shape;
  const Place& own_place = own(device, model);
  const size_t at = position(model, bucket, batch_index);
  if (batch_index == 0) {
    Duration& floor = beliefs_[model.value()][bucket.value()].floor;
    const Duration raised =
        floor == Duration() ? seeds_[model.value()].exec[at].estimate() : floor + floor / kFloorShare;
    floor = std::min(measured, raised);
  }
  if (own_place.exec[at].record(measured)) measured_[own_place.profiles].update_estimates(bucket);
}

// Of all devices: which of them a policy judged the request by is not known.
void RollingDurationModel::doubt(ModelId model, BucketId bucket, TimePoint now) {
  Belief& belief = beliefs_[model.value()][bucket.value()];
  if (now < belief.next_doubt) return;
  belief.next_doubt = now + kDoubtInterval;
  belief.floor -= belief.floor / kFloorShare;
  const auto doubt_one = [&](ModelProfiles& profiles) {
    profiles.exec[bucket.value() * profiles.sizes.size()].doubt(belief.floor);
    profiles.update_estimates(bucket);
  };
  doubt_one(seeds_[model.value()]);
  for (uint32_t device = 0; device < places_.size(); ++device) {
    const Place& found = place(DeviceId(device), model);
    if (found.estimates != nullptr) doubt_one(measured_[found.profiles]);
  }
  ++doubts_[model.value()];
}

void RollingDurationModel::ModelProfiles::update_estimates(BucketId bucket) {
  const size_t first = bucket.value() * sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    Duration estimate = exec[first + i].estimate();
    if (i > 0) {
      const int64_t rows = sizes[i];
      const int64_t smaller_rows = sizes[i - 1];
      estimate = std::min(estimate, estimates[first + i] * (5 * rows) / (4 * smaller_rows));
    }
    estimates[1 + first + i] = estimate;
  }
}

void RollingDurationModel::ModelProfiles::extend(const ModelProfiles& larger) {
  FOLIOT_CHECK(std::ranges::mismatch(sizes, larger.sizes).in1 == sizes.end());
  ModelProfiles extended = larger;
  extended.load = load;
  extended.estimates[0] = load.estimate();
  const size_t buckets = exec.size() / sizes.size();
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      extended.exec[bucket * larger.sizes.size() + i] = exec[bucket * sizes.size() + i];
    }
    extended.update_estimates(BucketId(static_cast<uint16_t>(bucket)));
  }
  *this = std::move(extended);
}

RollingDurationModel::ModelProfiles RollingDurationModel::seed(const ModelInfo& model) {
  ModelProfiles profiles{.load = RollingProfile(model.seed_load), .sizes = model.batch_sizes};
  for (const Bucket& bucket : model.buckets) {
    FOLIOT_CHECK(bucket.seed_exec.size() == model.batch_sizes.size());
    for (const Duration duration : bucket.seed_exec) profiles.exec.emplace_back(duration);
  }
  profiles.estimates.resize(1 + profiles.exec.size());
  profiles.estimates[0] = model.seed_load;
  for (uint16_t bucket = 0; bucket < model.buckets.size(); ++bucket) profiles.update_estimates(BucketId(bucket));
  return profiles;
}

}  // namespace foliot
