#include "control/policies/foliot/pool.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

namespace foliot::foliot_policy {
namespace {

constexpr Duration kShareInterval = Duration::milliseconds(100);
constexpr Duration kRefreshInterval = Duration::milliseconds(5);
constexpr uint32_t kRefreshMax = 64;
// More than the need, for what comes in bursts.
constexpr double kPoolReserve = 1.1;

}  // namespace

void Pool::on_request(ModelId model, TimePoint now) {
  if (!consolidate_) return;
  if (model.value() >= shares_.size()) shares_.resize(model.value() + 1);
  if (now >= shares_[model.value()].next) update(model, now);
}

void Pool::refresh_some(TimePoint now) {
  if (ranks_.size() < board_.cluster().devices.size()) on_device_changed();
  if (now < next_refresh_ || shares_.empty()) return;
  next_refresh_ = now + kRefreshInterval;
  for (uint32_t i = 0; i < std::min<size_t>(kRefreshMax, shares_.size()); ++i) {
    cursor_ = cursor_ + 1 < shares_.size() ? cursor_ + 1 : 0;
    if (shares_[cursor_].need > 0 && now >= shares_[cursor_].next) update(ModelId(cursor_), now);
  }
}

void Pool::on_device_changed() {
  for (KindPool& pool : pools_) pool.devices = pool.down = 0;
  ranks_.clear();
  for (const DeviceModel& device : board_.cluster().devices) {
    KindPool& its_pool = pool(device.kind());
    ranks_.push_back(its_pool.devices++);
    if (!device.up()) ++its_pool.down;
  }
}

uint32_t Pool::size(KindId kind) const {
  const KindPool& pool = pools_[kind.value()];
  return pool.down + std::max(1u, static_cast<uint32_t>(std::ceil(pool.need * kPoolReserve)));
}

Pool::KindPool& Pool::pool(KindId kind) {
  if (kind.value() >= pools_.size()) pools_.resize(kind.value() + 1);
  return pools_[kind.value()];
}

void Pool::update(ModelId model, TimePoint now) {
  shares_[model.value()].next = now + kShareInterval;
  const ModelState& state = board_.model(model);
  const std::optional<DeviceId> able = board_.cluster().first_able(model);
  if (!able) return set_need(model, KindId(), 0);
  const DeviceId any = *able;
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(any, model);
  const double rate = state.rate.at(now);
  double need = 0;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const Duration exec = board_.cluster().durations().exec({any, model, BucketId(0), i});
    const Duration wait =
        state.slo == Duration::max() ? Duration() : state.slo - exec - board_.cluster().least_margin();
    if (i > 0 && sizes[i] > 1 + rate * wait.to_seconds()) break;
    need = rate * exec.to_seconds() / sizes[i];
  }
  set_need(model, kind(any), need);
}

void Pool::set_need(ModelId model, KindId kind, double need) {
  if (model.value() >= shares_.size()) return;
  Share& share = shares_[model.value()];
  if (share.kind != kind) {
    double& before = pool(share.kind).need;
    before = std::max(0.0, before - share.need);
    share.need = 0;
    share.kind = kind;
  }
  double& sum = pool(kind).need;
  sum = std::max(0.0, sum + need - share.need);
  share.need = need;
}

}  // namespace foliot::foliot_policy
