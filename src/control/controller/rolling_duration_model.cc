#include "control/controller/rolling_duration_model.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/unlikely_count.h"
#include "foundation/core/lanes.h"

namespace foliot {
namespace {

constexpr Duration kDoubtInterval = Duration::milliseconds(500);
// What one doubt takes off the floor, and what one measurement gives back of it.
constexpr int64_t kFloorShare = 16;
// As much is left of an estimate by a doubt, out of kDoubtParts. A smaller duration comes near a larger one if
// it is more than that of it.
constexpr int64_t kDoubtLeaves = 3;
constexpr int64_t kDoubtParts = 4;
// What a size took so many EXECs ago or more does not hold against what other sizes take now.
constexpr uint32_t kTurnsBelieved = 32;
// The first duration is taken for that of cold code and memory where it is so many times what was expected, or what
// came after it: it is not expected again unless the second one is as long.
constexpr int64_t kCold = 4;
// Of shorter EXECs the way to the threads of several lanes is a part: how work divides is not seen of them.
constexpr Duration kShowsScaling = Duration::milliseconds(1);
// How often durations are out of line is known after so many.
constexpr float kOutlierMemory = 64;

bool far_below(Duration duration, Duration larger) { return duration <= larger * kDoubtLeaves / kDoubtParts; }

const UnlikelyCount& unlikely_in_window() {
  static const UnlikelyCount unlikely(RollingProfile::kWindow);
  return unlikely;
}

}  // namespace

uint32_t RollingProfile::Outliers::usual() const { return unlikely_in_window().of(share) - 1; }

bool RollingProfile::record(Duration measured, Outliers& outliers, uint32_t turn) {
  const Duration before = estimate_;
  const bool cold = !measured_ && before > Duration() && measured / kCold > before;
  if (count_ == kWindow) {
    const bool outlier = far_below(estimate_, last_[next_]);
    outliers.share += ((outlier ? 1.0F : 0.0F) - outliers.share) / kOutlierMemory;
  }
  last_[next_] = measured;
  turn_ = turn;
  measured_ = true;
  next_ = next_ + 1u < kWindow ? next_ + 1 : 0;
  count_ = std::min<uint8_t>(count_ + 1, kWindow);
  std::array<Duration, kWindow> ordered = last_;
  std::sort(ordered.begin(), ordered.begin() + count_, std::greater<>());
  if (cold) return false;
  const bool first_was_cold =
      count_ > 1 && count_ < kWindow && ordered[0] == last_[0] && ordered[0] / kCold > ordered[1];
  const uint32_t largest = first_was_cold ? 1 : 0;
  estimate_ = ordered[largest];
  const uint32_t usual = std::max(count_ / kAloneAmong, outliers.usual());
  for (uint32_t alone = largest + 1; alone <= usual && alone < count_; ++alone) {
    if (far_below(ordered[alone], ordered[alone - 1])) estimate_ = ordered[alone];
  }
  return estimate_ != before;
}

void RollingProfile::doubt(Duration floor) {
  if (estimate_ <= floor) return;
  count_ = next_ = 0;
  estimate_ = std::max(estimate_ * kDoubtLeaves / kDoubtParts, floor);
}

void RollingDurationModel::add_device(KindId kind) {
  device_groups_.push_back(group(kind, 1));
  places_.emplace_back();
  ++revision_;
}

void RollingDurationModel::set_lane_count(DeviceId device, uint32_t lane_count) {
  FOLIOT_CHECK(places_[device.value()].empty());
  const Group& now = groups_[device_groups_[device.value()]];
  if (now.lanes == lane_count) return;
  device_groups_[device.value()] = group(now.kind, lane_count);
  ++revision_;
}

uint32_t RollingDurationModel::group(KindId kind, uint32_t lanes) {
  for (uint32_t found = 0; found < groups_.size(); ++found) {
    if (groups_[found].kind == kind && groups_[found].lanes == lanes) return found;
  }
  const auto added = static_cast<uint32_t>(groups_.size());
  groups_.push_back({.kind = kind, .lanes = lanes});
  seeds_.emplace_back();
  if (lanes == 1) return added;
  const uint32_t narrow = group(kind, 1);
  for (uint32_t model = 0; model < seeds_[narrow].size(); ++model) {
    const ModelProfiles& profiles = seeds_[narrow][model].profiles;
    if (profiles.sizes.empty()) continue;
    Seeds& seeds = seed_slot(added, ModelId(model));
    seeds.profiles = widened(profiles, groups_[added]);
    seeds.beliefs.resize(size_t{width_count(lanes)} * profiles.buckets);
  }
  return added;
}

void RollingDurationModel::forget_device(DeviceId device) {
  places_[device.value()].for_each([&](ModelId model, const Place& place) {
    unused_.push_back(place.profiles);
    std::erase(measured_on_[model.value()], device);
  });
  places_[device.value()].clear();
  ++revision_;
}

void RollingDurationModel::add_model(const ModelInfo& model, std::span<const KindId> kinds) {
  const uint32_t id = model.id.value();
  FOLIOT_CHECK(id <= models_ && kinds.size() == model.runnables.size());
  models_ = std::max(models_, id + 1);
  for (std::vector<Seeds>& of_group : seeds_) {
    if (id < of_group.size()) of_group[id] = Seeds();
  }
  for (size_t i = 0; i < kinds.size(); ++i) {
    group(kinds[i], 1);
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].kind == kinds[i]) seed_slot(g, model.id) = seeds_of(model.runnables[i], groups_[g]);
    }
  }
  doubts_.resize(models_);
  measured_on_.resize(models_);
  if (overlap_ != nullptr) {
    overlapping_.resize(models_);
    overlapping_[id] = overlap_->find(model);
  }
  for (const DeviceId device : std::exchange(measured_on_[id], {})) {
    unused_.push_back(find_own(device, model.id)->profiles);
    places_[device.value()].erase(model.id);
  }
  ++revision_;
}

RollingDurationModel::Seeds& RollingDurationModel::seed_slot(uint32_t group, ModelId model) {
  std::vector<Seeds>& of_group = seeds_[group];
  if (model.value() >= of_group.size()) of_group.resize(model.value() + 1);
  return of_group[model.value()];
}

void RollingDurationModel::extend_model(const ModelInfo& model, std::span<const KindId> kinds) {
  for (size_t i = 0; i < kinds.size(); ++i) {
    group(kinds[i], 1);
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].kind == kinds[i]) extend_group(g, model.id, model.runnables[i]);
    }
  }
  ++revision_;
}

void RollingDurationModel::extend_group(uint32_t group, ModelId model, const Runnable& runnable) {
  Seeds& seeds = seed_slot(group, model);
  const ModelProfiles larger = seed(runnable, groups_[group]);
  if (seeds.profiles.sizes.empty()) {
    seeds = seeds_of(runnable, groups_[group]);
  } else {
    seeds.profiles.extend(larger, groups_[group]);
  }
  for (const DeviceId device : measured_on_[model.value()]) {
    if (device_groups_[device.value()] != group) continue;
    Place* own = places_[device.value()].find(model);
    measured_[own->profiles].extend(larger, groups_[group]);
    *own = place_at(own->profiles);
  }
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
  measured_on_[model.value()].push_back(device);
  return places_[device.value()][model] = place_at(profiles);
}

RollingDurationModel::Place RollingDurationModel::place_at(uint32_t profiles) {
  ModelProfiles& of = measured_[profiles];
  return {.estimates = of.estimates.data(),
          .exec = of.exec.data(),
          .profiles = profiles,
          .sizes = static_cast<uint16_t>(of.sizes.size()),
          .buckets = static_cast<uint16_t>(of.buckets)};
}

void RollingDurationModel::record_load(DeviceId device, ModelId model, Duration measured) {
  ModelProfiles& profiles = measured_[own(device, model).profiles];
  RollingProfile::Outliers none;                                    // LOADs are few
  if (!profiles.load.measured()) profiles.load = RollingProfile();  // the first one counts
  profiles.load.record(measured, none);
  profiles.estimates[0] = profiles.load.estimate();
}

void RollingDurationModel::record_exec(const ExecShape& shape, Duration measured) {
  const auto [device, model, bucket, batch_index, width_index] = shape;
  const Place& own_place = own(device, model);
  const size_t at = (size_t{width_index} * own_place.buckets + bucket.value()) * own_place.sizes + batch_index;
  if (batch_index == 0) {
    Seeds& seeds = seed_slot(device_groups_[device.value()], model);
    Duration& floor = seeds.beliefs[size_t{width_index} * own_place.buckets + bucket.value()].floor;
    const Duration raised = floor == Duration() ? seeds.profiles.estimates[1 + at] : floor + floor / kFloorShare;
    floor = std::min(measured, raised);
  }
  ModelProfiles& profiles = measured_[own_place.profiles];
  const bool first = !own_place.exec[at].measured();
  uint32_t& turn = profiles.turn(width_index, bucket);
  ++turn;
  // This size is believed again, or others may not be any more.
  const bool beliefs_change = turn - own_place.exec[at].turn() > kTurnsBelieved || turn % kTurnsBelieved == 0;
  RollingProfile::Outliers& outliers = profiles.outliers[size_t{width_index} * own_place.buckets + bucket.value()];
  if (first) own_place.exec[at] = RollingProfile(profiles.estimates[1 + at]);
  const bool changed = own_place.exec[at].record(measured, outliers, turn);
  const Group& group = groups_[device_groups_[device.value()]];
  if (first || changed || beliefs_change) profiles.update_estimates(bucket, group);
  if (first && group.lanes > 1) learn_scaling(shape, profiles);
}

void RollingDurationModel::learn_scaling(const ExecShape& shape, const ModelProfiles& profiles) {
  const uint32_t id = device_groups_[shape.device.value()];
  Group& group = groups_[id];
  const auto profile = [&](uint32_t width) -> const RollingProfile& {
    return profiles.exec[profiles.position(width, shape.bucket) + shape.batch_index];
  };
  const Duration own = profile(shape.width_index).estimate();
  if (own < kShowsScaling) return;
  bool changed = false;
  for (uint32_t wider = shape.width_index; wider != 0;) {
    wider = WidthScaling::next_wider(wider, group.lanes);
    if (!profile(wider).measured()) continue;
    changed |= group.scaling.record(shape.width_index, own, wider, profile(wider).estimate());
    break;
  }
  for (uint32_t width = shape.width_index == 0 ? profiles.widths() : shape.width_index; --width > 0;) {
    if (!profile(width).measured()) continue;
    changed |= group.scaling.record(width, profile(width).estimate(), shape.width_index, own);
    break;
  }
  if (changed) update_group(id);
}

void RollingDurationModel::update_group(uint32_t group) {
  for (Seeds& seeds : seeds_[group]) {
    if (!seeds.profiles.sizes.empty()) seeds.profiles.update_all_estimates(groups_[group]);
  }
  for (uint32_t device = 0; device < places_.size(); ++device) {
    if (device_groups_[device] != group) continue;
    places_[device].for_each(
        [&](ModelId, const Place& place) { measured_[place.profiles].update_all_estimates(groups_[group]); });
  }
  ++revision_;
}

// Of all devices: which of them a policy judged the request by is not known.
void RollingDurationModel::doubt(ModelId model, BucketId bucket, TimePoint now) {
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    if (model.value() >= seeds_[group].size() || seeds_[group][model.value()].profiles.sizes.empty()) continue;
    doubt(group, model, bucket, now);
  }
}

void RollingDurationModel::doubt(uint32_t group, ModelId model, BucketId bucket, TimePoint now) {
  Seeds& seeds = seed_slot(group, model);
  for (uint32_t width = 0; width < width_count(groups_[group].lanes); ++width) {
    Belief& belief = seeds.beliefs[size_t{width} * seeds.profiles.buckets + bucket.value()];
    if (now < belief.next_doubt) return;  // nor may any other: they are doubted together
    belief.next_doubt = now + kDoubtInterval;
    belief.floor -= belief.floor / kFloorShare;
    const auto doubt_one = [&](ModelProfiles& profiles) {
      const size_t at = profiles.position(width, bucket);
      // What is expected by other widths is from now on a limit.
      if (width > 0 && !profiles.exec[at].measured()) profiles.exec[at] = RollingProfile(profiles.estimates[1 + at]);
      profiles.exec[at].doubt(belief.floor);
      profiles.update_estimates(bucket, groups_[group]);
    };
    doubt_one(seeds.profiles);
    for (const DeviceId device : measured_on_[model.value()]) {
      if (device_groups_[device.value()] == group) doubt_one(measured_[find_own(device, model)->profiles]);
    }
  }
  ++doubts_[model.value()];
}

// From the widest on: what is expected of a width follows from the next wider one.
void RollingDurationModel::ModelProfiles::update_estimates(BucketId bucket, const Group& group) {
  for (uint32_t n = widths(); n > 0; --n) {
    const uint32_t width = n % widths();
    const size_t first = 1 + position(width, bucket);
    const std::optional<uint32_t> last = last_run(width, bucket);
    for (uint32_t i = 0; i < sizes.size(); ++i) {
      Duration estimate = expected(width, bucket, i, group);
      if (last) estimate = std::min(estimate, expected_by(*last, width, bucket, i));
      if (i > 0) {
        const int64_t rows = sizes[i];
        const int64_t smaller_rows = sizes[i - 1];
        estimate = std::min(estimate, estimates[first + i - 1] * (5 * rows) / (4 * smaller_rows));
      }
      estimates[first + i] = estimate;
    }
  }
}

std::optional<uint32_t> RollingDurationModel::ModelProfiles::last_run(uint32_t width_index, BucketId bucket) const {
  const RollingProfile* const profiles = exec.data() + position(width_index, bucket);
  const RollingProfile::Outliers& of_all = outliers[size_t{width_index} * buckets + bucket.value()];
  std::optional<uint32_t> last;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    if (!profiles[i].measured() || !profiles[i].trusted(of_all)) continue;
    const uint32_t since = turns_since(width_index, bucket, profiles[i]);
    if (!last || since < turns_since(width_index, bucket, profiles[*last])) last = i;
  }
  return last;
}

Duration RollingDurationModel::ModelProfiles::expected_by(uint32_t last, uint32_t width_index, BucketId bucket,
                                                          uint32_t batch_index) const {
  const RollingProfile* const profiles = exec.data() + position(width_index, bucket);
  const RollingProfile& own = profiles[batch_index];
  const Duration* const seeds = seed_exec.data() + size_t{bucket.value()} * sizes.size();
  const bool trusted = own.trusted(outliers[size_t{width_index} * buckets + bucket.value()]);
  const bool believed = !own.measured() || (trusted && turns_since(width_index, bucket, own) < kTurnsBelieved);
  if (believed || seeds[last] == Duration()) return Duration::max();
  return profiles[last].estimate().scaled(seeds[batch_index].to_seconds() / seeds[last].to_seconds());
}

Duration RollingDurationModel::ModelProfiles::expected(uint32_t width_index, BucketId bucket, uint32_t batch_index,
                                                       const Group& group) const {
  const RollingProfile& own = exec[position(width_index, bucket) + batch_index];
  if (own.measured() || group.lanes == 1) return own.estimate();
  Duration expected = own.estimate();
  if (width_index > 0) {
    const uint32_t wider = WidthScaling::next_wider(width_index, group.lanes);
    const Duration on_wider = estimates[1 + position(wider, bucket) + batch_index];
    expected = std::min(expected, group.scaling.narrower(width_index, on_wider));
  }
  for (uint32_t width = 1; width < (width_index == 0 ? widths() : width_index); ++width) {
    const RollingProfile& narrower = exec[position(width, bucket) + batch_index];
    if (narrower.measured()) expected = std::min(expected, narrower.estimate());
  }
  return expected;
}

void RollingDurationModel::ModelProfiles::update_all_estimates(const Group& group) {
  estimates.resize(1 + exec.size());
  estimates[0] = load.estimate();
  for (uint16_t bucket = 0; bucket < buckets; ++bucket) update_estimates(BucketId(bucket), group);
}

void RollingDurationModel::ModelProfiles::extend(const ModelProfiles& larger, const Group& group) {
  FOLIOT_CHECK(std::ranges::mismatch(sizes, larger.sizes).in1 == sizes.end());
  ModelProfiles extended = larger;
  extended.load = load;
  extended.turns = turns;
  extended.outliers = outliers;
  for (uint32_t width = 0; width < widths(); ++width) {
    for (uint16_t b = 0; b < buckets; ++b) {
      const BucketId bucket(b);
      for (size_t i = 0; i < sizes.size(); ++i) {
        extended.exec[larger.position(width, bucket) + i] = exec[position(width, bucket) + i];
      }
    }
  }
  extended.update_all_estimates(group);
  *this = std::move(extended);
}

RollingDurationModel::Seeds RollingDurationModel::seeds_of(const Runnable& runnable, const Group& group) {
  return {.profiles = seed(runnable, group),
          .beliefs = std::vector<Belief>(width_count(group.lanes) * runnable.seed_exec.size())};
}

RollingDurationModel::ModelProfiles RollingDurationModel::seed(const Runnable& runnable, const Group& group) {
  ModelProfiles profiles{.load = RollingProfile(runnable.seed_load),
                         .sizes = runnable.batch_sizes,
                         .buckets = static_cast<uint32_t>(runnable.seed_exec.size())};
  for (const std::vector<Duration>& seeds : runnable.seed_exec) {
    FOLIOT_CHECK(seeds.size() == runnable.batch_sizes.size());
    for (const Duration duration : seeds) profiles.exec.emplace_back(duration);
    profiles.seed_exec.insert(profiles.seed_exec.end(), seeds.begin(), seeds.end());
  }
  return widened(std::move(profiles), group);
}

RollingDurationModel::ModelProfiles RollingDurationModel::widened(ModelProfiles profiles, const Group& group) {
  profiles.exec.resize(profiles.exec.size() * width_count(group.lanes), RollingProfile(Duration::max()));
  profiles.turns.resize(size_t{profiles.widths()} * profiles.buckets);
  profiles.outliers.resize(profiles.turns.size());
  profiles.update_all_estimates(group);
  return profiles;
}

}  // namespace foliot
