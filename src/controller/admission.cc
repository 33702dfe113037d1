#include "controller/admission.h"

#include <algorithm>

namespace foliot {

Backlog::Ticket Backlog::add(TimePoint deadline, Duration work, TimePoint now) {
  if (slice_of(deadline) - slice_of(now) >= kSlices / 2) return {};
  const Ticket ticket{slice_of(deadline), work};
  change(ticket.slice, work.nanoseconds());
  return ticket;
}

void Backlog::remove(const Ticket& ticket) {
  if (ticket.slice >= 0) change(ticket.slice, -ticket.work.nanoseconds());
}

// The ring begins half a turn ago; from there to the deadline's slice, both included.
Duration Backlog::due_by(TimePoint deadline, TimePoint now) const {
  const int64_t begin = slice_of(now) - kSlices / 2;
  const int64_t end = std::clamp(slice_of(deadline), begin, begin + kSlices - 1);
  const int64_t first = (begin % kSlices + kSlices) % kSlices;
  const int64_t count = end - begin + 1;
  const int64_t until_wrap = std::min(count, kSlices - first);
  return Duration::nanoseconds(sum_of_first(first + until_wrap) - sum_of_first(first) +
                               sum_of_first(count - until_wrap));
}

void Backlog::change(int64_t slice, int64_t nanoseconds) {
  for (int64_t i = slice % kSlices + 1; i <= kSlices; i += i & -i) tree_[static_cast<size_t>(i)] += nanoseconds;
}

int64_t Backlog::sum_of_first(int64_t positions) const {
  int64_t sum = 0;
  for (int64_t i = positions; i > 0; i -= i & -i) sum += tree_[static_cast<size_t>(i)];
  return sum;
}

Admission::Decision Admission::decide(const Request& request, TimePoint now) const {
  if (request.best_effort()) return {};
  const Placement place = best_placement(request, now);
  const auto devices = static_cast<int64_t>(std::max<size_t>(cluster_.devices.size(), 1));
  const Duration ahead = work_ahead(request, now) * 11 / (10 * devices);

  const Duration alone = (place.needs_load ? place.load : Duration()) + place.exec + cluster_.deadline_margin;
  const TimePoint start_if_loaded = place.exec_available + ahead;
  const TimePoint start = std::max(start_if_loaded, place.loaded);

  Decision decision;
  decision.earliest_completion = start + place.exec + cluster_.deadline_margin;
  if (decision.earliest_completion <= request.deadline) return decision;
  decision.refusal = now + alone > request.deadline ? Refusal::kUnmeetable : Refusal::kOverload;
  decision.too_long = decision.refusal == Refusal::kUnmeetable && !place.needs_load &&
                      now + cluster_.deadline_margin < request.deadline;
  decision.missed = place.needs_load && start_if_loaded + place.exec + cluster_.deadline_margin <= request.deadline;
  return decision;
}

Admission::Placement Admission::best_placement(const Request& request, TimePoint now) const {
  Placement best{.exec_available = TimePoint::infinite_future(), .loaded = TimePoint::infinite_future()};
  bool first = true;
  for (const DeviceModel& device : cluster_.devices) {
    const Residency residency = device.residency(request.model);
    Placement here{.exec_available = device.exec_available(now),
                   .needs_load = residency == Residency::kAbsent,
                   .load = cluster_.estimator.load(device.id(), request.model),
                   .exec = cluster_.estimator.exec(device.id(), request.model, request.bucket, 0)};
    here.loaded = residency == Residency::kLoaded    ? now
                  : residency == Residency::kLoading ? device.loaded_at(request.model)
                                                     : device.load_available(now) + here.load;
    const auto ready = [](const Placement& p) { return std::max(p.exec_available, p.loaded) + p.exec; };
    if (first || ready(here) < ready(best)) best = here;
    first = false;
  }
  return best;
}

// Of other lanes, what is due before; of its own, what its batches take with it in
// them less what it would take alone. Tickets say what each row added when it came,
// which is more than it costs once a batch has grown around it.
Duration Admission::work_ahead(const Request& request, TimePoint now) const {
  if (cluster_.devices.empty()) return Duration();
  const Duration due = backlog_.due_by(request.deadline, now);
  const Lane* lane = find_lane(request);
  if (lane == nullptr || lane->queued == 0) return due;
  const Duration others = std::max(due - lane->work, Duration());
  const Duration own = exec_of_rows(request, lane->queued + 1) - exec_of_rows(request, 1);
  return others + std::min(std::max(own, Duration()), due);
}

const Admission::Lane* Admission::find_lane(const Request& request) const {
  if (request.model.value() >= lanes_.size()) return nullptr;
  const auto& buckets = lanes_[request.model.value()];
  return request.bucket.value() < buckets.size() ? &buckets[request.bucket.value()] : nullptr;
}

Duration Admission::exec_of_rows(const Request& request, uint32_t rows) const {
  const DeviceId device = cluster_.devices.front().id();
  const std::vector<uint32_t>& sizes = cluster_.model(request.model).batch_sizes;
  Duration total;
  // What is left over may yet be filled up to the size above.
  Duration filled_up = Duration::max();
  for (size_t i = sizes.size(); i-- > 0 && rows > 0;) {
    const Duration exec = cluster_.estimator.exec(device, request.model, request.bucket, static_cast<uint32_t>(i));
    if (sizes[i] > rows) {
      filled_up = total + exec;
      continue;
    }
    total += exec * static_cast<int64_t>(rows / sizes[i]);
    rows %= sizes[i];
    if (total >= filled_up) return filled_up;
    if (rows > 0) filled_up = std::min(filled_up, total + exec);
  }
  return std::min(total, filled_up);
}

Backlog::Ticket Admission::enqueued(const Request& request, TimePoint now) {
  if (request.model.value() >= lanes_.size()) lanes_.resize(request.model.value() + 1);
  auto& buckets = lanes_[request.model.value()];
  buckets.resize(std::max(buckets.size(), cluster_.model(request.model).buckets.size()));
  Lane& lane = buckets[request.bucket.value()];
  ++lane.queued;
  const Backlog::Ticket ticket = backlog_.add(request.deadline, share_of_batch(request, lane.queued), now);
  lane.work += ticket.work;
  return ticket;
}

void Admission::dequeued(const Request& request, const Backlog::Ticket& ticket) {
  Lane& lane = lanes_[request.model.value()][request.bucket.value()];
  FOLIOT_CHECK(lane.queued > 0);
  --lane.queued;
  lane.work -= ticket.work;
  backlog_.remove(ticket);
}

// The time that one of `queued` requests adds: its share of the largest batch
// that they fill.
Duration Admission::share_of_batch(const Request& request, uint32_t queued) const {
  if (cluster_.devices.empty()) return Duration();
  const std::vector<uint32_t>& sizes = cluster_.model(request.model).batch_sizes;
  uint32_t index = 0;
  while (index + 1 < sizes.size() && sizes[index + 1] <= queued) ++index;
  return cluster_.estimator.exec(cluster_.devices.front().id(), request.model, request.bucket, index) /
         static_cast<int64_t>(sizes[index]);
}

}  // namespace foliot
