#include "control/policies/foliot/load_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace foliot::foliot_policy {
namespace {

// A device is given its next LOAD when it has less than this left to do.
// At least.
constexpr Duration kLookahead = Duration::milliseconds(2);
// How late a LOAD may begin; nothing breaks when it is late, it only helps less.
constexpr Duration kLoadSlack = Duration::milliseconds(100);
constexpr Duration kBusyInterval = Duration::milliseconds(5);
constexpr Duration kPrefetchInterval = Duration::milliseconds(5);
// How long what could not be loaded waits for the next attempt, if nothing changes.
constexpr Duration kRetryInterval = Duration::milliseconds(1);
// So many pairs of a model that is wanted and a free device are looked at each time, at
// least so many of them for one device, and the others no sooner than this.
constexpr uint32_t kLooksMax = 256;
constexpr uint32_t kLooksPerDeviceMin = 16;
constexpr Duration kNextLooks = Duration::microseconds(500);
// So many models that wait are looked at each time, the others no sooner than this.
constexpr uint32_t kBusyLooksMax = 16;
// So many models of a device are compared for the one to evict: the least missed of these is
// hardly ever missed.
constexpr uint32_t kEvictablesMax = 64;
constexpr Duration kNextBusyLooks = Duration::milliseconds(1);
// So many models are looked at each time, and so many of the best remembered.
constexpr uint32_t kPrefetchLooksMax = 128;
constexpr size_t kPrefetchesMax = 64;
// More devices than this are not compared for one LOAD.
constexpr uint32_t kDevicesComparedMax = 32;
constexpr uint32_t kHoldersComparedMax = 4;
constexpr double kAnyValue = std::numeric_limits<double>::infinity();
// A LOAD costs others something, whether or not a request misses its deadline by
// it: in requests, for a LOAD of 8 ms.
constexpr double kLoadCost = 0.02 / 8e-3;
constexpr double kMissProbabilityMin = 0.05;
// So long before a periodic request its model is looked at again, if nothing else happens.
constexpr Duration kExpectedAhead = Duration::milliseconds(100);
// What is expected sooner than this is expected now.
constexpr double kExpectedSeconds = 1e-3;
// A request without a deadline that has waited for so long does not wait for others' deadlines any more.
constexpr Duration kBestEffortPatience = Duration::seconds(10);
// Of models asked for less often, per second, no deadline is endangered.
constexpr double kEndangeredRateMin = 0.1;
constexpr double kSpareCopyFactor = 0.1;
// What a copy in the pool is worth for a model that only spare devices hold.
constexpr double kMoveFactor = 0.25;

// In seconds; what is overdue is expected at any moment.
double time_until(const ArrivalPeriod::Prediction& next, TimePoint now) {
  return std::max((next.at - now).to_seconds(), kExpectedSeconds);
}

}  // namespace

void LoadPlanner::on_model_added(ModelId model) {
  note_never_loaded(model);
  slacks_.resize(std::max<size_t>(slacks_.size(), model.value() + 1));
  slacks_[model.value()] = kUnknown;
}

void LoadPlanner::on_model_removed(ModelId model) {
  for (OfKind& kind : kinds_) kind.never_loaded.erase(model.value());
  wanted_.erase(model);
  std::erase_if(prefetches_, [&](const Prefetch& prefetch) { return prefetch.model == model; });
}

LoadPlanner::OfKind& LoadPlanner::of_kind(KindId kind) {
  if (kind.value() >= kinds_.size()) kinds_.resize(board_.cluster().kind_count());
  return kinds_[kind.value()];
}

void LoadPlanner::note_never_loaded(ModelId model) {
  for (uint16_t kind = 0; kind < board_.cluster().kind_count(); ++kind) {
    if (board_.cluster().runnable_of(KindId(kind), model) == nullptr) continue;
    of_kind(KindId(kind)).never_loaded.insert(model.value());
  }
}

void LoadPlanner::note_load_wait(DeviceId device, Duration wait) {
  Duration& mean = of_kind(kind(device)).load_wait;
  mean = mean * 63 / 64 + wait / 64;
}

void LoadPlanner::on_cold(ModelId model, TimePoint now) {
  if (wanted_.put({.model = model, .since = now})) changed_ = true;
}

void LoadPlanner::on_device_changed(DeviceId device, TimePoint now) {
  free_.erase(device.value());
  busy_.emplace(now, device.value());
  changed_ = true;
  note_room(device);
}

Duration LoadPlanner::lookahead(DeviceId device) const {
  return std::max(kLookahead, board_.cluster().lookahead(device));
}

void LoadPlanner::on_load_over(DeviceId device, TimePoint now) {
  busy_.emplace(board_.cluster().device(device).load_available(now) - lookahead(device), device.value());
  changed_ = true;
}

TimePoint LoadPlanner::plan(TimePoint now, Dispatcher& dispatcher) {
  free_devices(now);
  if (now >= next_busy_look_) look_for_busy_models(now);
  const TimePoint next_look = next_prefetch_look();
  if (now >= next_look) look_for_prefetches(now);
  if ((changed_ || now >= next_look_) && now >= no_look_before_) {
    changed_ = !wanted_.empty() && !load_wanted(now, dispatcher);
    next_look_ = now + kRetryInterval;
    if (changed_) no_look_before_ = now + kNextLooks;
    if (!prefetches_.empty() || !roomy_.empty()) prefetch(now, dispatcher);
  }

  TimePoint wake = next_prefetch_look();
  if (!board_.waiting().empty()) wake = std::min(wake, next_busy_look_);
  if (changed_) wake = std::min(wake, no_look_before_);
  if (!wanted_.empty() && !busy_.empty()) wake = std::min(wake, busy_.top().first);
  return wake;
}

TimePoint LoadPlanner::next_prefetch_look() const {
  if (rates_changed_) return next_prefetch_look_;
  return std::max(next_prefetch_look_, next_expected_ - kExpectedAhead);
}

void LoadPlanner::free_devices(TimePoint now) {
  const auto count = static_cast<uint32_t>(board_.cluster().devices.size());
  for (; devices_ < count; ++devices_) {
    free_.insert(devices_);
    roomy_.insert(devices_);
  }
  while (!busy_.empty() && busy_.top().first <= now) {
    const uint32_t device = busy_.top().second;
    busy_.pop();
    const DeviceModel& facts = board_.cluster().devices[device];
    if (!facts.up() || facts.load_available(now) - lookahead(DeviceId(device)) > now) continue;
    free_.insert(device);
    changed_ = true;
  }
}

// ---- What is wanted ----

bool LoadPlanner::still_wanted(const WantedLoad& wanted) const {
  const ModelState& state = board_.model(wanted.model);
  return state.queued > 0 && state.loading == 0 && (wanted.factor < 1 || state.holders.empty());
}

// Of few models each gets the best device; of many, each device the best of some of them.
bool LoadPlanner::load_wanted(TimePoint now, Dispatcher& dispatcher) {
  looks_left_ = kLooksMax;
  if (wanted_.size() > free_.size()) {
    for (auto id = free_.next(0); id && looks_left_ > 0; id = free_.next(*id + 1)) {
      while (free_.contains(*id) && load_best_model(DeviceId(*id), now, dispatcher)) {
      }
    }
    return looks_left_ > 0;
  }
  auto wanted = wanted_.begin();
  while (wanted != wanted_.end() && looks_left_ > 0) {
    const bool over = !still_wanted(*wanted) || load_on_best_device(*wanted, now, dispatcher);
    wanted = over ? wanted_.erase(wanted) : std::next(wanted);
  }
  const bool all = wanted == wanted_.end();
  wanted_.rotate(wanted);
  return all;
}

bool LoadPlanner::load_best_model(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  auto best = wanted_.end();
  double best_score = 0;
  const Duration backlog = board_.backlog(device, now);
  uint32_t looks = std::min(looks_left_, std::max(kLooksPerDeviceMin, kLooksMax / devices_));
  auto wanted = wanted_.begin();
  while (wanted != wanted_.end() && looks > 0) {
    if (!still_wanted(*wanted)) {
      wanted = wanted_.erase(wanted);
      continue;
    }
    --looks;
    --looks_left_;
    const double score = backlog > wanted->backlog_max ? 0 : load_score(device, *wanted, now);
    if (score > best_score) {
      best = wanted;
      best_score = score;
    }
    ++wanted;
  }
  const bool loaded =
      best != wanted_.end() && load(device, best->model, victims_of_wanted(device, best->model, now), now, dispatcher);
  if (loaded) note_load_wait(device, now - best->since);
  wanted_.rotate(wanted);
  if (loaded) wanted_.erase(best);
  return loaded;
}

double LoadPlanner::load_score(DeviceId device, const WantedLoad& wanted, TimePoint now) const {
  if (!may_load(device, wanted.model, now)) return 0;
  const Duration load = board_.cluster().durations().load(device, wanted.model);
  return wanted.factor * board_.model(wanted.model).weight * served_by_load(device, wanted.model, now) /
         std::max(load.to_seconds(), 1e-6);
}

// In the pool, where there is room, and then where there is the least to do.
bool LoadPlanner::load_on_best_device(const WantedLoad& wanted, TimePoint now, Dispatcher& dispatcher) {
  std::optional<DeviceId> best = least_busy(wanted, {.room = true, .pool = true}, now);
  if (!best && wanted.factor == 1) best = least_busy(wanted, {.room = true}, now);
  if (!best) best = least_busy(wanted, {.pool = wanted.factor < 1}, now);
  if (!best || !load(*best, wanted.model, victims_of_wanted(*best, wanted.model, now), now, dispatcher)) return false;
  note_load_wait(*best, now - wanted.since);
  return true;
}

// Of the free devices that have these properties, from where the last search ended.
std::optional<DeviceId> LoadPlanner::least_busy(const WantedLoad& wanted, Need need, TimePoint now) {
  std::optional<DeviceId> best;
  Duration least;
  uint32_t compared = 0;
  uint32_t passed = 0;
  for (uint32_t id = device_cursor_; compared < kDevicesComparedMax && passed < devices_; ++passed, ++id) {
    if (id >= devices_) id = 0;
    const DeviceId device(id);
    if (!free_.contains(id) || (need.room && !roomy_.contains(id)) || (need.pool && !pool_.contains(device))) continue;
    const DeviceModel& facts = board_.cluster().device(device);
    if (!board_.cluster().may_place(device, wanted.model)) continue;
    if (need.room && facts.free_pages() < board_.cluster().pages(device, wanted.model)) continue;
    if (!may_load(device, wanted.model, now)) continue;
    ++compared;
    looks_left_ -= std::min(looks_left_, 1U);
    const Duration backlog = board_.backlog(device, now) + (facts.load_available(now) - now);
    if (backlog > wanted.backlog_max || (best && backlog >= least)) continue;
    if (served_by_load(device, wanted.model, now) == 0) continue;
    best = device;
    least = backlog;
    if (compared == kDevicesComparedMax) device_cursor_ = id + 1;
  }
  return best;
}

uint32_t LoadPlanner::served_by_load(DeviceId device, ModelId id, TimePoint now) const {
  const Cluster& cluster = board_.cluster();
  const DeviceModel& facts = cluster.device(device);
  const TimePoint start =
      std::max(facts.load_available(now) + cluster.durations().load(device, id), facts.lane_available(now));
  const ModelState& state = board_.model(id);
  const std::span<const uint32_t> sizes = cluster.batch_sizes(device, id);
  size_t most = 0;
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket];
    for (uint32_t i = 0; i < sizes.size() && queue.size() > 0; ++i) {
      const size_t first = queue.first_due_from(start + board_.answer_time(device, id, BucketId(bucket), i));
      most = std::max(most, std::min<size_t>(sizes[i], queue.size() - first));
      if (sizes[i] >= queue.size()) break;  // larger ones only take longer
    }
  }
  return static_cast<uint32_t>(most);
}

bool LoadPlanner::may_load(DeviceId device, ModelId model, TimePoint now) const {
  const Cluster& cluster = board_.cluster();
  return !cluster.placed(device, model) && cluster.may_load(device, model, now);
}

bool LoadPlanner::load_for_target(DeviceId device, ModelId model, TimePoint now, Dispatcher& dispatcher) {
  return load(device, model, {kAnyValue, Duration()}, now, dispatcher);
}

// A model stays until none of its requests wait. Those with a deadline cannot wait long; the others can.
LoadPlanner::Victims LoadPlanner::victims_of_wanted(DeviceId device, ModelId id, TimePoint now) const {
  const ModelState& state = board_.model(id);
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, id);
  const auto largest = static_cast<uint32_t>(sizes.size()) - 1;
  Duration stay = board_.cluster().durations().load(device, id);
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket];
    if (queue.with_deadline() > 0) return {kAnyValue, Duration()};
    if (queue.size() > 0 && now - queue[0].place.arrival >= kBestEffortPatience) return {kAnyValue, Duration()};
    const auto batches = static_cast<int64_t>((queue.size() + sizes.back() - 1) / sizes.back());
    stay += board_.answer_time(device, id, BucketId(bucket), largest) * batches;
  }
  return {kAnyValue, stay};
}

bool LoadPlanner::load(DeviceId device, ModelId model, Victims victims, TimePoint now, Dispatcher& dispatcher) {
  const DeviceModel& facts = board_.cluster().device(device);
  if (!make_room(device, board_.cluster().pages(device, model), victims, now, dispatcher)) return false;
  const Window window{now, facts.load_available(now) + kLoadSlack};
  if (dispatcher.load(device, model, window) != Verdict::kAccepted) return false;
  board_.load_sent(model);
  note_room(device);
  for (OfKind& kind : kinds_) kind.never_loaded.erase(model.value());
  const TimePoint next = facts.load_available(now) - lookahead(device);
  if (next > now) {
    free_.erase(device.value());
    busy_.emplace(next, device.value());
  }
  return true;
}

// ---- What goes ----

bool LoadPlanner::make_room(DeviceId device, uint32_t pages, Victims victims, TimePoint now, Dispatcher& dispatcher) {
  const DeviceModel& facts = board_.cluster().device(device);
  uint32_t room = facts.free_pages();
  if (room >= pages) return true;
  if (facts.page_count() < pages) return false;
  evictables_.clear();
  victims_.clear();
  uint32_t unseen = board_.loaded(device).size();
  double value = 0;
  while (room < pages) {
    if (evictables_.empty()) {
      if (unseen == 0) return false;
      const uint32_t count = std::min(unseen, kEvictablesMax);
      look_for_evictables(device, count, now);
      unseen -= count;
    }
    const std::optional<Evictable> victim = take_least_missed(device, now);
    if (!victim || endangered(device, ModelId(victim->model), victims.stay, now)) continue;
    const uint32_t freed = board_.cluster().pages(device, ModelId(victim->model));
    room += freed;
    value += victim->value * freed;
    if (value > victims.value_max) return false;
    victims_.push_back(*victim);
  }
  for (const Evictable& victim : victims_) {
    if (dispatcher.unload(device, ModelId(victim.model)) != Verdict::kAccepted) return false;
    board_.set_loaded(device, ModelId(victim.model), false);
    rates_changed_ = true;  // it may be worth a prefetch now
  }
  return true;
}

void LoadPlanner::look_for_evictables(DeviceId device, uint32_t count, TimePoint now) {
  const BitSet& loaded = board_.loaded(device);
  for (uint32_t looked = 0; looked < count; ++looked) {
    std::optional<uint32_t> id = loaded.next(evict_cursor_);
    if (!id) id = loaded.next(0);
    evictables_.push_back({keep_value_at_least(device, ModelId(*id), now), false, *id});
    evict_cursor_ = *id + 1;
  }
  std::make_heap(evictables_.begin(), evictables_.end(), std::greater<>());
}

// Few of them are the least missed: only those are looked at closely whose lower bound
// comes first.
std::optional<LoadPlanner::Evictable> LoadPlanner::take_least_missed(DeviceId device, TimePoint now) {
  while (!evictables_.empty()) {
    std::pop_heap(evictables_.begin(), evictables_.end(), std::greater<>());
    Evictable& least = evictables_.back();
    const ModelId model(least.model);
    if (!least.exact && may_evict(device, model)) {
      least = {keep_value(device, model, now), true, least.model};
      std::push_heap(evictables_.begin(), evictables_.end(), std::greater<>());
      continue;
    }
    const Evictable taken = least;
    evictables_.pop_back();
    if (taken.exact) return taken;
  }
  return std::nullopt;
}

bool LoadPlanner::may_evict(DeviceId device, ModelId id) const {
  const ModelState& state = board_.model(id);
  if ((state.queued > 0 && state.holders.size() == 1) || !board_.cluster().may_evict(id)) return false;
  return board_.cluster().device(device).infers_outstanding(id) == 0;
}

double LoadPlanner::demand(ModelId id, TimePoint now) const {
  const auto next = board_.next_arrival(id, now);
  return next ? 1 / time_until(*next, now) : board_.model(id).rate.at(now);
}

double LoadPlanner::demand_at_least(ModelId id, TimePoint now) const {
  const auto next = board_.next_arrival(id, now);
  return next ? 1 / time_until(*next, now) : board_.model(id).rate.at_least(now);
}

double LoadPlanner::keep_value(DeviceId device, ModelId id, TimePoint now) const {
  const ModelState& state = board_.model(id);
  const double load_seconds = board_.cluster().durations().load(device, id).to_seconds();
  const double cost = miss_probability(device, id) + kLoadCost * load_seconds;
  const double value = demand(id, now) * state.weight * cost / board_.cluster().pages(device, id);
  return spare_copy(device, id, now) ? value * kSpareCopyFactor : value;
}

double LoadPlanner::keep_value_at_least(DeviceId device, ModelId id, TimePoint now) const {
  const ModelState& state = board_.model(id);
  const double load_seconds = board_.cluster().durations().load(device, id).to_seconds();
  const double cost = kLoadCost * load_seconds;
  const double value = demand_at_least(id, now) * state.weight * cost / board_.cluster().pages(device, id);
  return state.holders.size() < 2 ? value : value * kSpareCopyFactor;
}

double LoadPlanner::miss_probability(DeviceId device, ModelId id) const {
  return miss_probability(slack(device, id), kind(device));
}

bool LoadPlanner::endangered(DeviceId device, ModelId id, Duration absence, TimePoint now) const {
  if (absence == Duration() || board_.model(id).holders.size() > 1) return false;
  const Duration slack = this->slack(device, id);
  return slack < Duration::max() && slack < absence && demand(id, now) >= kEndangeredRateMin;
}

Duration LoadPlanner::slack(DeviceId device, ModelId id) const {
  const ModelState& state = board_.model(id);
  if (state.slo == Duration::max()) return Duration::max();
  return state.slo - board_.cluster().durations().load(device, id) - board_.answer_time(device, id, BucketId(0), 0) -
         Duration::microseconds(500);
}

double LoadPlanner::miss_probability(Duration slack, KindId kind) const {
  if (slack == Duration::max()) return 0;
  if (slack <= Duration()) return 1;
  const Duration load_wait = kind.value() < kinds_.size() ? kinds_[kind.value()].load_wait : OfKind().load_wait;
  return std::exp(-slack.to_seconds() / std::max(load_wait.to_seconds(), 1e-4));
}

// Another device holds it too, and has time.
bool LoadPlanner::spare_copy(DeviceId device, ModelId id, TimePoint now) const {
  const ModelState& state = board_.model(id);
  if (state.holders.size() < 2 || state.slo == Duration::max()) return false;
  uint32_t looked = 0;
  bool spare = false;
  for (auto other = state.holders.next(0); other && looked < kHoldersComparedMax && !spare;
       other = state.holders.next(*other + 1)) {
    if (*other == device.value()) continue;
    ++looked;
    spare = board_.backlog(DeviceId(*other), now) * 4 < state.slo;
  }
  return spare;
}

// ---- What may be wanted ----

// A model is worth loading once more when each device that holds it has work for
// half of its SLO.
void LoadPlanner::look_for_busy_models(TimePoint now) {
  next_busy_look_ = now + kBusyInterval;
  changed_ = true;
  copies_due_ = true;
  if (board_.cluster().devices.size() < 2) return;
  const BitSet& waiting = board_.waiting();
  std::optional<uint32_t> id = waiting.next(busy_cursor_);
  for (uint32_t looked = 0; id && looked < kBusyLooksMax; ++looked) {
    look_whether_busy(ModelId(*id), now);
    busy_cursor_ = *id + 1;
    id = waiting.next(busy_cursor_);
  }
  if (!id) busy_cursor_ = 0;
  if (id) next_busy_look_ = now + std::max(kNextBusyLooks, kBusyInterval * kBusyLooksMax / waiting.size());
}

void LoadPlanner::look_whether_busy(ModelId model, TimePoint now) {
  const ModelState& state = board_.model(model);
  if (state.holders.empty()) return;
  wanted_.erase(model);
  if (free_.empty() || state.loading > 0 || state.slo == Duration::max()) return;
  if (!pool_.contains(DeviceId(*state.holders.next(0)))) {
    wanted_.put({.model = model, .since = now, .factor = kMoveFactor});
    return;
  }
  const Duration least = board_.least_backlog(model, TimePoint::infinite_future(), now);
  if (least * 2 < state.slo) return;
  const double share = std::min(1.0, least.to_seconds() / state.slo.to_seconds());
  wanted_.put({.model = model, .since = now, .factor = 0.5 * share, .backlog_max = least / 2});
}

// Some models each time, so that no decision takes long.
void LoadPlanner::look_for_prefetches(TimePoint now) {
  changed_ = true;
  rates_changed_ = false;
  next_prefetch_look_ = now + kPrefetchInterval;
  if (board_.cluster().devices.empty()) return;
  if (const uint64_t revision = board_.cluster().durations().revision(); revision != slacks_revision_) {
    std::fill(slacks_.begin(), slacks_.end(), kUnknown);
    slacks_revision_ = revision;
  }
  if (prefetch_cursor_ == 0) next_expected_ = TimePoint::infinite_future();
  const uint32_t first = prefetch_cursor_;
  const size_t before = prefetches_.size();
  std::optional<uint32_t> id = board_.absent().next(first);
  for (uint32_t looked = 0; id && looked < kPrefetchLooksMax; ++looked) {
    const ModelId model(*id);
    const auto next = board_.next_arrival(model, now);
    if (next) next_expected_ = std::min(next_expected_, next->at);
    const std::optional<DeviceId> any = board_.cluster().first_able(model);
    const bool worth = any && (next || (board_.model(model).rate.seen() &&
                                        miss_probability(known_slack(*any, model), kind(*any)) >= kMissProbabilityMin));
    if (worth) {
      prefetches_.push_back({keep_value(*any, model, now) * board_.cluster().pages(*any, model), model});
    }
    prefetch_cursor_ = *id + 1;
    id = board_.absent().next(prefetch_cursor_);
  }
  const uint32_t end = id ? prefetch_cursor_ : std::numeric_limits<uint32_t>::max();
  const auto outdated = std::remove_if(
      prefetches_.begin(), prefetches_.begin() + static_cast<std::ptrdiff_t>(before),
      [&](const Prefetch& prefetch) { return prefetch.model.value() >= first && prefetch.model.value() < end; });
  prefetches_.erase(outdated, prefetches_.begin() + static_cast<std::ptrdiff_t>(before));
  next_prefetch_look_ = now + (id ? kPrefetchInterval / 2 : kPrefetchInterval);
  if (!id) prefetch_cursor_ = 0;
  std::sort(prefetches_.begin(), prefetches_.end(), [](const Prefetch& a, const Prefetch& b) {
    return std::pair(a.value, b.model) < std::pair(b.value, a.model);
  });
  if (prefetches_.size() > kPrefetchesMax) {
    prefetches_.erase(prefetches_.begin(), prefetches_.end() - static_cast<std::ptrdiff_t>(kPrefetchesMax));
  }
}

Duration LoadPlanner::known_slack(DeviceId device, ModelId model) {
  Duration& known = slacks_[model.value()];
  if (known == kUnknown) known = slack(device, model);
  return known;
}

void LoadPlanner::prefetch(TimePoint now, Dispatcher& dispatcher) {
  const bool copies = std::exchange(copies_due_, false);
  for (auto id = free_.next(0); id && !(prefetches_.empty() && roomy_.empty()); id = free_.next(*id + 1)) {
    const DeviceId device(*id);
    if (board_.cluster().device(device).loads_outstanding() > 0) continue;
    bool loaded = false;
    while (const std::optional<Prefetch> next = loaded ? std::nullopt : take_prefetch(device, now)) {
      loaded = board_.absent().contains(next->model.value()) &&
               load(device, next->model, {next->value / 2, Duration()}, now, dispatcher);
    }
    if (loaded || (of_kind(kind(device)).never_loaded.empty() && !copies)) continue;
    if (roomy_.contains(*id) && pool_.contains(device)) fill_free_pages(device, now, dispatcher);
  }
}

std::optional<LoadPlanner::Prefetch> LoadPlanner::take_prefetch(DeviceId device, TimePoint now) {
  const auto found = std::find_if(prefetches_.rbegin(), prefetches_.rend(), [&](const Prefetch& prefetch) {
    return board_.cluster().may_load(device, prefetch.model, now);
  });
  if (found == prefetches_.rend()) return std::nullopt;
  const Prefetch taken = *found;
  prefetches_.erase(std::prev(found.base()));
  return taken;
}

// With the first model that was never loaded, and then with another copy of the
// one that most requests wait for.
void LoadPlanner::fill_free_pages(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  const uint32_t room = board_.cluster().device(device).free_pages();
  BitSet& never_loaded = of_kind(kind(device)).never_loaded;
  std::optional<uint32_t> filler = never_loaded.next(0);
  for (; filler; filler = never_loaded.next(*filler + 1)) {
    if (!board_.absent().contains(*filler)) {
      never_loaded.erase(*filler);  // a device has joined with it
    } else if (board_.cluster().may_load(device, ModelId(*filler), now)) {
      break;
    }
  }
  if (!filler) filler = most_queued(device, now);
  if (!filler || board_.cluster().pages(device, ModelId(*filler)) > room) return;
  load(device, ModelId(*filler), {0, Duration()}, now, dispatcher);
}

std::optional<uint32_t> LoadPlanner::most_queued(DeviceId device, TimePoint now) const {
  std::optional<uint32_t> model;
  uint32_t most = 0;
  std::optional<uint32_t> id = board_.waiting().next(busy_cursor_);
  for (uint32_t looked = 0; id && looked < kBusyLooksMax; ++looked, id = board_.waiting().next(*id + 1)) {
    const ModelState& state = board_.model(ModelId(*id));
    if (state.loading > 0 || state.queued <= most || !may_load(device, ModelId(*id), now)) continue;
    model = id;
    most = state.queued;
  }
  return model;
}

void LoadPlanner::note_room(DeviceId device) {
  if (board_.cluster().device(device).free_pages() > 0) {
    roomy_.insert(device.value());
  } else {
    roomy_.erase(device.value());
  }
}

}  // namespace foliot::foliot_policy
