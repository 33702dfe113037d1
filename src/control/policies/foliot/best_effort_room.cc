#include "control/policies/foliot/best_effort_room.h"

#include <algorithm>
#include <span>

namespace foliot::foliot_policy {
namespace {

// How often rates and SLOs are looked at.
constexpr Duration kLimitInterval = Duration::milliseconds(100);
// Models asked for less often, per second, are not made room for.
constexpr double kReservedRateMin = 0.1;
// Of more holders than this, the first ones stand for all.
constexpr uint32_t kReservedHoldersMax = 16;
// So many times the devices that are needed on average stay quick.
constexpr double kRoomReserve = 1.6;

}  // namespace

Duration BestEffortRoom::longest(DeviceId device, TimePoint now) {
  if (device.value() >= limits_.size()) limits_.resize(device.value() + 1);
  Limit& limit = limits_[device.value()];
  if (now >= limit.until) limit = look(device, now);
  return limit.shared && others_stay_quick(device, limit, now) ? limit.together : limit.alone;
}

BestEffortRoom::Limit BestEffortRoom::look(DeviceId device, TimePoint now) const {
  Limit limit{.until = now + kLimitInterval};
  board_.loaded(device).for_each([&](uint32_t model) { look_at(device, ModelId(model), now, limit); });
  return limit;
}

void BestEffortRoom::look_at(DeviceId device, ModelId id, TimePoint now, Limit& limit) const {
  const ModelState& state = board_.model(id);
  const double all = state.rate.at(now);
  const double rate = all / state.holders.size();
  if (state.slo == Duration::max() || rate < kReservedRateMin) return;
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, id);
  Duration longest;
  double need = 0;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const Duration slack = state.slo - board_.answer_time(device, id, BucketId(0), i) - board_.lookahead(device);
    longest = std::max(longest, std::min(slack, Duration::from_seconds(sizes[i] / rate)));
    if (i > 0 && sizes[i] > 1 + all * slack.to_seconds()) continue;
    need = rate * board_.cluster().durations().exec({device, id, BucketId(0), i}).to_seconds() / sizes[i];
  }
  limit.need += need;
  limit.alone = std::min(limit.alone, longest);
  if (state.holders.size() < 2) {
    limit.together = std::min(limit.together, longest);
  } else if (!limit.shared || state.holders.size() < board_.model(limit.model).holders.size()) {
    limit.shared = true;
    limit.model = id;
  }
}

bool BestEffortRoom::others_stay_quick(DeviceId device, const Limit& limit, TimePoint now) const {
  double need = limit.need;
  uint32_t quick = 0;
  uint32_t looked = 0;
  const BitSet& holders = board_.model(limit.model).holders;
  for (auto other = holders.next(0); other && looked < kReservedHoldersMax;
       other = holders.next(*other + 1), ++looked) {
    if (*other == device.value()) continue;
    if (*other < limits_.size()) need += limits_[*other].need;
    if (board_.cluster().device(DeviceId(*other)).lane_available(now) <= now + limit.alone) ++quick;
  }
  return quick >= need * kRoomReserve;
}

}  // namespace foliot::foliot_policy
