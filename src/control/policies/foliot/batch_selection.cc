#include "control/policies/foliot/batch_selection.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "control/policies/foliot/worthwhile_delay.h"

namespace foliot::foliot_policy {
namespace {

// More than this are never weighed against each other: those that have to start
// first are.
constexpr size_t kBatchesMax = 64;
// Of what a queue has time for in batches of one size, no more than these, the most urgent:
// a decision does not cost what can wait for long.
constexpr size_t kBatchesPerRangeMax = 16;
// Of so many batches of best effort one goes to the request that has waited longest.
constexpr uint64_t kOldestEvery = 8;

// What waits on a device is left to others only if they have so many times the time
// that it takes.
constexpr int64_t kTimeElsewhere = 5;
// Of more holders than this, the first ones stand for all.
constexpr uint32_t kBatchHoldersMax = 16;

// A batch that makes fewer late than this, for each that it serves, is run at once.
constexpr double kLostMin = 0.02;
// A batch is divided if that makes so many times as few late.
constexpr double kWorthDividing = 0.5;
// More rows are waited for no longer than so many mean gaps between arrivals. Where clients
// wait for their answers before they ask again, none may come: each wait that was in vain
// halves what is waited for, and each row that came makes it a little longer.
constexpr double kGapsAwaitedMax = 6;
constexpr double kGapsAwaitedMin = 0.5;
constexpr double kAwaitedLonger = 1.1;
constexpr double kAwaitedShorter = 0.5;
// Requests with a deadline wait for one without as long as they have so many times what all
// of them take.
constexpr int64_t kTimeToWait = 2;
// A batch is held back for requests with so many times less time than its own.
constexpr int64_t kTighter = 2;
// A batch that makes others late is committed to no longer than this before it begins.
constexpr Duration kLateCommitment = Duration::microseconds(250);
// Of more models that wait on a device, the requests of so many are cut into batches.
constexpr uint32_t kModelsCutMax = 32;
// What waits for an outcome that is overdue is looked at again after so long.
constexpr Duration kOverdueLook = Duration::microseconds(250);
// To a device that is further away, everything is sent ahead.
constexpr Duration kWayMax = Duration::microseconds(500);
// There, back, and as long again for what was ahead of it.
constexpr int64_t kWaysAwaited = 4;
// Stands in for a rate of zero.
constexpr double kGapRateMin = 1e-3;

bool sooner(const Batch& a, const Batch& b) {
  return std::tuple(a.latest, a.model, a.bucket, a.first) < std::tuple(b.latest, b.model, b.bucket, b.first);
}

}  // namespace

std::optional<Batch> BatchSelection::choose(DeviceId device, LaneInterval lanes, TimePoint now, TimePoint start,
                                            Duration best_effort_max) {
  lane_count_ = board_.cluster().device(device).lane_count();
  lanes_ = lanes;
  width_index_ = width_index(lanes.count, lane_count_);
  batches_.clear();
  held_until_ = TimePoint::infinite_future();
  const Duration margin = board_.cluster().margin(device);
  const double stands_for = board_.for_each_candidate(device, kModelsCutMax, {width_index_, start}, [&](ModelId model) {
    const ModelState& state = board_.model(model);
    const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, model);
    for (uint16_t b = 0; b < state.queues.size(); ++b) {
      const size_t rows = state.queues[b].with_deadline();
      if (rows == 0) continue;
      const BucketId bucket(b);
      const std::span<const Duration> execs = this->execs(device, model, bucket);
      if (waits_for_output(device, model, execs.front(), now, start)) continue;
      const DenseSizes dense = dense_sizes(
          sizes, [&](size_t i) { return execs[i]; }, rows);
      cut({model, bucket, state, state.queues[b], sizes, execs, dense, margin}, start);
    }
  });
  if (stands_for > 1) {  // what was not looked at takes its time, too
    for (Batch& batch : batches_) batch.cost = batch.cost.scaled(stands_for);
  }
  const Duration wanted = drop_what_is_too_much(start);
  if (const auto first = first_to_run(device, now, start, wanted)) {
    const std::optional<Batch> filler = best_effort(device, now, start, best_effort_max);
    if (filler && !filler->head.offline && can_wait(device, filler->cost, start, wanted)) return taken(*filler);
    fill_up(device, batches_[*first]);
    return batches_[*first];
  }
  const std::optional<Batch> rest = best_effort(device, now, start, best_effort_max);
  return rest ? std::optional(taken(*rest)) : std::nullopt;
}

// An outcome shows more, and comes before `ready` where OUTPUT was quicker.
bool BatchSelection::waits_for_output(DeviceId device, ModelId model, Duration exec, TimePoint now, TimePoint start) {
  const TimePoint ready = board_.cluster().device(device).output_allows(model, start, exec, now);
  const TimePoint look = ready - board_.lookahead(device);
  if (ready <= start || look <= now) return false;
  held_until_ = std::min(held_until_, look);
  return true;
}

bool BatchSelection::may_be_joined(DeviceId device, QueueKey key, size_t rows, TimePoint arrival, TimePoint now) {
  const DeviceModel& facts = board_.cluster().device(device);
  const Duration way = board_.cluster().usual_delivery(device);
  const TimePoint until = arrival + way * kWaysAwaited;
  if (facts.infers_outstanding(key.model) == 0 || now >= until || way > kWayMax) return false;
  if (exec(device, key.model, key.bucket, 0) > way) return false;
  if (rows >= board_.cluster().batch_sizes(device, key.model).back()) return false;
  held_until_ = std::min(held_until_, until);
  return true;
}

// Requests of the chosen batch's own queue have moved up since.
std::optional<Batch> BatchSelection::next_after(const Batch& chosen, DeviceId device, TimePoint start) const {
  const TimePoint end = start + exec(device, chosen.model, chosen.bucket, chosen.batch_index);
  const Batch* next = nullptr;
  for (size_t i = 0; i < batches_.size(); ++i) {
    const Batch& batch = batches_[i];
    const bool same_queue = batch.model == chosen.model && batch.bucket == chosen.bucket;
    if (dropped_[i] || same_queue || batch.latest < end || (next != nullptr && !sooner(batch, *next))) continue;
    next = &batch;
  }
  if (next == nullptr) return std::nullopt;
  Batch found = *next;
  begin_with_first_equal(found);
  fill_up(device, found);
  return found;
}

void BatchSelection::on_sent(const Batch& batch, DeviceId device) {
  if (BatchWait* const wait = find_wait({batch.model, batch.bucket})) wait->sent(device, batch.rows);
}

void BatchSelection::on_answered(QueueKey key, DeviceId device, TimePoint now) {
  if (BatchWait* const wait = find_wait(key)) wait->answered(device, now);
}

BatchWait* BatchSelection::find_wait(QueueKey key) {
  if (key.model.value() >= batch_waits_.size()) return nullptr;
  std::vector<BatchWait>& waits = batch_waits_[key.model.value()];
  return key.bucket.value() < waits.size() ? &waits[key.bucket.value()] : nullptr;
}

// ---- Batches ----

// From the largest size down: a large batch begins behind the requests that have
// no time for it, which are left to smaller ones.
void BatchSelection::cut(const Queue& queue, TimePoint start) {
  size_t end = queue.requests.with_deadline();
  for (uint32_t k = queue.dense.size(); k-- > 0 && end > 0;) {
    if (k > 0 && queue.sizes[queue.dense[k - 1]] >= end) continue;  // one of the smaller ones will do
    const size_t begin = queue.requests.first_due_from(start + queue.execs[queue.dense[k]] + queue.margin);
    if (begin >= end || !worth_running(queue, k, end - begin)) continue;
    cut_range(queue, begin, end, k);
    end = begin;
  }
}

// All of [begin, end) has time for a batch of this size, and so for smaller ones.
void BatchSelection::cut_range(const Queue& queue, size_t begin, size_t end, uint32_t dense_max) {
  const size_t batches_max = batches_.size() + kBatchesPerRangeMax;
  for (uint32_t k = dense_max + 1; k-- > 0 && begin < end;) {
    const uint32_t batch_index = queue.dense[k];
    while (begin < end && batches_.size() < batches_max && worth_running(queue, k, end - begin)) {
      const size_t rows = std::min<size_t>(end - begin, queue.sizes[batch_index]);
      add(queue, batch_index, begin, rows);
      begin += rows;
    }
  }
}

// A batch is worth it if it is full, or serves its rows faster than batches of the
// next smaller size would; or if a plan has it, which what is left of its rows would upset.
bool BatchSelection::worth_running(const Queue& queue, uint32_t dense, size_t rows) const {
  const uint32_t batch_index = queue.dense[dense];
  if (rows >= queue.sizes[batch_index] || dense == 0) return true;
  const uint32_t next_smaller = queue.dense[dense - 1];
  const int64_t smaller = queue.sizes[next_smaller];
  if (static_cast<int64_t>(rows) <= smaller) return false;
  if (crowded_ && board_.fills_batches(queue.model) && batch_index <= board_.expected_size(queue.model, queue.sizes)) {
    return true;
  }
  return queue.execs[batch_index] * smaller < queue.execs[next_smaller] * static_cast<int64_t>(rows);
}

void BatchSelection::add(const Queue& queue, uint32_t batch_index, size_t first, size_t rows) {
  const Duration exec = queue.execs[batch_index];
  batches_.push_back(
      {.latest = queue.requests[first].deadline - exec - queue.margin,
       .cost = exec / (lane_count_ / lanes_.count) / std::max<int64_t>(queue.state.holders.size(), 1),
       .density = queue.state.weight * static_cast<double>(rows) / static_cast<double>(exec.nanoseconds()),
       .keeps_share = board_.keeps_share(queue.model),
       .model = queue.model,
       .bucket = queue.bucket,
       .batch_index = batch_index,
       .first = static_cast<uint32_t>(first),
       .rows = static_cast<uint32_t>(rows)});
}

// ---- The choice ----

Duration BatchSelection::drop_what_is_too_much(TimePoint start) {
  if (batches_.size() > kBatchesMax) {
    std::nth_element(batches_.begin(), batches_.begin() + kBatchesMax, batches_.end(), sooner);
    batches_.resize(kBatchesMax);
  }
  dropped_.assign(batches_.size(), false);
  Duration all;
  for (const Batch& batch : batches_) all += batch.cost;
  const auto first = std::min_element(batches_.begin(), batches_.end(), sooner);
  if (first == batches_.end() || start + all <= first->latest) {
    // Mostly so: then nothing is dropped, and only the first of them matters.
    overloaded_ = false;
    if (first != batches_.end()) std::iter_swap(batches_.begin(), first);
    return all;
  }
  std::sort(batches_.begin(), batches_.end(), sooner);
  overloaded_ = true;
  kept_.clear();
  const auto denser = [&](uint32_t a, uint32_t b) {
    return std::tuple(batches_[a].keeps_share, batches_[a].density, a) >
           std::tuple(batches_[b].keeps_share, batches_[b].density, b);
  };
  Duration total;
  for (uint32_t i = 0; i < batches_.size(); ++i) {
    const bool fits = start + total <= batches_[i].latest;
    kept_.push_back(i);
    std::push_heap(kept_.begin(), kept_.end(), denser);
    total += batches_[i].cost;
    if (fits) continue;
    std::pop_heap(kept_.begin(), kept_.end(), denser);
    dropped_[kept_.back()] = true;
    total -= batches_[kept_.back()].cost;
    kept_.pop_back();
  }
  return total;
}

// ---- What is held back ----

std::optional<size_t> BatchSelection::first_to_run(DeviceId device, TimePoint now, TimePoint start, Duration wanted) {
  while (true) {
    std::optional<size_t> first;
    for (size_t i = 0; i < batches_.size(); ++i) {
      if (!dropped_[i] && (!first || sooner(batches_[i], batches_[*first]))) first = i;
    }
    if (!first) return first;
    if (overloaded_) first = least_growing(device, now, start);
    begin_with_first_equal(batches_[*first]);
    if (!hold_back(device, batches_[*first], now, start, wanted)) return first;
    dropped_[*first] = true;
  }
}

// An EXEC serves more where its rows are many, and a full batch gains nothing by waiting. None
// is put off for one that had more time from the beginning: requests of its kind that are yet
// to come would be late for that.
size_t BatchSelection::least_growing(DeviceId device, TimePoint now, TimePoint start) const {
  size_t chosen = batches_.size();
  double least = std::numeric_limits<double>::infinity();
  Duration slack = Duration::max();     // by which all those before could be put off
  Duration shortest = Duration::max();  // SLO of those before
  Duration before;
  for (size_t i = 0; i < batches_.size() && slack > Duration() && least > 0; ++i) {
    if (dropped_[i]) continue;
    const Batch& batch = batches_[i];
    const Duration exec = this->exec(device, batch.model, batch.bucket, batch.batch_index);
    const RequestQueue::Entry& head = board_.model(batch.model).queues[batch.bucket.value()][batch.first];
    const Duration slo = head.deadline - head.place.arrival;
    const bool may_go_first = chosen == batches_.size() || (exec <= slack && slo <= shortest);
    const double growth = may_go_first ? growth_of(device, batch, now, start) : least;
    if (growth < least) {
      least = growth;
      chosen = i;
    }
    shortest = std::min(shortest, slo);
    slack = std::min(slack, batch.latest - start - before);
    before += batch.cost;
  }
  return chosen;
}

double BatchSelection::growth_of(DeviceId device, const Batch& batch, TimePoint now, TimePoint start) const {
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, batch.model);
  const std::span<const Duration> execs = this->execs(device, batch.model, batch.bucket);
  const DenseSizes dense = dense_sizes(sizes, [&](size_t i) { return execs[i]; });
  const uint32_t full = batch.rows < sizes[batch.batch_index] ? batch.batch_index : batch.batch_index + 1;
  const auto larger = std::ranges::lower_bound(dense, full);
  if (larger == dense.end()) return 0;
  const Duration time = latest_start(device, batch, *larger) - start;
  return time <= Duration() ? 0 : board_.model(batch.model).rate.at(now) * time.to_seconds();
}

// All its requests are then due no later than they were, and none before the first.
void BatchSelection::begin_with_first_equal(Batch& batch) const {
  const RequestQueue& queue = board_.model(batch.model).queues[batch.bucket.value()];
  const TimePoint deadline = queue[batch.first].deadline;
  if (batch.first == 0 || queue[batch.first - 1].deadline < deadline) return;
  batch.first = static_cast<uint32_t>(queue.first_due_from(deadline));
}

bool BatchSelection::hold_back(DeviceId device, Batch& batch, TimePoint now, TimePoint start, Duration wanted) {
  const ModelState& state = board_.model(batch.model);
  const Duration exec = this->exec(device, batch.model, batch.bucket, batch.batch_index);
  if (!overloaded_) {
    const size_t rows = state.queues[batch.bucket.value()].with_deadline() - batch.first;
    const TimePoint latest = batch.latest - (wanted - batch.cost) - board_.lookahead(device);
    if (delayed(device, {batch.model, batch.bucket}, batch.first, rows, now, start, latest)) return true;
  }
  const double lost = this->lost(device, batch.model, lanes_, start + exec, now);
  if (lost < kLostMin * batch.rows) return false;
  if (board_.divides(device)) {
    if (take_fewer_lanes(device, batch, now, start, lost * kWorthDividing)) return false;
    if (wait_for_lane(device, batch, now, start)) return true;
  }
  if (lanes_.count == lane_count_ && board_.modest(batch.model) &&
      lost_in_parts(device, batch, now, start) < lost * kWorthDividing) {
    const BatchParts::Unfinished* const other = parts_.unfinished(device);
    batch.in_parts = other == nullptr;
    if (batch.in_parts) return false;
    if (!other->offline() && start + parts_.left(device) <= batch.latest) return true;  // until that is over
  }
  if (const TimePoint late = start - std::max(kLateCommitment, board_.lookahead(device)); now < late) {
    held_until_ = std::min(held_until_, late);
    return true;
  }
  Choice choice = best_size(device, batch, now, start);
  if (!choice.run) {
    const TimePoint until = std::min(choice.worth_it, batch.latest - wanted);
    if (!board_.modest(batch.model)) {
      return wait_for_rows(device, batch, now, start, until) || lost > state.weight * batch.rows;
    }
    const bool may_grow = fewest_late(device, batch, now, start, choice);
    if (may_grow && wait_for_rows(device, batch, now, start, until)) return true;
  }
  awaited(batch.model).rows = 0;
  batch.batch_index = choice.batch_index;
  batch.rows = choice.rows;
  batch.latest = latest_start(device, batch, choice.batch_index);
  const Duration chosen = this->exec(device, batch.model, batch.bucket, batch.batch_index);
  batch.cost = chosen / std::max<int64_t>(state.holders.size(), 1);
  return false;
}

double BatchSelection::lost(DeviceId device, ModelId model, LaneInterval taken, TimePoint end, TimePoint now) {
  const TimePoint until = std::min(end, first_free(device, taken, now));
  return blocking_.lost(device, std::max(until - now, Duration()), board_.model(model).slo / kTighter, now);
}

TimePoint BatchSelection::first_free(DeviceId device, LaneInterval but, TimePoint now) const {
  const DeviceModel& facts = board_.cluster().device(device);
  TimePoint first = TimePoint::infinite_future();
  for (uint32_t lane = 0; lane < lane_count_; ++lane) {
    if (!but.contains(lane)) first = std::min(first, facts.exec_available(now, {lane, 1}));
  }
  return first;
}

bool BatchSelection::take_fewer_lanes(DeviceId device, Batch& batch, TimePoint now, TimePoint start, double lost_max) {
  for (uint32_t width = std::bit_floor(lanes_.count) / (std::has_single_bit(lanes_.count) ? 2 : 1); width > 0;
       width /= 2) {
    const ExecShape shape{device, batch.model, batch.bucket, batch.batch_index, width_index(width, lane_count_)};
    const Duration exec = board_.cluster().durations().exec(shape);
    const TimePoint latest = latest_start(device, batch, exec);
    if (latest < start) return false;
    const LaneInterval taken{lanes_.first, width};
    if (lost(device, batch.model, taken, start + exec, now) >= lost_max) continue;
    batch.lanes_max = width;
    batch.latest = latest;
    return true;
  }
  return false;
}

bool BatchSelection::wait_for_lane(DeviceId device, const Batch& batch, TimePoint now, TimePoint start) {
  const TimePoint other = first_free(device, lanes_, now);
  if (other <= start || other > batch.latest) return false;
  held_until_ = std::min(held_until_, std::max(other - board_.lookahead(device), now + kOverdueLook));
  return true;
}

double BatchSelection::lost_in_parts(DeviceId device, const Batch& batch, TimePoint now, TimePoint start) {
  const ExecShape shape{device, batch.model, batch.bucket, batch.batch_index};
  if (!parts_.may_divide(device) || start + parts_.time_between(shape) > batch.latest) {
    return std::numeric_limits<double>::infinity();
  }
  const Duration part = parts_.longest_part(shape);
  const Duration exec = this->exec(device, batch.model, batch.bucket, batch.batch_index);
  const double parts = std::max(1.0, exec.to_seconds() / part.to_seconds());
  return parts * blocking_.lost(device, start + part - now, board_.model(batch.model).slo / kTighter, now);
}

Duration BatchSelection::batch_delay(DeviceId device, QueueKey key, const RequestQueue::Entry& head,
                                     TimePoint now) const {
  if (const std::optional<Duration>& asked = board_.batch_delay(key.model)) return *asked;
  return worthwhile_delay({.sizes = board_.cluster().batch_sizes(device, key.model),
                           .execs = execs(device, key.model, key.bucket),
                           .rate = board_.model(key.model).rate.at(now),
                           .time = head.deadline - head.place.arrival});
}

bool BatchSelection::delayed(DeviceId device, QueueKey key, size_t first, size_t rows, TimePoint now, TimePoint start,
                             TimePoint latest) {
  const auto [model, bucket] = key;
  const std::optional<Duration>& asked = board_.batch_delay(model);
  const RequestQueue::Entry& head = board_.model(model).queues[bucket.value()][first];
  if (asked == Duration() || (!asked && head.deadline.is_infinite())) return false;
  if (model.value() >= batch_waits_.size()) batch_waits_.resize(model.value() + 1);
  std::vector<BatchWait>& waits = batch_waits_[model.value()];
  if (bucket.value() >= waits.size()) waits.resize(bucket.value() + 1);
  BatchWait& wait = waits[bucket.value()];
  if (!wait.is_of(head.id)) wait.begin({head.id, head.place.arrival, batch_delay(device, key, head, now)}, rows, now);
  // While the device computes, rows may join at no cost. Clients that its outcome answers may ask again, so that is
  // awaited; the outcome of an offline batch, which may be unfinished for long, is not.
  const DeviceModel& facts = board_.cluster().device(device);
  const bool answers = wait.computes_on(device) && facts.infers_outstanding(model) > 0 && !board_.divides(device);
  const TimePoint commit =
      answers && wait.waits() ? std::max(start, now + kOverdueLook) : start - board_.cluster().lookahead(device);
  const TimePoint until = std::max(wait.look(rows, now).value_or(now), commit);
  const bool full = rows >= board_.cluster().batch_sizes(device, model).back();
  if (full || until <= now || start >= latest) return false;
  held_until_ = std::min({held_until_, until, latest});
  return true;
}

TimePoint BatchSelection::latest_start(DeviceId device, const Batch& batch, Duration exec) const {
  const RequestQueue& queue = board_.model(batch.model).queues[batch.bucket.value()];
  return queue[batch.first].deadline - exec - board_.cluster().margin(device);
}

// The price of a row rises from nothing to its weight while it waits. So a batch runs early
// where it makes few late, and late where it makes many; and a device that cannot keep up
// comes to run the sizes that serve the most for their time. What a larger size would serve
// with fewer late for each row, as soon as more have come, waits for that. A full batch of the
// size that makes the fewest late for each row has nothing to wait for.
BatchSelection::Choice BatchSelection::best_size(DeviceId device, const Batch& batch, TimePoint now, TimePoint start) {
  const ModelState& state = board_.model(batch.model);
  const RequestQueue& queue = state.queues[batch.bucket.value()];
  const std::span<const Duration> execs = this->execs(device, batch.model, batch.bucket);
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, batch.model);
  const auto queued = static_cast<uint32_t>(queue.with_deadline() - batch.first);
  const TimePoint arrival = queue[batch.first].place.arrival;
  const auto largest = static_cast<uint32_t>(sizes.size()) - 1;
  const Duration longest_wait =
      std::max(latest_start(device, batch, largest) - arrival, (queue[batch.first].deadline - arrival) / 2);
  const double price = state.weight * std::min(1.0, (start - arrival).to_seconds() / longest_wait.to_seconds());
  const double gap = state.holders.size() / std::max(state.rate.at(now), kGapRateMin);
  Choice best;
  double most = 0;
  double least_lost = std::numeric_limits<double>::infinity();  // for each row
  for (uint32_t i = largest + 1; i-- > 0;) {
    const TimePoint latest = latest_start(device, batch, i);
    if (latest < start) continue;
    const uint32_t rows = std::min(queued, sizes[i]);
    const double lost = blocking_.lost(device, start - now + execs[i], state.slo / kTighter, now);
    const bool will_be_full = start + Duration::from_seconds(gap * (sizes[i] - rows)) <= latest;
    const double least_before = least_lost;
    if (will_be_full) least_lost = std::min(least_lost, lost / sizes[i]);
    const double worth = state.weight * rows;
    if ((i > 0 && rows <= sizes[i - 1]) || lost >= worth || lost > least_lost * rows) continue;
    best.worth_it = std::min(best.worth_it, arrival + longest_wait.scaled(lost / worth));
    const double value = (price * rows - lost) / execs[i].to_seconds();
    const bool full_and_least = rows == sizes[i] && lost < least_before * rows;
    if (value <= most && !(most == 0 && full_and_least)) continue;
    most = std::max(value, 0.0);
    best.run = true;
    best.batch_index = i;
    best.rows = rows;
  }
  return best;
}

bool BatchSelection::fewest_late(DeviceId device, const Batch& batch, TimePoint now, TimePoint start, Choice& choice) {
  const ModelState& state = board_.model(batch.model);
  const std::span<const Duration> execs = this->execs(device, batch.model, batch.bucket);
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, batch.model);
  const auto queued = static_cast<uint32_t>(state.queues[batch.bucket.value()].with_deadline() - batch.first);
  double least = std::numeric_limits<double>::infinity();  // for each row
  uint32_t wanted = 1;
  choice = {.run = true, .batch_index = 0, .rows = 1};
  for (uint32_t i = 0; i < sizes.size() && (i == 0 || latest_start(device, batch, i) >= start); ++i) {
    const double lost = blocking_.lost(device, start - now + execs[i], state.slo / kTighter, now) / sizes[i];
    if (lost >= least) continue;
    least = lost;
    wanted = sizes[i];
    if (queued < wanted) continue;
    choice.batch_index = i;
    choice.rows = wanted;
  }
  return queued < wanted;
}

// Until more may have come, or there is just time for one more row or, at `until`, for all that
// is wanted.
bool BatchSelection::wait_for_rows(DeviceId device, const Batch& batch, TimePoint now, TimePoint start,
                                   TimePoint until) {
  const ModelState& state = board_.model(batch.model);
  const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, batch.model);
  const auto queued = static_cast<uint32_t>(state.queues[batch.bucket.value()].with_deadline() - batch.first);
  Awaited& awaited = this->awaited(batch.model);
  if (awaited.rows > 0 && queued > awaited.rows) {
    awaited.gaps = std::min(kGapsAwaitedMax, awaited.gaps * kAwaitedLonger);
  }
  const uint32_t rows_before = std::exchange(awaited.rows, 0);
  uint32_t next = batch.batch_index;
  while (next + 1 < sizes.size() && sizes[next] <= batch.rows) ++next;
  const TimePoint last_row =
      state.rate.last() + Duration::from_seconds(awaited.gaps / std::max(state.rate.at(now), kGapRateMin));
  until = std::min({until, latest_start(device, batch, next) - board_.lookahead(device), last_row});
  if (start < until) {
    awaited.rows = queued;
    held_until_ = std::min(held_until_, until);
    return true;
  }
  if (rows_before == queued && until == last_row) {
    awaited.gaps = std::max(kGapsAwaitedMin, awaited.gaps * kAwaitedShorter);
  }
  return false;
}

BatchSelection::Awaited& BatchSelection::awaited(ModelId model) {
  if (model.value() >= awaited_.size()) awaited_.resize(model.value() + 1, {kGapsAwaitedMax, 0});
  return awaited_[model.value()];
}

// What is kept can be met after an EXEC of `cost` here, or while it runs elsewhere; with time
// to spare, since the errors of many predictions add up, and to wait gains nothing in all.
bool BatchSelection::can_wait(DeviceId device, Duration cost, TimePoint start, Duration wanted) const {
  for (size_t i = 0; i < batches_.size(); ++i) {
    const bool waits = !dropped_[i] && batches_[i].latest < start + cost + wanted * kTimeToWait;
    if (waits && time_elsewhere(device, batches_[i], start) < wanted * kTimeElsewhere) return false;
  }
  return true;
}

Duration BatchSelection::time_elsewhere(DeviceId device, const Batch& batch, TimePoint start) const {
  const TimePoint latest = batch.latest - board_.cluster().margin(device);
  Duration time;
  uint32_t looked = 0;
  const BitSet& holders = board_.model(batch.model).holders;
  for (auto other = holders.next(0); other && looked < kBatchHoldersMax; other = holders.next(*other + 1), ++looked) {
    if (*other == device.value()) continue;
    time += std::max(Duration(), latest - board_.cluster().device(DeviceId(*other)).lane_available(start));
  }
  return time;
}

// Some turns go to the request that has waited longest, so that none waits for ever; but
// offline requests wait for all others.
bool BatchSelection::best_effort_goes_before(double density, const RequestQueue::Place& head,
                                             const Batch& other) const {
  if (head.offline != other.head.offline) return other.head.offline;
  if (best_effort_batches_ % kOldestEvery == 0) return std::pair(other.head, density) > std::pair(head, other.density);
  return std::pair(density, other.head) > std::pair(other.density, head);
}

std::optional<Batch> BatchSelection::best_effort(DeviceId device, TimePoint now, TimePoint start,
                                                 Duration several_rows_max) {
  std::optional<Batch> best;
  if (!board_.best_effort_waits()) return best;
  board_.waiting().for_each_common(board_.loaded(device), [&](uint32_t id) {
    const ModelState& state = board_.model(ModelId(id));
    const std::span<const uint32_t> sizes = board_.cluster().batch_sizes(device, ModelId(id));
    for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
      const RequestQueue& queue = state.queues[bucket];
      const size_t first = queue.with_deadline();
      const size_t queued = queue.best_effort() > 0 ? queue.best_effort() : queue.offline();
      if (queued > 0 &&
          waits_for_output(device, ModelId(id), exec(device, ModelId(id), BucketId(bucket), 0), now, start)) {
        continue;
      }
      if (queue.best_effort() > 0 &&
          may_be_joined(device, {ModelId(id), BucketId(bucket)}, queued, queue[first].place.arrival, now)) {
        continue;
      }
      if (queue.best_effort() > 0 &&
          delayed(device, {ModelId(id), BucketId(bucket)}, first, queued, now, start, TimePoint::infinite_future())) {
        continue;
      }
      for (uint32_t i = 0; i < sizes.size() && queued > 0; ++i) {
        const Duration exec = this->exec(device, ModelId(id), BucketId(bucket), i);
        // Never for padding alone, whatever was measured: the same rows always get the same kernels.
        if (i > 0 && (queued <= sizes[i - 1] || exec > several_rows_max)) break;
        const size_t rows = std::min<size_t>(queued, sizes[i]);
        const double density = state.weight * static_cast<double>(rows) / static_cast<double>(exec.nanoseconds());
        if (best && !best_effort_goes_before(density, queue[first].place, *best)) continue;
        best = Batch{.latest = TimePoint::infinite_future(),
                     .cost = exec,
                     .density = density,
                     .model = ModelId(id),
                     .bucket = BucketId(bucket),
                     .batch_index = i,
                     .first = static_cast<uint32_t>(first),
                     .rows = static_cast<uint32_t>(rows),
                     .head = queue[first].place};
      }
    }
  });
  return best;
}

// It is run: the next one to choose is another.
const Batch& BatchSelection::taken(const Batch& best_effort) {
  ++best_effort_batches_;
  return best_effort;
}

// Rows that would be padding anyway go to the requests that follow.
void BatchSelection::fill_up(DeviceId device, Batch& batch) const {
  const RequestQueue& queue = board_.model(batch.model).queues[batch.bucket.value()];
  const uint32_t size = board_.cluster().batch_sizes(device, batch.model)[batch.batch_index];
  batch.rows = std::min<uint32_t>(size, static_cast<uint32_t>(queue.size()) - batch.first);
}

}  // namespace foliot::foliot_policy
