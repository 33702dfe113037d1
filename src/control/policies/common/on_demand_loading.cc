#include "control/policies/common/on_demand_loading.h"

#include <algorithm>
#include <tuple>

namespace foliot {
namespace {

// One runs while the next is on its way.
constexpr uint32_t kLoadsOutstandingMax = 2;
// How late a LOAD may begin; nothing breaks when it is late, it only helps less.
constexpr Duration kLoadSlack = Duration::milliseconds(100);
constexpr Duration kRetryInterval = Duration::milliseconds(1);
// A copy more is made of a model whose devices are busy for this many LOADs.
constexpr int64_t kLoadsWorthACopy = 1;

}  // namespace

OnDemandLoading::State& OnDemandLoading::state(ModelId model) {
  if (model.value() >= states_.size()) states_.resize(model.value() + 1);
  return states_[model.value()];
}

void OnDemandLoading::set_want(ModelId model, std::optional<Want> want) {
  State& s = state(model);
  if (s.want == want) return;
  s.want = want;
  update(model);
}

void OnDemandLoading::on_outcome(const Action& action) {
  if (action.type == ActionType::kInfer) return;
  if (action.type == ActionType::kLoad) --state(action.model).loading;
  retry_.clear();
  update(action.model);
}

void OnDemandLoading::update(ModelId model) {
  State& s = state(model);
  const auto copies = static_cast<int64_t>(residents_.holders(model).size());
  std::optional<TimePoint> absent;
  std::optional<Duration> backlog;
  if (s.want && copies > 0) backlog = s.want->work / copies;
  if (s.want && copies == 0 && s.loading == 0) absent = s.want->order;
  if (s.absent != absent) {
    if (s.absent) absent_.erase({*s.absent, model});
    if (absent) absent_.insert({*absent, model});
    s.absent = absent;
  }
  if (s.backlog != backlog) {
    if (s.backlog) backlogs_.erase({*s.backlog, model});
    if (backlog) backlogs_.insert({*backlog, model});
    s.backlog = backlog;
  }
}

TimePoint OnDemandLoading::plan(TimePoint now, Dispatcher& dispatcher) {
  retry_.resize(cluster_.kind_count());
  if (!all_wait(now)) load_absent(true, now, dispatcher);
  if (!all_wait(now)) load_absent(false, now, dispatcher);
  if (now >= next_copy_) replicate(now, dispatcher);
  TimePoint next = TimePoint::infinite_future();
  for (const TimePoint retry : retry_) {
    if (retry > now) next = std::min(next, retry);
  }
  return next;
}

bool OnDemandLoading::all_wait(TimePoint now) const {
  for (uint16_t kind = 0; kind < retry_.size(); ++kind) {
    if (cluster_.device_count(KindId(kind)) > 0 && retry_[kind] <= now) return false;
  }
  return true;
}

bool OnDemandLoading::waits(ModelId model, TimePoint now) const {
  for (uint16_t kind = 0; kind < retry_.size(); ++kind) {
    const bool able = cluster_.device_count(KindId(kind)) > 0 && cluster_.may_place_on(KindId(kind), model);
    if (able && retry_[kind] <= now) return false;
  }
  return true;
}

void OnDemandLoading::load_absent(bool helped, TimePoint now, Dispatcher& dispatcher) {
  for (auto next = absent_.begin(); next != absent_.end();) {
    const TimePoint earliest = earliest_load(now);
    if (earliest.is_infinite()) return;
    const auto [order, model] = *next++;
    if (waits(model, now)) continue;
    if (helped != (state(model).want->helped_until >= earliest)) continue;
    const std::vector<DeviceId> devices = targets(model, now);
    if (devices.empty()) continue;  // larger than those that are free
    const auto comes_later = [this, first = order](ModelId other) {
      const std::optional<Want>& want = state(other).want;
      return !want || want->order > first;
    };
    const bool sent = std::any_of(devices.begin(), devices.end(), [&, m = model](DeviceId device) {
      return load(device, m, comes_later, now, dispatcher);
    });
    if (sent) continue;
    for (const DeviceId device : devices) retry_[cluster_.device(device).kind().value()] = now + kRetryInterval;
    if (all_wait(now)) return;
  }
}

TimePoint OnDemandLoading::earliest_load(TimePoint now) const {
  TimePoint earliest = TimePoint::infinite_future();
  for (const DeviceModel& device : cluster_.devices) {
    if (device.up() && device.loads_outstanding() < kLoadsOutstandingMax)
      earliest = std::min(earliest, device.load_available(now));
  }
  return earliest;
}

// Of each kind of device the model with the most work is looked at.
void OnDemandLoading::replicate(TimePoint now, Dispatcher& dispatcher) {
  std::vector<bool> tried(cluster_.kind_count());
  bool failed = false;
  for (auto entry = backlogs_.rbegin(); entry != backlogs_.rend(); ++entry) {
    const auto [work, model] = *entry;
    if (state(model).loading > 0 || !try_kinds(model, tried)) continue;
    const DeviceId holder = residents_.holders(model).front();
    if (work < cluster_.durations().load(holder, model) * kLoadsWorthACopy) continue;
    const auto unwanted = [this](ModelId other) { return !state(other).want; };
    for (const DeviceId device : targets(model, now)) {
      if (cluster_.device(device).infers_outstanding() > 0 || cluster_.device(device).loads_outstanding() > 0) continue;
      if (load(device, model, unwanted, now, dispatcher)) return;
    }
    failed = true;
  }
  if (failed) next_copy_ = now + kRetryInterval;
}

bool OnDemandLoading::try_kinds(ModelId model, std::vector<bool>& tried) const {
  bool untried = false;
  for (uint16_t kind = 0; kind < tried.size(); ++kind) {
    if (tried[kind] || !cluster_.may_place_on(KindId(kind), model)) continue;
    tried[kind] = untried = true;
  }
  return untried;
}

std::vector<DeviceId> OnDemandLoading::targets(ModelId model, TimePoint now) const {
  std::vector<DeviceId> found;
  for (const DeviceModel& device : cluster_.devices) {
    if (device.loads_outstanding() < kLoadsOutstandingMax && cluster_.may_load(device.id(), model, now) &&
        device.page_count() >= cluster_.pages(device.id(), model) && device.residency(model) == Residency::kAbsent) {
      found.push_back(device.id());
    }
  }
  const auto key = [&](DeviceId id) {
    const DeviceModel& device = cluster_.device(id);
    return std::tuple(device.load_available(now), device.free_pages() < cluster_.pages(id, model),
                      -int64_t{device.free_pages()}, device.exec_available(now), id);
  };
  std::sort(found.begin(), found.end(), [&](DeviceId a, DeviceId b) { return key(a) < key(b); });
  return found;
}

bool OnDemandLoading::load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher) {
  return load(
      device, model, [](ModelId) { return true; }, now, dispatcher);
}

bool OnDemandLoading::load(DeviceId device, ModelId model, const Residents::MayGo& may_go, TimePoint now,
                           Dispatcher& dispatcher) {
  if (!residents_.make_room(device, cluster_.pages(device, model), may_go, dispatcher)) return false;
  const Window window{now, cluster_.device(device).load_available(now) + kLoadSlack};
  if (dispatcher.load(device, model, window) != Verdict::kAccepted) return false;
  ++state(model).loading;
  update(model);
  return true;
}

}  // namespace foliot
