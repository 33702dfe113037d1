#include "control/policies/foliot/admission.h"

#include <algorithm>
#include <utility>

namespace foliot::foliot_policy {
namespace {

// After a request was missed or refused, others may be refused as they come for so long.
constexpr Duration kOverloadMemory = Duration::seconds(1);
// A plan of more batches than this is made anew no sooner than after so long for each of them.
constexpr size_t kPlannedBatchesMax = 64;
constexpr Duration kPlanInterval = Duration::microseconds(16);
// Of more devices that hold a model, the first ones stand for all.
constexpr size_t kPlannedHoldersMax = 8;
// So many devices are looked at for one that could load the model.
constexpr uint32_t kDevicesLookedAtMax = 16;
// A request that has used more of its time than this was admitted before: a worker has refused it.
constexpr int64_t kReturnedParts = 10;
// A plan keeps within so much of the time that requests have: EXECs vary, and one that begins a little late would have
// to leave out the first rows of its batch.
constexpr double kPlannedPart = 0.96;
// Where other devices hold some of the models, too, it is open which device will run how much of their work.
constexpr double kPlannedPartOfUneven = 0.84;
// Of models whose batches may stay small so many times the time may be asked for: the best of what waits is chosen.
constexpr double kOvercommit = 1.25;
// A model is less dense than another if this many times its density is less: densities of copies differ by the rates of
// their requests.
constexpr double kDenser = 1.2;

}  // namespace

std::optional<TimePoint> Admission::turn_away(const Request& request, TimePoint now) {
  const ModelState& state = board_.model(request.model);
  if (request.best_effort() || state.holders.empty()) return std::nullopt;
  const DeviceId first(*state.holders.next(0));
  if (!overloaded(first, now) || now - request.arrival > (request.deadline - request.arrival) / kReturnedParts) {
    return std::nullopt;
  }
  const RequestQueue& queue = state.queues[request.bucket.value()];
  const size_t before =
      std::min(queue.with_deadline(), queue.first_due_from(request.deadline + Duration::nanoseconds(1)));
  const bool fills = board_.fills_batches(request.model);
  if (!fills && !board_.full_batch_waits(first, request.model, before)) return std::nullopt;
  const KindId kind = board_.cluster().device(first).kind();
  const Forecast forecast = this->forecast(request, before, fills, now);
  if (forecast.in_time || could_load(request, now)) return std::nullopt;
  note_missed(request.model, now);
  crowded_until_.resize(overloaded_until_.size());
  crowded_until_[kind.value()] = now + kOverloadMemory;
  return forecast.answer;
}

bool Admission::could_load(const Request& request, TimePoint now) const {
  const Cluster& cluster = board_.cluster();
  const ModelState& state = board_.model(request.model);
  const uint32_t devices = static_cast<uint32_t>(cluster.devices.size());
  // Another copy is loaded only where there is half as much to do (LoadPlanner::look_whether_busy()).
  const Duration most = board_.least_backlog(request.model, TimePoint::infinite_future(), now) / 2;
  uint32_t id = *state.holders.next(0);
  for (uint32_t looked = 1; looked < std::min(devices, kDevicesLookedAtMax); ++looked) {
    id = id + 1 < devices ? id + 1 : 0;
    const DeviceId device(id);
    if (state.holders.contains(id) || !cluster.may_load(device, request.model, now)) continue;
    if (cluster.device(device).page_count() < cluster.pages(device, request.model)) continue;
    const TimePoint loaded =
        cluster.device(device).load_available(now) + cluster.durations().load(device, request.model);
    const Duration backlog = board_.backlog(device, now);
    if (backlog > most) continue;
    const TimePoint start = std::max(loaded, now + backlog);
    if (start + board_.answer_time(device, request.model, request.bucket, 0) <= request.deadline) return true;
  }
  return false;
}

void Admission::plan(const ModelState& state, TimePoint now) {
  const auto batches = static_cast<int64_t>(batches_.size());
  const bool recent = batches_.size() > kPlannedBatchesMax && now < planned_at_ + kPlanInterval * batches;
  holders_.clear();
  for (auto id = state.holders.next(0); id && holders_.size() < kPlannedHoldersMax; id = state.holders.next(*id + 1)) {
    holders_.emplace_back(*id);
  }
  if (holders_ == devices_ && (recent || changes_ == board_.changes())) return;
  planned_at_ = now;
  devices_.swap(holders_);
  changes_ = board_.changes();
  batches_.clear();
  is_uneven_ = false;
  BitSet seen;
  for (const DeviceId device : devices_) {
    board_.waiting().for_each_common(board_.loaded(device), [&](uint32_t id) {
      if (seen.contains(id)) return;
      seen.insert(id);
      is_uneven_ |= board_.model(ModelId(id)).holders.size() != state.holders.size();
      add(device, ModelId(id));
    });
  }
  std::ranges::sort(batches_, {}, &PlannedBatch::deadline);
}

void Admission::add(DeviceId device, ModelId id) {
  const ModelState& state = board_.model(id);
  uint32_t here = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    if (!state.holders.contains(devices_[i].value())) continue;
    here |= 1U << i;
    ++count;
  }
  is_uneven_ |= count < devices_.size();
  const size_t largest = board_.cluster().batch_sizes(device, id).back();
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket];
    for (size_t first = 0; first < queue.with_deadline(); first += largest) {
      const size_t rows = std::min(largest, queue.with_deadline() - first);
      const Duration exec = board_.grown_work(device, id, BucketId(bucket), rows);
      batches_.push_back({queue[first].deadline, exec * count / state.holders.size(), here, board_.density(id), id});
    }
  }
}

Admission::Forecast Admission::forecast(const Request& request, size_t rows_before, bool fills, TimePoint now) {
  const ModelState& state = board_.model(request.model);
  const DeviceId first(*state.holders.next(0));
  const Duration added = board_.grown_work(first, request.model, request.bucket, rows_before + 1) -
                         board_.grown_work(first, request.model, request.bucket, rows_before);
  plan(state, now);
  const double part = !fills ? kOvercommit : is_uneven_ ? kPlannedPartOfUneven : kPlannedPart;
  free_at_.clear();
  uint32_t own = 0;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    free_at_.push_back(board_.cluster().device(devices_[i]).exec_done(now));
    own |= 1U << i;
  }
  const auto earliest = [&](uint32_t devices) {
    size_t best = free_at_.size();
    for (size_t i = 0; i < free_at_.size(); ++i) {
      if ((devices >> i & 1) != 0 && (best == free_at_.size() || free_at_[i] < free_at_[best])) best = i;
    }
    return best;
  };
  const Duration margin = board_.cluster().margin(first);
  const auto limit = [&](TimePoint deadline) { return now + (deadline - now).scaled(part) - margin; };
  Forecast forecast;
  size_t next = 0;
  const double least = board_.density(request.model) / kDenser;
  const bool joins = added <= Duration();
  for (; next < batches_.size() && batches_[next].deadline <= request.deadline; ++next) {
    const PlannedBatch& batch = batches_[next];
    if (batch.density < least) continue;
    TimePoint& device = free_at_[earliest(batch.devices)];
    device += batch.exec;
    if (joins && batch.model == request.model) forecast.answer = device + margin;
  }
  if (joins) {  // the last batch of its model; a plan of a moment ago may lack it
    const bool planned = !forecast.answer.is_infinite();
    forecast.in_time = !planned || forecast.answer <= now + (request.deadline - now).scaled(std::max(1.0, part));
    return forecast;
  }
  const size_t chosen = earliest(own);
  TimePoint& device = free_at_[chosen];
  // Where nothing is before it, no estimate of what it may become is a reason: were that wrong, it would never be
  // measured again.
  const DeviceModel& facts = board_.cluster().device(devices_[chosen]);
  const bool first_of_all = facts.infers_outstanding() == 0 && device == facts.exec_done(now);
  device += added;
  forecast.answer = device + margin;
  if (first_of_all) {
    forecast.in_time = true;
    return forecast;
  }
  forecast.in_time = device <= limit(request.deadline);
  for (; next < batches_.size() && forecast.in_time; ++next) {
    if (batches_[next].density < least) continue;
    TimePoint& other = free_at_[earliest(batches_[next].devices)];
    other += batches_[next].exec;
    forecast.in_time = other <= limit(batches_[next].deadline);
  }
  return forecast;
}

void Admission::note_missed(ModelId model, TimePoint now) {
  const Cluster& cluster = board_.cluster();
  overloaded_until_.resize(cluster.kind_count());
  for (uint16_t kind = 0; kind < overloaded_until_.size(); ++kind) {
    if (cluster.may_place_on(KindId(kind), model)) overloaded_until_[kind] = now + kOverloadMemory;
  }
}

bool Admission::crowded(DeviceId device, TimePoint now) const {
  const uint16_t kind = board_.cluster().device(device).kind().value();
  return kind < crowded_until_.size() && now < crowded_until_[kind];
}

bool Admission::overloaded(DeviceId device, TimePoint now) const {
  const uint16_t kind = board_.cluster().device(device).kind().value();
  return kind < overloaded_until_.size() && now < overloaded_until_[kind];
}

}  // namespace foliot::foliot_policy
