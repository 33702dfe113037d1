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

void RollingDurationModel::add_device(KindId kind) {
  kinds_.push_back(kind);
  if (kind.value() >= seeds_.size()) seeds_.resize(kind.value() + 1);
  places_.emplace_back();
  ++revision_;
}

void RollingDurationModel::forget_device(DeviceId device) {
  places_[device.value()].for_each([this](ModelId, const Place& place) { unused_.push_back(place.profiles); });
  places_[device.value()].clear();
  ++revision_;
}

void RollingDurationModel::add_model(const ModelInfo& model, std::span<const KindId> kinds) {
  const uint32_t id = model.id.value();
  FOLIOT_CHECK(id <= models_ && kinds.size() == model.runnables.size());
  models_ = std::max(models_, id + 1);
  for (std::vector<Seeds>& of_kind : seeds_) {
    if (id < of_kind.size()) of_kind[id] = Seeds();
  }
  for (size_t i = 0; i < kinds.size(); ++i) seed_slot(kinds[i], model.id) = seeds_of(model.runnables[i]);
  doubts_.resize(models_);
  for (uint32_t device = 0; device < places_.size(); ++device) {
    const Place* own = find_own(DeviceId(device), model.id);
    if (own == nullptr) continue;
    unused_.push_back(own->profiles);
    places_[device].erase(model.id);
  }
  ++revision_;
}

RollingDurationModel::Seeds& RollingDurationModel::seed_slot(KindId kind, ModelId model) {
  if (kind.value() >= seeds_.size()) seeds_.resize(kind.value() + 1);
  std::vector<Seeds>& of_kind = seeds_[kind.value()];
  if (model.value() >= of_kind.size()) of_kind.resize(model.value() + 1);
  return of_kind[model.value()];
}

void RollingDurationModel::extend_model(const ModelInfo& model, std::span<const KindId> kinds) {
  for (size_t i = 0; i < kinds.size(); ++i) {
    const ModelProfiles larger = seed(model.runnables[i]);
    Seeds& seeds = seed_slot(kinds[i], model.id);
    if (seeds.profiles.sizes.empty()) {
      seeds = seeds_of(model.runnables[i]);
    } else {
      seeds.profiles.extend(larger);
    }
    for (uint32_t device = 0; device < places_.size(); ++device) {
      if (kinds_[device] != kinds[i]) continue;
      Place* own = places_[device].find(model.id);
      if (own == nullptr) continue;
      measured_[own->profiles].extend(larger);
      *own = place_at(own->profiles);
    }
  }
  ++revision_;
}

const RollingDurationModel::Place& RollingDurationModel::own(DeviceId device, ModelId model) {
  if (const Place* found = find_own(device, model)) return *found;
  if (unused_.empty()) {
    unused_.push_back(static_cast<uint32_t>(measured_.size()));
    measured_.emplace_back();
  }
  const uint32_t profiles = unused_.back();
  unused_.pop_back();
  measured_[profiles] = seeds(device, model);
  return places_[device.value()][model] = place_at(profiles);
}

RollingDurationModel::Place RollingDurationModel::place_at(uint32_t profiles) {
  ModelProfiles& of = measured_[profiles];
  return {.estimates = of.estimates.data(),
          .exec = of.exec.data(),
          .sizes = static_cast<uint32_t>(of.sizes.size()),
          .profiles = profiles};
}

void RollingDurationModel::record_load(DeviceId device, ModelId model, Duration measured) {
  ModelProfiles& profiles = measured_[own(device, model).profiles];
  profiles.load.record(measured);
  profiles.estimates[0] = profiles.load.estimate();
}

void RollingDurationModel::record_exec(const ExecShape& shape, Duration measured) {
  const auto [device, model, bucket, batch_index] = shape;
  const Place& own_place = own(device, model);
  const size_t at = bucket.value() * own_place.sizes + batch_index;
  if (batch_index == 0) {
    Duration& floor = seed_slot(kinds_[device.value()], model).beliefs[bucket.value()].floor;
    const Duration raised =
        floor == Duration() ? seeds(device, model).exec[at].estimate() : floor + floor / kFloorShare;
    floor = std::min(measured, raised);
  }
  if (own_place.exec[at].record(measured)) measured_[own_place.profiles].update_estimates(bucket);
}

// Of all devices: which of them a policy judged the request by is not known.
void RollingDurationModel::doubt(ModelId model, BucketId bucket, TimePoint now) {
  for (uint16_t kind = 0; kind < seeds_.size(); ++kind) {
    if (model.value() >= seeds_[kind].size() || seeds_[kind][model.value()].profiles.sizes.empty()) continue;
    doubt(KindId(kind), model, bucket, now);
  }
}

void RollingDurationModel::doubt(KindId kind, ModelId model, BucketId bucket, TimePoint now) {
  Seeds& seeds = seed_slot(kind, model);
  Belief& belief = seeds.beliefs[bucket.value()];
  if (now < belief.next_doubt) return;
  belief.next_doubt = now + kDoubtInterval;
  belief.floor -= belief.floor / kFloorShare;
  const auto doubt_one = [&](ModelProfiles& profiles) {
    profiles.exec[bucket.value() * profiles.sizes.size()].doubt(belief.floor);
    profiles.update_estimates(bucket);
  };
  doubt_one(seeds.profiles);
  for (uint32_t device = 0; device < places_.size(); ++device) {
    const Place* own = find_own(DeviceId(device), model);
    if (kinds_[device] == kind && own != nullptr) doubt_one(measured_[own->profiles]);
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

RollingDurationModel::Seeds RollingDurationModel::seeds_of(const Runnable& runnable) {
  return {.profiles = seed(runnable), .beliefs = std::vector<Belief>(runnable.seed_exec.size())};
}

RollingDurationModel::ModelProfiles RollingDurationModel::seed(const Runnable& runnable) {
  ModelProfiles profiles{.load = RollingProfile(runnable.seed_load), .sizes = runnable.batch_sizes};
  for (const std::vector<Duration>& seeds : runnable.seed_exec) {
    FOLIOT_CHECK(seeds.size() == runnable.batch_sizes.size());
    for (const Duration duration : seeds) profiles.exec.emplace_back(duration);
  }
  profiles.estimates.resize(1 + profiles.exec.size());
  profiles.estimates[0] = runnable.seed_load;
  const auto buckets = static_cast<uint16_t>(runnable.seed_exec.size());
  for (uint16_t bucket = 0; bucket < buckets; ++bucket) profiles.update_estimates(BucketId(bucket));
  return profiles;
}

}  // namespace foliot
