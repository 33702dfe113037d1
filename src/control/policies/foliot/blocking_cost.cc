#include "control/policies/foliot/blocking_cost.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace foliot::foliot_policy {
namespace {

// How often rates and slacks are looked at.
constexpr Duration kCurvesInterval = Duration::milliseconds(100);
// Models asked for less often, per second, are not waited for.
constexpr double kBlockedRateMin = 0.1;
// Of more holders than this, the first ones stand for all.
constexpr uint32_t kBlockedHoldersMax = 16;
// So many times the devices that are needed on average have to be quick.
constexpr double kBlockedReserve = 1.6;

}  // namespace

double BlockingCost::lost(DeviceId device, Duration busy, Duration slo_max, TimePoint now) {
  if (device.value() >= curves_.size()) curves_.resize(device.value() + 1);
  if (board_.tight().empty()) return 0;
  Curves& curves = curves_[device.value()];
  if (now >= curves.until) look(device, now, curves);
  // Of more than the device can serve, not all can be lost.
  const double served = std::min(1.0, 1 / std::max(curves.share, 1e-9));
  const double alone = curves.alone.at(busy, slo_max) * served;
  const double shared = curves.shared.at(busy, slo_max) * served;
  if (shared == 0 || others_are_quick(device, curves, now)) return alone;
  return alone + shared;
}

double BlockingCost::Curve::at(Duration busy, Duration slo_max) const {
  double lost = 0;
  for (const Knee& knee : knees) {
    if (knee.slack >= busy) break;
    if (knee.slo <= slo_max) lost += knee.rate * (busy - knee.slack).to_seconds();
  }
  return lost;
}

void BlockingCost::Curve::finish() {
  std::sort(knees.begin(), knees.end(), [](const Knee& a, const Knee& b) {
    return std::tuple(a.slack, a.slo, a.rate) < std::tuple(b.slack, b.slo, b.rate);
  });
}

void BlockingCost::look(DeviceId device, TimePoint now, Curves& curves) const {
  curves.until = now + kCurvesInterval;
  curves.alone.knees.clear();
  curves.shared.knees.clear();
  curves.share = 0;
  bool shared = false;
  board_.tight().for_each_common(board_.loaded(device), [&](uint32_t id) {
    const ModelId model(id);
    const ModelState& state = board_.model(model);
    const double all = state.rate.at(now);
    const double rate = all / state.holders.size();
    if (rate < kBlockedRateMin) return;
    const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, model);
    // What has come meanwhile is served in one batch.
    double need = 0;
    Duration slack;
    for (uint32_t i = 0; i < sizes.size(); ++i) {
      const Duration time = std::max(Duration(), state.slo - board_.answer_time(device, model, BucketId(0), i));
      if (i > 0 && sizes[i] > 1 + all * time.to_seconds()) break;
      slack = time;
      need = rate * board_.cluster().durations().exec({device, model, BucketId(0), i}).to_seconds() / sizes[i];
    }
    curves.share += need;
    Curve& curve = state.holders.size() < 2 ? curves.alone : curves.shared;
    curve.knees.push_back({slack, state.slo, rate * state.weight});
    if (state.holders.size() < 2) return;
    if (!shared || state.holders.size() < board_.model(curves.model).holders.size()) curves.model = model;
    shared = true;
  });
  curves.alone.finish();
  curves.shared.finish();
}

bool BlockingCost::others_are_quick(DeviceId device, const Curves& curves, TimePoint now) const {
  double need = curves.share;
  uint32_t quick = 0;
  uint32_t looked = 0;
  const TimePoint in_time = now + curves.shared.knees.front().slack;
  const BitSet& holders = board_.model(curves.model).holders;
  for (auto other = holders.next(0); other && looked < kBlockedHoldersMax; other = holders.next(*other + 1), ++looked) {
    if (*other == device.value()) continue;
    if (*other < curves_.size()) need += curves_[*other].share;
    if (board_.cluster().device(DeviceId(*other)).lane_available(now) <= in_time) ++quick;
  }
  return quick >= need * kBlockedReserve;
}

}  // namespace foliot::foliot_policy
