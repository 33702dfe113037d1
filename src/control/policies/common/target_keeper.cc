#include "control/policies/common/target_keeper.h"

#include <algorithm>
#include <tuple>

namespace foliot {
namespace {

// One runs while the next is on its way.
constexpr uint32_t kTargetLoadsOutstandingMax = 2;

}  // namespace

// ---- Facts ----

void TargetKeeper::on_target_changed(ModelId model) {
  const uint32_t id = model.value();
  unmet_.erase(id);
  if (cluster_.has_model(model) && cluster_.target(model).constrains_copies()) {
    constrained_.insert(id);
    due_.insert(id);
  } else {
    constrained_.erase(id);
    due_.erase(id);
  }
}

void TargetKeeper::on_outcome(const Action& action, TimePoint now) {
  if (constrained_.empty()) return;
  if (action.type == ActionType::kInfer) {
    if (!unmet_.empty()) retry_at_ = std::min(retry_at_, std::max(now, last_retry_ + kRetryInterval));
    return;
  }
  if (constrained_.contains(action.model.value())) due_.insert(action.model.value());
  unmet_.for_each([this](uint32_t id) { due_.insert(id); });
}

void TargetKeeper::on_device_changed() {
  constrained_.for_each([this](uint32_t id) { due_.insert(id); });
}

// ---- Decisions ----

TimePoint TargetKeeper::plan_due(TimePoint now, Dispatcher& dispatcher) {
  if (now >= retry_at_) {
    retry_at_ = TimePoint::infinite_future();
    last_retry_ = now;
    unmet_.for_each([this](uint32_t id) { due_.insert(id); });
  }
  actions_left_ = kActionsPerTurn;
  for (uint32_t looked = 0; looked < kModelsPerTurn && actions_left_ > 0 && !due_.empty(); ++looked) {
    bring_in_line(ModelId(*due_.next(0)), now, dispatcher);
  }
  return due_.empty() ? retry_at_ : now;
}

void TargetKeeper::bring_in_line(ModelId model, TimePoint now, Dispatcher& dispatcher) {
  due_.erase(model.value());
  unmet_.erase(model.value());
  retire_surplus(model, now, dispatcher);
  load_missing(model, now, dispatcher);
}

void TargetKeeper::retire_surplus(ModelId model, TimePoint now, Dispatcher& dispatcher) {
  devices_.clear();
  for (const DeviceModel& device : cluster_.devices) {
    if (cluster_.placed(device.id(), model)) devices_.push_back(device.id());
  }
  const uint32_t most = cluster_.target(model).copies_most;
  if (devices_.size() <= most) return;
  const auto order = [&](DeviceId id) {
    const DeviceModel& device = cluster_.device(id);
    return std::tuple(device.residency(model) == Residency::kLoaded, device.infers_outstanding(model),
                      device.last_used(model), id);
  };
  std::ranges::sort(devices_, {}, order);
  devices_.resize(devices_.size() - most);
  for (const DeviceId device : devices_) {
    if (actions_left_ == 0) return due_.insert(model.value());
    --actions_left_;
    if (dispatcher.retire(device, model) == Verdict::kAccepted) owner_.on_retired(device, model, now);
  }
}

void TargetKeeper::load_missing(ModelId model, TimePoint now, Dispatcher& dispatcher) {
  const uint32_t least = cluster_.target(model).copies_least;
  if (least == 0) return;
  uint32_t copies = 0;
  devices_.clear();
  for (const DeviceModel& device : cluster_.devices) {
    if (cluster_.placed(device.id(), model)) {
      ++copies;
    } else if (cluster_.may_load(device.id(), model, now) && device.loads_outstanding() < kTargetLoadsOutstandingMax &&
               device.page_count() >= cluster_.pages(device.id(), model)) {
      devices_.push_back(device.id());
    }
  }
  if (copies >= least) return;
  const auto order = [&](DeviceId id) {
    const DeviceModel& device = cluster_.device(id);
    return std::tuple(device.free_pages() < cluster_.pages(id, model), device.load_available(now),
                      -int64_t{device.free_pages()}, id);
  };
  std::ranges::sort(devices_, {}, order);
  for (const DeviceId device : devices_) {
    if (copies >= least || !cluster_.may_load(device, model, now)) break;
    if (actions_left_ == 0) return due_.insert(model.value());
    if (!owner_.load_for_target(device, model, now, dispatcher)) continue;
    --actions_left_;
    ++copies;
  }
  if (copies < least) unmet_.insert(model.value());
}

}  // namespace foliot
