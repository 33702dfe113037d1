#include "control/policies/foliot/board.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>

#include "control/controller/exec_of_rows.h"

namespace foliot::foliot_policy {
namespace {

// Of more devices than these, the backlogs are much alike when it matters: a model that more
// of them hold is wide.
constexpr uint32_t kBoardHoldersMax = 8;
// After changes of so many models, or of this part of those that wait on a device, all that
// waits there is evaluated again at the next query: so a change costs little where there is
// none.
constexpr size_t kChangesMax = 16;
// Of so many models that wait on a device, what is due until an instant is counted; of
// others it is estimated.
constexpr uint32_t kModelsCountedMax = 32;
constexpr size_t kChangedPartMax = 2;
// Changes of more than kChangesMax models are taken in together, after so long.
constexpr Duration kManyChangesInterval = Duration::milliseconds(2);
// How often the rows of a model's batches are estimated anew.
constexpr Duration kExpectedInterval = Duration::milliseconds(100);
// Of what is measured in such an interval, so much of a model's recent rate, and of how uneven its arrivals are: the
// variance of their number over its mean. One interval counts no more than kDispersionMax, lest one change of the rate
// be taken for many.
constexpr double kRecentGain = 0.1;
constexpr double kDispersionGain = 0.05;
constexpr double kDispersionMax = 64;
// Batches are full whichever requests are refused where their rows, and a few more, come within the time that they have
// even if so many standard deviations fewer do; from then on, as long as not a fifth too few do, since to change
// between both rules costs most.
constexpr double kDeviations = 1.4;
constexpr double kFull = 1.05;
constexpr double kStillFull = 0.8;
// More requests wait than are of use where they are so many times the densest size.
constexpr double kSurplus = 1.5;
// On half of the lanes a batch that never ran there is assumed to take so many times as long.
constexpr double kHalfAssumed = 1.5;

}  // namespace

void Board::on_model_added(const ModelInfo& model) {
  if (model.id.value() >= models_.size()) {
    models_.resize(model.id.value() + 1);
    periods_.resize(model.id.value() + 1);
    batch_delays_.resize(model.id.value() + 1);
    heads_.resize(model.id.value() + 1);
    widths_run_.resize(model.id.value() + 1);
    expected_.resize(model.id.value() + 1);
  }
  heads_[model.id.value()] = Head{TimePoint::infinite_future(), model.id};
  periods_[model.id.value()] = ArrivalPeriod();
  widths_run_[model.id.value()] = 0;
  expected_[model.id.value()] = Expected();
  shares_.forget(model.id);
  for (uint16_t kind = 0; kind < cluster_.kind_count(); ++kind) {
    const Runnable* const runnable = cluster_.runnable_of(KindId(kind), model.id);
    if (runnable == nullptr) continue;
    Duration& longest = longest_exec(KindId(kind));
    for (const std::vector<Duration>& seeds : runnable->seed_exec) {
      for (const Duration exec : seeds) longest = std::max(longest, exec);
    }
  }
  models_[model.id.value()] =
      ModelState{.queues = std::vector<RequestQueue>(model.buckets.size()), .weight = model.weight};
  batch_delays_[model.id.value()] = model.batch_delay;
  absent_.insert(model.id.value());
}

void Board::on_model_removed(ModelId model) {
  for (BitSet& models : loaded_) models.erase(model.value());
  known_.clear();
  if (wide(model)) work_changed(model);
  models_[model.value()].holders.clear();
  models_[model.value()].served = false;
  absent_.erase(model.value());
  tight_.erase(model.value());
}

void Board::load_sent(ModelId id) {
  ++model(id).loading;
  placement_changed(id);
}

void Board::load_over(DeviceId device, ModelId id) {
  ModelState& state = model(id);
  state.loading -= std::min<uint32_t>(state.loading, 1);
  set_loaded(device, id, holds(device, id));
}

std::vector<ModelId> Board::on_device_changed(DeviceId device) {
  const std::vector<ModelId> now =
      cluster_.device(device).up() ? cluster_.device(device).loaded() : std::vector<ModelId>();
  BitSet changed;
  loaded(device).for_each([&](uint32_t id) { changed.insert(id); });
  for (const ModelId id : now) changed.insert(id.value());
  std::vector<ModelId> models;
  changed.for_each([&](uint32_t id) {
    models.emplace_back(id);
    set_loaded(device, models.back(), holds(device, models.back()));
  });
  return models;
}

void Board::exec_over(DeviceId device, ModelId id, uint32_t width) {
  widths_run_[id.value()] |= width_bit(width);
  if (cluster_.has_model(id)) {  // it may have larger batch sizes than when it was added
    const auto largest = static_cast<uint32_t>(cluster_.batch_sizes(device, id).size()) - 1;
    Duration& longest = longest_exec(cluster_.device(device).kind());
    longest = std::max(longest, cluster_.durations().exec({device, id, BucketId(0), largest}));
  }
  if (known_.contains(device.value()) && waiting_.contains(id.value())) work_changed(device, id);
}

Duration Board::lane_exec(const ExecShape& shape) const {
  const Duration expected = cluster_.durations().exec(shape);
  const uint32_t lanes = cluster_.device(shape.device).lane_count();
  const uint32_t width = width_at(shape.width_index, lanes);
  if (has_run(shape.model, width)) return expected;
  const ExecShape one_row{shape.device, shape.model, shape.bucket, 0, shape.width_index};
  if (cluster_.durations().exec(one_row) > model(shape.model).slo) return expected;  // it would not be tried
  const double halvings = std::log2(static_cast<double>(lanes) / width);
  const Duration on_all =
      cluster_.durations().exec({shape.device, shape.model, shape.bucket, shape.batch_index, /*width_index=*/0});
  return std::min(expected, on_all.scaled(std::pow(kHalfAssumed, halvings)));
}

void Board::exec_sent(DeviceId device, ModelId id, BucketId bucket, uint32_t batch_index, uint32_t rows,
                      TimePoint now) {
  std::array<ExecDemand::Exec, ExecDemand::kWidthsMax> exec;
  const uint32_t widths = width_count(cluster_.device(device).lane_count());
  for (uint32_t i = 0; i < widths; ++i) {
    const ExecShape shape{device, id, bucket, batch_index, i};
    exec[i].now = lane_exec(shape);
    exec[i].grown = std::min(exec[i].now, grown_exec(shape, rows, now));
  }
  exec_demands_.resize(std::max<size_t>(exec_demands_.size(), device.value() + 1));
  exec_demands_[device.value()].sent(rows, std::span(exec).first(widths));
}

Duration Board::grown_exec(const ExecShape& shape, uint32_t rows, TimePoint now) const {
  const ModelState& state = model(shape.model);
  const std::span<const uint32_t> sizes = cluster_.batch_sizes(shape.device, shape.model);
  if (state.slo == Duration::max()) return lane_exec(shape);
  const double rate = state.rate.at(now) / std::max<double>(1, static_cast<double>(state.holders.size()));
  for (auto i = static_cast<uint32_t>(sizes.size()); --i > shape.batch_index;) {
    if (rate * state.slo.to_seconds() < sizes[i]) continue;
    const Duration exec = lane_exec({shape.device, shape.model, shape.bucket, i, shape.width_index});
    if (Duration::from_seconds(sizes[i] / rate) + exec <= state.slo) return exec * rows / sizes[i];
  }
  return lane_exec(shape);
}

void Board::note_demand(const ModelState& state, TimePoint now) {
  if (state.holders.empty()) return;
  uint64_t turn = arrivals_++ % state.holders.size();
  auto device = state.holders.next(0);
  for (; turn > 0; --turn) device = state.holders.next(*device + 1);
  if (*device < exec_demands_.size()) exec_demands_[*device].arrived(now);
}

void Board::set_loaded(DeviceId device, ModelId id, bool loaded) {
  loaded_.resize(std::max<size_t>(loaded_.size(), device.value() + 1));
  work_changed(id);
  if (loaded && model(id).served) {
    loaded_[device.value()].insert(id.value());
    model(id).holders.insert(device.value());
  } else {
    loaded_[device.value()].erase(id.value());
    model(id).holders.erase(device.value());
  }
  work_changed(id);
  placement_changed(id);
}

void Board::placement_changed(ModelId id) {
  if (model(id).served && model(id).holders.empty() && model(id).loading == 0) {
    absent_.insert(id.value());
  } else {
    absent_.erase(id.value());
  }
}

void Board::note_arrival(const Request& request, TimePoint now) {
  ModelState& state = model(request.model);
  state.rate.record(now);
  if (!exec_demands_.empty()) note_demand(state, now);
  periods_[request.model.value()].record(request.arrival);
  if (request.best_effort()) return;
  note_slo(request.model, request.deadline - request.arrival);
  ++expected_[request.model.value()].arrivals;
  if (now >= expected_[request.model.value()].until) {
    expect_rows(request.model, now);
    // Of models that are asked for no more, what was expected is looked at in turn.
    expect_cursor_ = expect_cursor_ + 1 < models_.size() ? expect_cursor_ + 1 : 0;
    if (models_[expect_cursor_].served && now >= expected_[expect_cursor_].until) {
      expect_rows(ModelId(expect_cursor_), now);
    }
  }
  note_share(request, now);
}

void Board::note_share(const Request& request, TimePoint now) {
  const ModelState& state = model(request.model);
  const std::optional<DeviceId> able =
      state.holders.empty() ? cluster_.first_able(request.model) : std::optional(DeviceId(*state.holders.next(0)));
  if (!able) return;
  const DeviceId device = *able;
  const KindId kind = cluster_.device(device).kind();
  const Expected& expected = expected_[request.model.value()];
  const uint32_t pages = cluster_.device(device).page_count() * cluster_.device_count(kind);
  shares_.on_request(request.model,
                     {.kind = kind,
                      .devices = cluster_.device_count(kind),
                      .weight = state.weight,
                      .device_time = work_of_rows(device, request.model, request.bucket, expected.rows) / expected.rows,
                      .patience = request.deadline - request.arrival,
                      .memory = static_cast<double>(cluster_.pages(device, request.model)) / std::max(pages, 1U)},
                     now);
}

void Board::expect_rows(ModelId id, TimePoint now) {
  const ModelState& state = model(id);
  Expected& expected = expected_[id.value()];
  const bool filled = expected.fills;
  expect_rate(id, now);
  if (state.holders.empty() || state.slo == Duration::max()) return;
  const DeviceId device(*state.holders.next(0));
  if (state.queues.size() == 1) {
    expect_growth(id, device, now);
    expected.fills = expect_full(id, device, filled, now);
  }
  const double each = grown_work(device, id, BucketId(0), 1).to_seconds() / expected.grown_rows;
  expected.density = state.weight / std::max(each, 1e-9);
}

void Board::expect_rate(ModelId id, TimePoint now) {
  Expected& expected = expected_[id.value()];
  const bool first = expected.looked_at == TimePoint();
  const double seconds = std::max(now - expected.looked_at, kExpectedInterval).to_seconds();
  const double measured = first ? 0 : expected.arrivals / seconds;
  const double before = expected.rate > 0 ? expected.rate : measured;
  const double deviation = first ? 0 : expected.arrivals - before * seconds;
  const double dispersion = std::min(deviation * deviation / std::max(before * seconds, 1.0), kDispersionMax);
  expected = {.rate = before + (measured - before) * kRecentGain,
              .dispersion = std::max(1.0, expected.dispersion + (dispersion - expected.dispersion) * kDispersionGain),
              .looked_at = now,
              .until = now + kExpectedInterval};
}

void Board::expect_growth(ModelId id, DeviceId device, TimePoint now) {
  const ModelState& state = model(id);
  Expected& expected = expected_[id.value()];
  const std::span<const uint32_t> sizes = cluster_.batch_sizes(device, id);
  const std::span<const Duration> execs = cluster_.durations().execs(device, id, BucketId(0), 0);
  const double rate = state.rate.at(now);
  const auto filled = [&](uint32_t i) {
    return 1 + rate * (state.slo - answer_time(device, id, BucketId(0), i)).to_seconds();
  };
  double next = 0;  // the least size that is not filled, or the largest that there is time for
  for (const uint32_t i : dense_sizes(sizes, [&](size_t size) { return execs[size]; })) {
    if (i > 0 && answer_time(device, id, BucketId(0), i) > state.slo) break;
    next = sizes[i];
    if (i > 0 && sizes[i] > filled(i)) break;
    expected.rows = sizes[i];
    expected.batch_index = i;
  }
  expected.grown_rows = std::clamp(filled(expected.batch_index), static_cast<double>(expected.rows), next);
  const auto each = [&](uint32_t i) { return execs[i].to_seconds() / std::min<double>(expected.grown_rows, sizes[i]); };
  for (uint32_t i = 1; i < sizes.size(); ++i) {
    if (each(i) < each(expected.grown_index)) expected.grown_index = i;
  }
}

// Of the sizes that there is time for.
uint32_t Board::densest_size(ModelId id, DeviceId device, Duration slo) const {
  const std::span<const uint32_t> sizes = cluster_.batch_sizes(device, id);
  const std::span<const Duration> execs = cluster_.durations().execs(device, id, BucketId(0), 0);
  uint32_t best = 0;
  for (uint32_t i = 1; i < sizes.size() && answer_time(device, id, BucketId(0), i) < slo; ++i) {
    if (execs[i] * sizes[best] <= execs[best] * sizes[i]) best = i;
  }
  return best;
}

bool Board::expect_full(ModelId id, DeviceId device, bool before, TimePoint now) const {
  const ModelState& state = model(id);
  const uint32_t best = densest_size(id, device, state.slo);
  const double wait = (state.slo - answer_time(device, id, BucketId(0), best)).to_seconds();
  const double rate = std::max(state.rate.at(now), expected_[id.value()].rate);
  const double mean = std::max(0.0, rate * wait);
  const double few = 1 + mean - kDeviations * std::sqrt(expected_[id.value()].dispersion * mean);
  return few >= (before ? kStillFull : kFull) * cluster_.batch_sizes(device, id)[best];
}

bool Board::full_batch_waits(DeviceId device, ModelId id, size_t rows) const {
  const uint32_t best = densest_size(id, device, model(id).slo);
  return static_cast<double>(rows) >= kSurplus * cluster_.batch_sizes(device, id)[best];
}

void Board::note_slo(ModelId id, Duration slo) {
  model(id).slo = slo;
  Duration longest;
  for (uint16_t kind = 0; kind < longest_execs_.size(); ++kind) {
    if (cluster_.runnable_of(KindId(kind), id) != nullptr) longest = std::max(longest, longest_execs_[kind]);
  }
  if (slo < longest * 2 + cluster_.least_margin()) {
    tight_.insert(id.value());
  } else {
    tight_.erase(id.value());
  }
}

Duration& Board::longest_exec(KindId kind) {
  if (kind.value() >= longest_execs_.size()) longest_execs_.resize(kind.value() + 1);
  return longest_execs_[kind.value()];
}

void Board::add(const Request& request) {
  ModelState& state = model(request.model);
  state.queues[request.bucket.value()].add(request);
  ++state.queued;
  waiting_.insert(request.model.value());
  if (request.best_effort()) ++best_effort_;
  update_head(request.model);
  work_changed(request.model);
}

void Board::remove(const Request& request) {
  RequestQueue& queue = model(request.model).queues[request.bucket.value()];
  const size_t size = queue.size();
  const size_t best_effort = queue.size() - queue.with_deadline();
  queue.remove(request);
  queue_shrank(request.model, queue, size, best_effort);
}

void Board::erase(ModelId id, BucketId bucket, size_t position, size_t count) {
  RequestQueue& queue = model(id).queues[bucket.value()];
  const size_t size = queue.size();
  const size_t best_effort = queue.size() - queue.with_deadline();
  queue.erase(position, count);
  queue_shrank(id, queue, size, best_effort);
}

void Board::queue_shrank(ModelId id, const RequestQueue& queue, size_t size_before, size_t best_effort_before) {
  ModelState& state = model(id);
  state.queued -= static_cast<uint32_t>(size_before - queue.size());
  best_effort_ -= best_effort_before - (queue.size() - queue.with_deadline());
  if (state.queued == 0) waiting_.erase(id.value());
  update_head(id);
  work_changed(id);
}

Duration Board::work(DeviceId device, ModelId id, TimePoint deadline) const {
  Duration total;
  const ModelState& state = model(id);
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket];
    const auto rows = static_cast<uint32_t>(
        deadline.is_infinite() ? queue.with_deadline() : queue.first_due_from(deadline + Duration::nanoseconds(1)));
    total += work_of_rows(device, id, BucketId(bucket), rows);
  }
  return total;
}

void Board::set_divides(DeviceId device, bool divides) {
  if (divides == this->divides(device)) return;
  if (divides) divided_.insert(device.value());
  if (!divides) divided_.erase(device.value());
  loaded(device).for_each([&](uint32_t model) { work_changed(ModelId(model)); });
}

Duration Board::work_of_rows(DeviceId device, ModelId id, BucketId bucket, uint32_t rows) const {
  const bool divided = divides(device);
  const std::span<const Duration> execs = cluster_.durations().execs(device, id, bucket, 0);
  return exec_of_rows(cluster_.batch_sizes(device, id), rows, [&](size_t i) {
    return divided ? least_share(device, id, bucket, static_cast<uint32_t>(i)) : execs[i];
  });
}

// More rows than are expected have come by chance: no more of them are, unless they fill the largest size.
Duration Board::grown_work(DeviceId device, ModelId id, BucketId bucket, size_t queued) const {
  const auto rows = static_cast<uint32_t>(queued);
  const double expected = expected_[id.value()].grown_rows;
  const uint32_t largest = cluster_.batch_sizes(device, id).back();
  if (rows == 0) return Duration();
  if (expected >= largest) return work_of_rows(device, id, bucket, (rows + largest - 1) / largest * largest);
  if (rows >= expected) return work_of_rows(device, id, bucket, rows);
  const auto fewer = static_cast<uint32_t>(expected);
  const Duration least = work_of_rows(device, id, bucket, fewer);
  return least + (work_of_rows(device, id, bucket, fewer + 1) - least).scaled(expected - fewer);
}

Duration Board::least_share(DeviceId device, ModelId id, BucketId bucket, uint32_t batch_index) const {
  const uint32_t lanes = cluster_.device(device).lane_count();
  Duration least = Duration::max();
  for (uint32_t i = 0; i < width_count(lanes); ++i) {
    const Duration exec = cluster_.durations().exec({device, id, bucket, batch_index, i});
    least = std::min(least, exec / (lanes / width_at(i, lanes)));
  }
  return least;
}

Duration Board::least_backlog(ModelId id, TimePoint deadline, TimePoint now) const {
  const BitSet& holders = model(id).holders;
  Duration least = Duration::max();
  uint32_t looked = 0;
  for (auto device = holders.next(0); device && looked < kBoardHoldersMax;
       device = holders.next(*device + 1), ++looked) {
    least = std::min(least, backlog_until(DeviceId(*device), deadline, now));
  }
  return least;
}

Duration Board::backlog(DeviceId device, TimePoint now) const {
  return cluster_.device(device).exec_done(now) - now + waiting_work(device, now).time + wide_work();
}

double Board::find_candidates(DeviceId device, uint32_t count_max, const LaneStart& on) const {
  candidates_.clear();
  uint64_t all_rows = 0;
  const bool one_lane = cluster_.device(device).lane_count() == 1;
  waiting_.for_each_common(loaded(device), [&](uint32_t id) {
    const Head head = one_lane || heads_[id].rows == 0 ? heads_[id] : head_in_time(device, ModelId(id), on);
    if (head.rows == 0) return;
    candidates_.push_back(head);
    all_rows += head.rows;
  });
  if (candidates_.size() <= count_max) return 1;
  const auto first = candidates_.begin();
  const auto half = first + count_max / 2;
  const auto end = first + count_max;
  std::nth_element(first, half, candidates_.end(), [](const Head& a, const Head& b) {
    return std::tuple(a.first_deadline, a.model) < std::tuple(b.first_deadline, b.model);
  });
  std::nth_element(half, end, candidates_.end(), [](const Head& a, const Head& b) {
    return std::tuple(b.rows, a.model) < std::tuple(a.rows, b.model);
  });
  candidates_.erase(end, candidates_.end());
  std::sort(first, end, [](const Head& a, const Head& b) { return a.model < b.model; });
  uint64_t rows = 0;
  for (const Head& head : candidates_) rows += head.rows;
  return static_cast<double>(all_rows) / static_cast<double>(rows);
}

void Board::prefetch_candidates(DeviceId device) const {
  for (const Head& head : candidates_) {
    prefetch(&model(head.model));
    cluster_.durations().prefetch(device, head.model);
  }
  for (const Head& head : candidates_) prefetch(model(head.model).queues.data());
  for (const Head& head : candidates_) model(head.model).queues.front().prefetch();
}

Board::Head Board::head_in_time(DeviceId device, ModelId id, const LaneStart& on) const {
  Head head{TimePoint::infinite_future(), id};
  const ModelState& state = model(id);
  for (uint16_t b = 0; b < state.queues.size(); ++b) {
    const RequestQueue& queue = state.queues[b];
    const Duration exec = cluster_.durations().exec({device, id, BucketId(b), 0, on.width_index});
    const size_t first = queue.first_due_from(on.start + exec + cluster_.margin(device));
    if (first >= queue.with_deadline()) continue;
    head.first_deadline = std::min(head.first_deadline, queue[first].deadline);
    head.rows += static_cast<uint32_t>(queue.with_deadline() - first);
  }
  return head;
}

void Board::update_head(ModelId id) {
  Head head{TimePoint::infinite_future(), id};
  for (const RequestQueue& queue : model(id).queues) {
    if (queue.with_deadline() == 0) continue;
    head.first_deadline = std::min(head.first_deadline, queue[0].deadline);
    head.rows += static_cast<uint32_t>(queue.with_deadline());
  }
  heads_[id.value()] = head;
}

Duration Board::backlog_until(DeviceId device, TimePoint deadline, TimePoint now) const {
  const DeviceWork& waiting = waiting_work(device, now);
  Duration due = waiting.time + wide_work();
  uint32_t counted = 0;
  for (const ModelWork& work : waiting.models) {
    if (work.last_deadline <= deadline) continue;
    due -= work.time;
    if (work.first_deadline > deadline) continue;
    due += ++counted <= kModelsCountedMax ? share(device, work.model, deadline) : work.part_until(deadline);
  }
  return cluster_.device(device).exec_done(now) - now + due;
}

// ---- What waits on a device ----

const Board::DeviceWork& Board::waiting_work(DeviceId device, TimePoint now) const {
  if (device.value() >= work_.size()) work_.resize(cluster_.devices.size());
  DeviceWork& known = work_[device.value()];
  const bool many = known_.contains(device.value()) && known.changed.size() > kChangesMax;
  if (many && now < known.looked_at + kManyChangesInterval) return known;
  known.looked_at = now;
  if (known_.contains(device.value()) && known.revision == cluster_.durations().revision()) {
    for (const ModelId model : known.changed) look_again(device, model, known);
  } else {
    look_at_all(device, known);
    known_.insert(device.value());
  }
  known.changed.clear();
  return known;
}

void Board::look_at_all(DeviceId device, DeviceWork& known) const {
  known.revision = cluster_.durations().revision();
  known.time = Duration();
  known.models.clear();
  waiting_.for_each_common(loaded(device), [&](uint32_t id) {
    const std::optional<ModelWork> work = model_work(device, ModelId(id));
    if (!work) return;
    known.models.push_back(*work);
    known.time += work->time;
  });
}

void Board::look_again(DeviceId device, ModelId id, DeviceWork& known) const {
  const auto found = std::lower_bound(known.models.begin(), known.models.end(), id,
                                      [](const ModelWork& work, ModelId wanted) { return work.model < wanted; });
  const bool there = found != known.models.end() && found->model == id;
  if (there) known.time -= found->time;
  const std::optional<ModelWork> work = model_work(device, id);
  if (work) {
    known.time += work->time;
    there ? void(*found = *work) : void(known.models.insert(found, *work));
  } else if (there) {
    known.models.erase(found);
  }
}

std::optional<Board::ModelWork> Board::model_work(DeviceId device, ModelId id) const {
  if (!loaded(device).contains(id.value()) || wide(id)) return std::nullopt;
  ModelWork work{id, {}, TimePoint::infinite_future(), TimePoint()};
  bool waits = false;
  for (const RequestQueue& queue : model(id).queues) {
    const size_t rows = queue.with_deadline();
    if (rows == 0) continue;
    waits = true;
    work.first_deadline = std::min(work.first_deadline, queue[0].deadline);
    work.last_deadline = std::max(work.last_deadline, queue[rows - 1].deadline);
  }
  if (!waits) return std::nullopt;
  work.time = share(device, id, TimePoint::infinite_future());
  return work;
}

Duration Board::share(DeviceId device, ModelId id, TimePoint deadline) const {
  return work(device, id, deadline) / std::max<int64_t>(model(id).holders.size(), 1);
}

bool Board::wide(ModelId id) const { return model(id).holders.size() > kBoardHoldersMax; }

Duration Board::wide_work() const {
  if (!wide_changed_.empty()) wide_works_.resize(models_.size());
  for (const ModelId id : wide_changed_) {
    is_wide_changed_.erase(id.value());
    Duration& known = wide_works_[id.value()];
    wide_work_ -= known;
    const bool counts = wide(id) && cluster_.has_model(id);
    known = counts ? work(DeviceId(*model(id).holders.next(0)), id, TimePoint::infinite_future()) : Duration();
    wide_work_ += known;
  }
  wide_changed_.clear();
  if (wide_work_ == Duration()) return wide_work_;
  return wide_work_ / std::max<int64_t>(static_cast<int64_t>(cluster_.devices.size()), 1);
}

void Board::work_changed(ModelId id) {
  ++changes_;
  if (wide(id)) {
    if (is_wide_changed_.contains(id.value())) return;
    is_wide_changed_.insert(id.value());
    wide_changed_.push_back(id);
    return;
  }
  known_.for_each_common(model(id).holders, [&](uint32_t device) { work_changed(DeviceId(device), id); });
}

void Board::work_changed(DeviceId device, ModelId id) {
  std::vector<ModelId>& changed = work_[device.value()].changed;
  if (!changed.empty() && changed.back() == id) return;
  changed.push_back(id);
  if (changed.size() > std::max(kChangesMax, work_[device.value()].models.size() / kChangedPartMax)) {
    known_.erase(device.value());
  }
}

}  // namespace foliot::foliot_policy
