#include "control/controller/failure_detector.h"

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

// What a device did longer ago says nothing of how fast it is.
constexpr Duration kRecent = Duration::seconds(2);

}  // namespace

void FailureDetector::on_join(DeviceId id, TimePoint now) {
  if (id.value() >= devices_.size()) devices_.resize(id.value() + 1);
  Device& device = devices_[id.value()];
  device = {.last_message = now, .loads_unproven = device.loads_unproven, .fences = device.fences};
  next_check_ = std::min(next_check_, now + options_.check_interval);
}

void FailureDetector::on_lost(DeviceId id, DeviceTrouble trouble, TimePoint now) {
  if (trouble != DeviceTrouble::kSlow && trouble != DeviceTrouble::kFailing) return;
  Device& device = devices_[id.value()];
  Duration wait = options_.back_off;
  for (uint32_t i = 0; i < device.fences && wait < options_.back_off_max; ++i) wait = wait * 2;
  ++device.fences;
  device.fenced_for_quality = true;
  device.loads_unproven = device.loads_unproven || failing(device, device.load_failures);
  device.may_join = now + std::min(wait, options_.back_off_max);
}

TimePoint FailureDetector::may_join(DeviceId device) const {
  return device.value() < devices_.size() ? devices_[device.value()].may_join : TimePoint();
}

void FailureDetector::on_exec(DeviceId id, Duration seed, Duration measured, TimePoint now) {
  Device& device = devices_[id.value()];
  const double ratio = measured.to_seconds() / std::max(seed.to_seconds(), 1e-9);
  const Duration excess = measured - seed;
  const bool slow = excess > options_.slow_excess_min && ratio > options_.slow_factor &&
                    ratio > options_.slow_factor * peers_ratio(id, now);
  device.ratios[device.execs++ % kRatios] = ratio;
  device.last_exec = now;
  if (slow) {
    if (device.slow++ == 0) device.slow_since = now;
    device.slow_excess += excess;
    return;
  }
  device.slow = 0;
  device.slow_excess = Duration();
  if (device.fences > 0 && ++device.normal >= options_.probation_outcomes && !device.loads_unproven) device.fences = 0;
}

void FailureDetector::on_result(DeviceId id, ActionType type, ModelId model, bool failed, TimePoint now) {
  Device& device = devices_[id.value()];
  Failures& failures = type == ActionType::kLoad ? device.load_failures : device.exec_failures;
  if (!failed) {
    failures.count = 0;
    failures.models.clear();
    if (type == ActionType::kLoad) device.loads_unproven = false;
    if (type == ActionType::kInfer) device.models_that_run.insert(model.value());
    return;
  }
  device.models_that_run.erase(model.value());
  device.normal = 0;
  ++failures.count;
  const bool known = std::find(failures.models.begin(), failures.models.end(), model) != failures.models.end();
  if (!known && failures.models.size() < options_.failing_models) failures.models.push_back(model);
  if (failing(device)) next_check_ = std::min(next_check_, now);
}

void FailureDetector::forget_model(ModelId model) {
  for (Device& device : devices_) device.models_that_run.erase(model.value());
}

double FailureDetector::peers_ratio(DeviceId own, TimePoint now) const {
  std::vector<double> medians;
  for (const DeviceModel& peer : cluster_.devices) {
    const Device& device = devices_[peer.id().value()];
    if (peer.id() == own || !peer.up() || device.execs == 0 || now - device.last_exec > kRecent) continue;
    auto ratios = device.ratios;
    const auto end = ratios.begin() + std::min<uint64_t>(device.execs, kRatios);
    const auto middle = ratios.begin() + (end - ratios.begin()) / 2;
    std::nth_element(ratios.begin(), middle, end);
    medians.push_back(*middle);
  }
  if (medians.empty()) return 1;
  const auto middle = medians.begin() + static_cast<std::ptrdiff_t>(medians.size() / 2);
  std::nth_element(medians.begin(), middle, medians.end());
  return std::max(1.0, *middle);
}

void FailureDetector::on_report(DeviceId id, TimePoint end, TimePoint now) {
  Device& device = devices_[id.value()];
  device.lateness = now - end;
  if (device.lateness <= options_.late_min) {
    device.late = 0;
    device.late_pause = Duration();
    device.late_until = TimePoint();
    return;
  }
  if (++device.late < options_.late_reports || now < device.late_until) return;
  if (!others_are_prompt(id)) {
    device.late = 0;
    return;
  }
  device.late_pause = std::clamp(device.late_pause * 2, options_.late_pause, options_.late_pause_max);
  device.late_until = now + device.late_pause;
  next_check_ = std::min(next_check_, now);
}

// Most of those that are up, which are as many as would then be out for being late.
bool FailureDetector::others_are_prompt(DeviceId id) const {
  const Duration own = devices_[id.value()].lateness;
  size_t up = 0;
  size_t prompt = 0;
  size_t late = 1;
  for (const DeviceModel& other : cluster_.devices) {
    if (other.id() == id) continue;
    const Device& known = devices_[other.id().value()];
    if (known.late_pause > Duration()) {
      ++late;
    } else if (other.up()) {
      ++up;
      if (known.lateness.scaled(options_.late_factor) < own) ++prompt;
    }
  }
  return up >= late && 2 * prompt > up;
}

std::vector<FailureDetector::Finding> FailureDetector::check(TimePoint now) {
  std::vector<Finding> findings;
  if (now < next_check_) return findings;
  if (now - next_check_ > options_.away_min) here_since_ = now;
  next_check_ = now + options_.check_interval;
  bool fenced = false;  // for quality: one at a time, so that the rest can be counted
  for (const DeviceModel& device : cluster_.devices) {
    if (device.state() == DeviceState::kLost) continue;
    const Finding finding = find(device, now);
    const bool for_quality = finding.trouble == DeviceTrouble::kSlow || finding.trouble == DeviceTrouble::kFailing;
    if (for_quality && std::exchange(fenced, true)) continue;
    const bool news = finding.state != device.state();
    if (news && (device.state() != DeviceState::kDraining || finding.state == DeviceState::kLost)) {
      findings.push_back(finding);
    }
  }
  return findings;
}

FailureDetector::Finding FailureDetector::find(const DeviceModel& device, TimePoint now) const {
  const Device& known = devices_[device.id().value()];
  const Duration silent = now - std::max(known.last_message, here_since_);
  const Duration overdue = now - std::max(device.first_end(options_.overdue_factor), here_since_);
  if (silent >= options_.fence_after) return {device.id(), DeviceState::kLost, DeviceTrouble::kSilent};
  if (overdue >= options_.fence_after) return {device.id(), DeviceState::kLost, DeviceTrouble::kOverdue};
  if (failing(known) && others_are_well(device.id()) && others_suffice(device.id())) {
    return {device.id(), DeviceState::kLost, DeviceTrouble::kFailing};
  }
  if (slow(known, now) && others_suffice(device.id())) return {device.id(), DeviceState::kLost, DeviceTrouble::kSlow};
  if (now < known.late_until) return {device.id(), DeviceState::kSuspected, DeviceTrouble::kLate};
  if (silent >= options_.suspect_after) return {device.id(), DeviceState::kSuspected, DeviceTrouble::kSilent};
  if (overdue >= options_.suspect_after) return {device.id(), DeviceState::kSuspected, DeviceTrouble::kOverdue};
  return {device.id(), DeviceState::kUp, DeviceTrouble::kNone};
}

bool FailureDetector::slow(const Device& device, TimePoint now) const {
  if (device.fences > 0) return device.slow >= options_.probation_slow_outcomes;
  const bool much = device.slow >= options_.slow_outcomes && device.slow_excess >= options_.slow_excess;
  const bool long_since = device.slow >= options_.slow_outcomes_few && now - device.slow_since >= options_.slow_time;
  return much || long_since;
}

bool FailureDetector::failing(const Device& device) const {
  return failing(device, device.load_failures) || failing(device, device.exec_failures);
}

bool FailureDetector::failing(const Device& device, const Failures& failures) const {
  const bool probation = device.fences > 0;
  const uint32_t outcomes = probation ? options_.probation_failures : options_.failing_outcomes;
  const uint32_t models = probation ? options_.probation_failing_models : options_.failing_models;
  return failures.count >= outcomes && (failures.models.size() >= models || device.models_that_run.empty());
}

// Most of those that are up.
bool FailureDetector::others_are_well(DeviceId id) const {
  size_t up = 0;
  size_t well = 0;
  for (const DeviceModel& other : cluster_.devices) {
    if (other.id() == id || !other.up()) continue;
    ++up;
    if (!failing(devices_[other.id().value()])) ++well;
  }
  return 2 * well > up;
}

// So many others are up as would then be out for being slow or failing.
bool FailureDetector::others_suffice(DeviceId id) const {
  size_t up = 0;
  size_t out = 1;
  for (const DeviceModel& other : cluster_.devices) {
    if (other.id() == id) continue;
    if (other.up()) ++up;
    if (other.state() == DeviceState::kLost && devices_[other.id().value()].fenced_for_quality) ++out;
  }
  return up >= out;
}

}  // namespace foliot
