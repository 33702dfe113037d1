#include "policies/foliot/pool.h"

#include <algorithm>
#include <cmath>

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

void Pool::refresh(TimePoint now) {
  if (now < next_refresh_ || shares_.empty()) return;
  next_refresh_ = now + kRefreshInterval;
  for (uint32_t i = 0; i < std::min<size_t>(kRefreshMax, shares_.size()); ++i) {
    cursor_ = cursor_ + 1 < shares_.size() ? cursor_ + 1 : 0;
    if (shares_[cursor_].need > 0 && now >= shares_[cursor_].next) update(ModelId(cursor_), now);
  }
}

void Pool::on_device_changed() {
  const std::vector<DeviceModel>& devices = board_.cluster().devices;
  down_ = static_cast<uint32_t>(std::count_if(devices.begin(), devices.end(), [](const auto& d) { return !d.up(); }));
}

uint32_t Pool::size() const { return down_ + std::max(1u, static_cast<uint32_t>(std::ceil(need_ * kPoolReserve))); }

void Pool::update(ModelId model, TimePoint now) {
  shares_[model.value()].next = now + kShareInterval;
  const ModelState& state = board_.model(model);
  const DeviceId any = board_.cluster().devices.front().id();
  const std::vector<uint32_t>& sizes = board_.cluster().model(model).batch_sizes;
  const double rate = state.rate.at(now);
  double need = 0;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const Duration exec = board_.cluster().durations().exec({any, model, BucketId(0), i});
    const Duration wait =
        state.slo == Duration::max() ? Duration() : state.slo - exec - board_.cluster().least_margin();
    if (i > 0 && sizes[i] > 1 + rate * wait.to_seconds()) break;
    need = rate * exec.to_seconds() / sizes[i];
  }
  set_need(model, need);
}

void Pool::set_need(ModelId model, double need) {
  if (model.value() >= shares_.size()) return;
  need_ = std::max(0.0, need_ + need - shares_[model.value()].need);
  shares_[model.value()].need = need;
}

}  // namespace foliot::foliot_policy
