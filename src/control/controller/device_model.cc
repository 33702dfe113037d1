#include "control/controller/device_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Of so many INFERs outstanding OUTPUT is looked at; there are rarely more.
constexpr size_t kOutputsSeen = 64;
// Of rows' OUTPUT the mean is of about so many, and the tail's half is forgotten after about three quarters of so many.
constexpr int64_t kOutputsMeant = 8;
constexpr int64_t kOutputsOfTail = 64;
constexpr Duration kOutputBelieved = Duration::microseconds(50);
constexpr Duration kOutputDoubtInterval = Duration::milliseconds(500);

}  // namespace

template <uint32_t kLanes>
TimePoint Timeline::available_of(TimePoint now, const Link& link, LaneInterval lanes) const {
  // What ended later than this need not be known yet.
  const TimePoint known_until = now - link.report;
  if constexpr (kLanes == 1) {
    TimePoint free = known_until;
    for (const Pending& pending : pending_) {
      free = std::max(known_until,
                      (pending.begin ? *pending.begin : std::max(free, pending.begin_min)) + pending.expected);
    }
    return std::max(now + link.delivery, free);
  }
  std::array<TimePoint, kLanes> free;
  free.fill(known_until);
  const auto all_free = [&free](LaneInterval of) {
    return *std::max_element(free.begin() + of.first, free.begin() + of.first + of.count);
  };
  for (const Pending& pending : pending_) {
    const TimePoint start = pending.begin ? *pending.begin : std::max(all_free(pending.lanes), pending.begin_min);
    // What should be known to be over and is not will be over any moment.
    std::fill_n(free.begin() + pending.lanes.first, pending.lanes.count,
                std::max(known_until, start + pending.expected));
  }
  return std::max(now + link.delivery, all_free(lanes));
}
template TimePoint Timeline::available_of<1>(TimePoint, const Link&, LaneInterval) const;
template TimePoint Timeline::available_of<kLanesMax>(TimePoint, const Link&, LaneInterval) const;

// Results come in the order in which their EXECs end.
TimePoint Timeline::but_one_output_left(TimePoint then, TimePoint now, const Link& link) const {
  struct Result {
    TimePoint there;
    Duration output;
  };
  std::array<TimePoint, kLanesMax> free;
  free.fill(now - link.report);
  std::array<Result, kOutputsSeen> results;
  size_t count = 0;
  for (const Pending& pending : pending_) {
    if (count == results.size()) break;
    const auto first = free.begin() + pending.lanes.first;
    const TimePoint start =
        pending.begin.value_or(std::max(*std::max_element(first, first + pending.lanes.count), pending.begin_min));
    std::fill_n(first, pending.lanes.count, start + pending.expected);
    if (start + pending.expected <= then) results[count++] = {start + pending.expected, pending.output};
  }
  std::sort(results.begin(), results.begin() + count,
            [](const Result& a, const Result& b) { return a.there < b.there; });
  TimePoint end = output_end_;
  Duration longest;
  for (size_t i = 0; i < count; ++i) {
    end = std::max(end, results[i].there) + results[i].output;
    longest = std::max(longest, results[i].output);
  }
  return end - longest;
}

void Timeline::add(ActionId id, TimePoint earliest, Duration expected, TimePoint now, const Link& link,
                   LaneInterval lanes, Duration output) {
  outputs_ += output;
  const Pending added{earliest, id, expected, std::max(now + link.delivery, earliest), lanes, output};
  const auto behind = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& pending) {
    return std::pair(added.earliest, added.id) < std::pair(pending.earliest, pending.id);
  });
  for (auto later = behind; later != pending_.end(); ++later) {
    if (later->lanes.overlaps(lanes)) later->begin.reset();
  }
  pending_.insert(behind, added);
  note_first(TimePoint());
}

void Timeline::remove(ActionId id, TimePoint end, TimePoint output_end) {
  const auto found =
      std::find_if(pending_.begin(), pending_.end(), [&](const Pending& pending) { return pending.id == id; });
  FOLIOT_CHECK(found != pending_.end());
  outputs_ -= found->output;
  output_end_ = std::max(output_end_, output_end);
  pending_.erase(found);
  // What comes next began when this one ended; if this one was refused from behind the
  // one that runs, that one's begin stands.
  note_first(end);
}

void Timeline::note_first(TimePoint at) {
  uint64_t taken = 0;  // lanes of what comes before
  for (Pending& pending : pending_) {
    const uint64_t own = pending.lanes.bits();
    if ((taken & own) == 0 && !pending.begin) pending.begin = std::max(at, pending.begin_min);
    taken |= own;
  }
}

TimePoint Timeline::first_end(int64_t times) const {
  TimePoint first = TimePoint::infinite_future();
  for (const Pending& pending : pending_) {
    if (pending.begin) first = std::min(first, *pending.begin + pending.expected * times);
  }
  return first;
}

TimePoint DeviceModel::lane_available(TimePoint now) const {
  TimePoint first = exec_available(now, {});
  for (uint32_t lane = 1; lane < lane_count(); ++lane) first = std::min(first, exec_available(now, {lane, 1}));
  return first;
}

TimePoint DeviceModel::exec_done(TimePoint now) const {
  Duration all;
  for (uint32_t lane = 0; lane < lane_count(); ++lane) all += exec_available(now, {lane, 1}) - now;
  return now + all / lane_count();
}

void DeviceModel::forget_if_gone(ModelId model) {
  const State& s = std::as_const(*this).state(model);
  if (s.residency == Residency::kAbsent && s.infers == 0) models_.erase(model);
}

std::vector<ModelId> DeviceModel::loaded() const {
  std::vector<ModelId> found;
  models_.for_each([&](ModelId id, const State& s) {
    if (s.residency == Residency::kLoaded) found.push_back(id);
  });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<ModelId> DeviceModel::held() const {
  std::vector<ModelId> found;
  models_.for_each([&](ModelId id, const State& s) {
    if (s.residency != Residency::kAbsent) found.push_back(id);
  });
  std::sort(found.begin(), found.end());
  return found;
}

void DeviceModel::lose() {
  state_ = DeviceState::kLost;
  page_count_ = 0;
  free_pages_ = 0;
  models_.clear();
  exec_.clear();
  load_.clear();
  contexts_ = Contexts(contexts_.count());
}

void DeviceModel::join(uint32_t page_count, uint32_t lane_count, std::span<const ModelId> residents,
                       uint32_t pages_used, TimePoint now, uint32_t context_count) {
  FOLIOT_CHECK(state_ == DeviceState::kLost && pages_used <= page_count);
  FOLIOT_CHECK(lane_count >= 1 && lane_count <= kLanesMax);
  FOLIOT_CHECK(context_count >= 1 && context_count <= kContextsMax);
  state_ = DeviceState::kUp;
  joined_at_ = now;
  page_count_ = page_count;
  free_pages_ = page_count - pages_used;
  exec_.set_lane_count(lane_count);
  contexts_ = Contexts(context_count);
  for (const ModelId model : residents) {
    state(model) = {.residency = Residency::kLoaded, .infers = 0, .loaded_at = now, .last_used = now};
  }
}

void DeviceModel::sent_load(ActionId id, ModelId model, uint32_t pages, TimePoint earliest, Duration expected,
                            TimePoint now) {
  State& s = state(model);
  FOLIOT_CHECK(s.residency == Residency::kAbsent && pages <= free_pages());
  free_pages_ -= pages;
  load_.add(id, earliest, expected, now, link_);
  s.residency = Residency::kLoading;
  s.loaded_at = load_.available(now, link_);
  s.last_used = s.loaded_at;
}

void DeviceModel::sent_unload(ModelId model, uint32_t pages) {
  State& s = state(model);
  FOLIOT_CHECK(s.residency == Residency::kLoaded && s.infers == 0);
  free_pages_ += pages;
  FOLIOT_CHECK(free_pages_ <= page_count_);
  models_.erase(model);
}

void DeviceModel::sent_infer(ActionId id, ModelId model, LaneInterval lanes, TimePoint earliest, Duration expected,
                             TimePoint now, bool resumed, uint32_t results) {
  State& s = state(model);
  FOLIOT_CHECK(s.residency != Residency::kAbsent);
  if (!resumed) ++s.infers;
  s.last_used = now;
  exec_.add(id, earliest, expected, now, link_, lanes, s.output * results);
}

void DeviceModel::load_over(ActionId id, ModelId model, uint32_t pages, bool loaded, TimePoint end) {
  State& s = state(model);
  FOLIOT_CHECK(s.residency == Residency::kLoading);
  load_.remove(id, end);
  s.residency = loaded ? Residency::kLoaded : Residency::kAbsent;
  s.loaded_at = end;
  s.last_used = std::max(s.last_used, end);
  if (!loaded) free_pages_ += pages;
  forget_if_gone(model);
}

void DeviceModel::unload_refused(ModelId model, uint32_t pages) {
  State& s = state(model);
  FOLIOT_CHECK(s.residency == Residency::kAbsent);
  s.residency = Residency::kLoaded;
  free_pages_ -= pages;
}

void DeviceModel::put_aside(ModelId model) {
  State& s = state(model);
  FOLIOT_CHECK(s.residency != Residency::kAbsent);
  s.set_aside = true;
}

TimePoint DeviceModel::output_allows(ModelId model, TimePoint start, Duration exec, TimePoint now) const {
  if (output_reserve(model) == Duration() || exec_.outputs() < Timeline::kOutputsMin) return start;
  return std::max(start, exec_.but_one_output_left(start + exec, now, link_) - exec);
}

// A thread that lost its core for once makes no model one of large results.
void DeviceModel::measured_output(ModelId model, Duration row, Duration whole, TimePoint now) {
  State& s = state(model);
  const Duration believed = std::min(row, s.output * 2 + kOutputBelieved);
  s.output = s.output == Duration() ? row : s.output + (believed - s.output) / kOutputsMeant;
  s.output_tail = std::max(whole, s.output_tail - s.output_tail / kOutputsOfTail);
  s.output_at = now;
}

void DeviceModel::doubt_output(ModelId model, TimePoint now) {
  State& s = state(model);
  if (now < s.output_at + kOutputDoubtInterval) return;
  s.output_tail = s.output_tail / 2;
  s.output_at = now;
}

void DeviceModel::infer_over(ActionId id, ModelId model, TimePoint end, bool unfinished, TimePoint output_end) {
  exec_.remove(id, end, output_end);
  if (!unfinished) batch_over(model);
}

void DeviceModel::abandon(ContextIndex context) {
  const ModelId model = contexts_.unfinished(context)->model;
  contexts_.abandon(context);
  batch_over(model);
}

void DeviceModel::batch_over(ModelId model) {
  State& s = state(model);
  FOLIOT_CHECK(s.infers > 0);
  --s.infers;
  forget_if_gone(model);
}

}  // namespace foliot
