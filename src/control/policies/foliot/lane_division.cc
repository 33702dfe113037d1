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
// Where more of the requests than this part are in time on lanes that are shared, and would not be on all together,
// that outweighs what waits for long EXECs.
constexpr double kClearGain = 0.1;
// A device is divided if it could have been for so long: between the two ways it waits for what runs, and a rate that
// is measured over seconds falls by chance.
constexpr Duration kDivisionMemory = Duration::seconds(5);

}  // namespace

bool LaneDivision::divides(DeviceId device, TimePoint now) {
  const DeviceModel& facts = board_.cluster().device(device);
  if (facts.lane_count() == 1) return false;
  if (facts.contexts().count() == 1) return true;  // whole, it could run nothing in parts
  if (device.value() >= looks_.size()) looks_.resize(device.value() + 1);
  Look& own = looks_[device.value()];
  if (now >= own.until) look(device, own, now);
  return own.divides;
}

void LaneDivision::look(DeviceId device, Look& own, TimePoint now) {
  own.until = now + kDivisionInterval;
  const uint32_t lanes = board_.cluster().device(device).lane_count();
  bool suffices = false;
  double in_time = 0;
  for (uint32_t width = 1; width * 2 <= lanes && !suffices; width *= 2) {
    const Load load = this->load(device, width, now);
    suffices = LaneDivision::suffices(load);
    in_time = std::max(in_time, LaneDivision::in_time(load));
  }
  if (!suffices) {
    const bool gains = in_time > done(load(device, lanes, now)) + kClearGain;
    own.whole_until = gains ? now : now + kDivisionMemory;
  }
  own.divides = now >= own.whole_until;
}

LaneDivision::Load LaneDivision::load(DeviceId device, uint32_t width, TimePoint now) {
  const uint32_t lanes = board_.cluster().device(device).lane_count();
  Load load{.intervals = static_cast<double>(lanes / width)};
  asked_.clear();
  board_.loaded(device).for_each([&](uint32_t id) {
    const ModelState& state = board_.model(ModelId(id));
    if (state.slo == Duration::max() || state.rate.at(now) == 0) return;
    if (add(device, ModelId(id), width_index(width, lanes), now)) return;
    load.value_missed += state.weight * state.rate.at(now) / std::max<double>(1, state.holders.size());
  });
  std::sort(asked_.begin(), asked_.end(), [](const Asked& a, const Asked& b) { return a.slo < b.slo; });
  size_t tighter = 0;  // asked_[0, tighter) have much less time than the one that is looked at
  Duration least_slack = Duration::max();
  for (const Asked& asked : asked_) {
    for (; asked_[tighter].slo * kTighterSlo <= asked.slo; ++tighter) {
      if (asked_[tighter].rate >= kBlockedRate) least_slack = std::min(least_slack, asked_[tighter].slack);
    }
    const bool is_long = asked.exec > least_slack;
    (is_long ? load.with_long : load.with_short) += asked.busy;
    (is_long ? load.value_long : load.value_short) += asked.value;
  }
  return load;
}

bool LaneDivision::add(DeviceId device, ModelId model, uint32_t width_index, TimePoint now) {
  const ModelState& state = board_.model(model);
  const double all = state.rate.at(now);
  const double rate = all / std::max<double>(1, state.holders.size());
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, model);
  Asked asked{.slo = state.slo, .rate = rate, .value = state.weight * rate};
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

bool LaneDivision::suffices(const Load& load) {
  if (load.value_missed > 0) return false;
  if (load.with_long == 0) return true;
  const double rest = load.intervals - std::ceil(load.with_long / kLongMax);
  return rest >= 1 && load.with_short <= kShortMax * rest;
}

// So many intervals have long EXECs, in the stationary distribution of servers without a queue (Erlang's loss formula).
double LaneDivision::in_time(const Load& load) {
  double late = 0;
  double weight = 1;
  double weights = 1;
  for (double busy = 1; busy <= load.intervals && load.with_short > 0; ++busy) {
    weight *= load.with_long / busy;
    weights += weight;
    late += weight * std::max(0.0, 1 - kShortMax * (load.intervals - busy) / load.with_short);
  }
  const double all = load.value_long + load.value_short + load.value_missed;
  return all == 0 ? 1 : done(load) * (load.value_long + load.value_short * (1 - late / weights)) / all;
}

double LaneDivision::done(const Load& load) {
  return load.intervals / std::max(load.intervals, load.with_long + load.with_short);
}

}  // namespace foliot::foliot_policy
