#include "control/policies/foliot/lane_division.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "foundation/core/lanes.h"

namespace foliot::foliot_policy {
namespace {

constexpr Duration kDivisionInterval = Duration::milliseconds(100);
// Models asked for less often, per second, are not waited for.
constexpr double kBlockedRate = 0.1;
// What makes requests late has so many times their time.
constexpr int64_t kTighterSlo = 2;
// Long EXECs, which come at random, keep the intervals that are theirs busy for no more than this part of the time, and
// the others theirs.
constexpr double kLongMax = 0.3;
constexpr double kShortMax = 0.7;
// A device is divided if it could have been for so long: between the two ways it waits for what runs, and a rate that
// is measured over seconds falls by chance.
constexpr Duration kDivisionMemory = Duration::seconds(10);

}  // namespace

bool LaneDivision::divides(DeviceId device, TimePoint now) {
  const DeviceModel& facts = board_.cluster().device(device);
  if (facts.lane_count() == 1) return false;
  if (facts.contexts().count() == 1) return true;  // whole, it could run nothing in parts
  if (device.value() >= looks_.size()) looks_.resize(device.value() + 1);
  Look& own = looks_[device.value()];
  if (now < own.until) return own.divides;
  own.until = now + kDivisionInterval;
  if (!look(device, now)) own.whole_until = now + kDivisionMemory;
  own.divides = now >= own.whole_until;
  return own.divides;
}

bool LaneDivision::look(DeviceId device, TimePoint now) {
  const uint32_t lanes = board_.cluster().device(device).lane_count();
  for (uint32_t width = 1; width < lanes; width *= 2) {
    if (divides_into(device, lanes / width, width_index(width, lanes), now)) return true;
  }
  return false;
}

bool LaneDivision::divides_into(DeviceId device, uint32_t intervals, uint32_t width_index, TimePoint now) {
  asked_.clear();
  bool in_time = true;
  board_.loaded(device).for_each([&](uint32_t id) { in_time = in_time && add(device, ModelId(id), width_index, now); });
  if (!in_time) return false;
  const Busy busy = this->busy();
  if (busy.with_long == 0) return true;
  const double rest = intervals - std::ceil(busy.with_long / kLongMax);
  return rest >= 1 && busy.with_short <= kShortMax * rest;
}

bool LaneDivision::add(DeviceId device, ModelId model, uint32_t width_index, TimePoint now) {
  const ModelState& state = board_.model(model);
  const double all = state.rate.at(now);
  const double rate = all / std::max<double>(1, state.holders.size());
  if (state.slo == Duration::max() || rate == 0) return true;
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, model);
  Asked asked{.slo = state.slo, .rate = rate};
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const Duration exec = board_.lane_exec({device, model, BucketId(0), i, width_index});
    const Duration slack = state.slo - exec - board_.cluster().margin(device);
    if (slack < Duration()) break;
    if (i > 0 && sizes[i] > 1 + all * slack.to_seconds()) break;
    const double busy = rate * exec.to_seconds() / sizes[i];
    if (asked.busy > 0 && busy >= asked.busy) continue;
    asked.exec = exec;
    asked.slack = slack;
    asked.busy = busy;
  }
  if (asked.busy == 0) return rate < kBlockedRate;
  asked_.push_back(asked);
  return true;
}

LaneDivision::Busy LaneDivision::busy() {
  std::sort(asked_.begin(), asked_.end(), [](const Asked& a, const Asked& b) { return a.slo < b.slo; });
  Busy busy;
  size_t tighter = 0;  // asked_[0, tighter) have much less time than the one that is looked at
  Duration least_slack = Duration::max();
  for (const Asked& asked : asked_) {
    for (; asked_[tighter].slo * kTighterSlo <= asked.slo; ++tighter) {
      if (asked_[tighter].rate >= kBlockedRate) least_slack = std::min(least_slack, asked_[tighter].slack);
    }
    (asked.exec > least_slack ? busy.with_long : busy.with_short) += asked.busy;
  }
  return busy;
}

}  // namespace foliot::foliot_policy
