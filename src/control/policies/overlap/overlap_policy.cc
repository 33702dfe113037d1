#include "control/policies/overlap/overlap_policy.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "control/controller/overlap_predictor.h"
#include "control/policies/common/batching_policy.h"
#include "control/policies/overlap/group_search.h"

namespace foliot::overlap {
namespace {

// Two that gain less than this from running together run one after the other.
constexpr double kGainMin = 1.05;
// Queries looked at for one group, those with the least headroom: of the others none is
// likely to fit.
constexpr uint32_t kQueriesMax = 16;

class DeadlineRule : public BatchingRule {
 public:
  RequestQueue::Order order() const override { return RequestQueue::Order::kDeadline; }
  Offer offer(const QueueView& /*queue*/, TimePoint now) const override { return {now}; }
  Batch choose(const QueueView& queue, TimePoint start) const override {
    const size_t first = queue.first_meetable(start);
    return {first, first < queue.requests.size() ? 1u : 0u, 0};
  }
};

class OverlapPolicy : public BatchingPolicy {
 public:
  explicit OverlapPolicy(const Cluster& cluster) : BatchingPolicy(cluster, std::make_unique<DeadlineRule>()) {}

  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_device_changed(DeviceId device, TimePoint now) override;

 private:
  // A query that a device has: it runs, or is unfinished.
  struct Begun {
    QueueKey key;
    RequestId request;
    TimePoint deadline;
    ContextIndex context = 0;
    OperatorRange range;  // of its last INFER
    bool runs = true;
  };
  struct Query {
    Candidate candidate;
    QueueKey key;
    RequestId request;
    TimePoint deadline;
    size_t position = 0;                    // in its queue
    std::optional<ContextIndex> context{};  // of one that was begun
  };

  // The group that a device got last.
  struct Last {
    TimePoint earliest;         // of its windows
    bool has_all_lanes = true;  // one query has
  };

  void serve(DeviceId device, TimePoint now, Dispatcher& dispatcher) override;
  // False if there is nothing that can be run on the device now.
  bool send_group(DeviceId device, TimePoint now, Dispatcher& dispatcher);
  void give_up_late(DeviceId device, TimePoint start, Dispatcher& dispatcher);
  // By headroom; those that have none are not among them.
  std::vector<Query> queries(DeviceId device, TimePoint start, TimePoint now);
  // The first of them, of different models, that may run beside each other.
  std::vector<Query> choose(DeviceId device, const std::vector<Query>& queries);
  bool gains(const Query& one, const Query& other);
  Candidate candidate(DeviceId device, QueueKey key, uint32_t first) const;
  bool send(const Query& query, const ExecSegment& segment, LaneInterval lanes, ContextIndex context, TimePoint start,
            Duration expected, TimePoint now, Dispatcher& dispatcher);
  bool is_idle(DeviceId device, ContextIndex context) const {
    return cluster().device(device).contexts().may_begin(context, {0, 1});
  }
  std::vector<Begun>& begun(DeviceId device) {
    if (device.value() >= begun_.size()) begun_.resize(device.value() + 1);
    return begun_[device.value()];
  }

  // When the next group may begin, that is expected to begin at `start`.
  TimePoint earliest(DeviceId device, bool has_all_lanes, TimePoint start, TimePoint now);

  std::vector<std::vector<Begun>> begun_;  // by device
  std::vector<Last> last_;                 // by device
};

void OverlapPolicy::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  if (action.type == ActionType::kInfer) {
    std::vector<Begun>& own = begun(action.device);
    const auto found = std::ranges::find(own, action.rows[0].request, &Begun::request);
    if (found != own.end()) {
      found->runs = false;
      if (!outcome.done() || found->range.ends()) own.erase(found);
    }
  }
  BatchingPolicy::on_outcome(action, outcome, now);
}

void OverlapPolicy::on_device_changed(DeviceId device, TimePoint now) {
  if (cluster().device(device).state() == DeviceState::kLost) begun(device).clear();
  BatchingPolicy::on_device_changed(device, now);
}

void OverlapPolicy::serve(DeviceId id, TimePoint now, Dispatcher& dispatcher) {
  const DeviceModel& device = cluster().device(id);
  if (device.lane_count() == 1 || device.contexts().count() == 1) return BatchingPolicy::serve(id, now, dispatcher);
  if (!device.up()) return;
  while (device.exec_available(now) < now + lookahead(id)) {
    const bool goes_on = std::ranges::any_of(begun(id), [](const Begun& own) { return own.runs && !own.range.ends(); });
    const bool full = device.infers_outstanding() + kGroupMax > cluster().infers_outstanding_max;
    // An outcome will list it again.
    if (goes_on || full) return agenda().busy(id, TimePoint::infinite_future());
    if (!send_group(id, now, dispatcher)) return;
  }
  agenda().busy(id, device.exec_available(now) - lookahead(id));
}

Candidate OverlapPolicy::candidate(DeviceId device, QueueKey key, uint32_t first) const {
  const ExecShape shape{.device = device, .model = key.model, .bucket = key.bucket};
  return {shape, cluster().runnable(device, key.model), cluster().durations().exec(shape), first};
}

void OverlapPolicy::give_up_late(DeviceId device, TimePoint start, Dispatcher& dispatcher) {
  std::erase_if(begun(device), [&](const Begun& own) {
    if (own.runs) return false;
    const TimePoint end = start + candidate(device, own.key, own.range.last).rest().alone + cluster().margin(device);
    if (end <= own.deadline) return false;
    return dispatcher.abandon(device, own.context, Refusal::kExpired, end) == Verdict::kAccepted;
  });
}

std::vector<OverlapPolicy::Query> OverlapPolicy::queries(DeviceId device, TimePoint start, TimePoint now) {
  std::vector<Query> found;
  for (const Begun& own : begun(device)) {
    if (own.runs) continue;
    found.push_back({candidate(device, own.key, own.range.last), own.key, own.request, own.deadline, 0, own.context});
  }
  std::set<Place>& places = ready(device);
  for (auto place = places.begin(); place != places.end() && found.size() < kQueriesMax;) {
    const QueueKey key = place->queue;
    if (cluster().device(device).residency(key.model) != Residency::kLoaded) {
      update(key, now);  // it was evicted, and goes
      place = places.begin();
      std::erase_if(found, [](const Query& query) { return !query.context; });
      continue;
    }
    ++place;
    const QueueView view_here = view(key, device);
    const size_t position = view_here.first_meetable(start);
    if (position == view_here.requests.size()) continue;
    const RequestQueue::Entry& entry = view_here.requests[position];
    found.push_back({candidate(device, key, 0), key, entry.id, entry.deadline, position});
  }
  std::ranges::stable_sort(found, {}, &Query::deadline);
  return found;
}

bool OverlapPolicy::gains(const Query& one, const Query& other) {
  return gain(one.candidate, other.candidate, cluster().durations()) >= kGainMin;
}

std::vector<OverlapPolicy::Query> OverlapPolicy::choose(DeviceId device, const std::vector<Query>& queries) {
  const DeviceModel& own = cluster().device(device);
  uint32_t contexts = 0;
  for (ContextIndex context = 0; context < own.contexts().count(); ++context) contexts += is_idle(device, context);
  std::vector<Query> chosen;
  for (const Query& query : queries) {
    if (chosen.size() == std::min(kGroupMax, own.lane_count())) break;
    if (!query.context && contexts == 0) continue;
    const bool fits = std::ranges::all_of(
        chosen, [&](const Query& other) { return other.key.model != query.key.model && gains(other, query); });
    if (!fits) continue;
    contexts -= query.context ? 0 : 1;
    chosen.push_back(query);
  }
  return chosen;
}

// Lanes keep groups apart of which one has a query on all of them: no part of the later one begins before that query
// has ended, or ends after it began. So only two that are divided need the time that the first is expected to take.
// None begins before the one that was sent before it, which lanes would let pass.
TimePoint OverlapPolicy::earliest(DeviceId device, bool has_all_lanes, TimePoint start, TimePoint now) {
  if (device.value() >= last_.size()) last_.resize(device.value() + 1);
  Last& last = last_[device.value()];
  const bool follows = cluster().device(device).infers_outstanding() > 0;
  const bool apart = !follows || has_all_lanes || last.has_all_lanes;
  last = {.earliest = apart ? std::max(now, follows ? last.earliest : now) : start, .has_all_lanes = has_all_lanes};
  return last.earliest;
}

bool OverlapPolicy::send_group(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  const DeviceModel& own = cluster().device(device);
  const TimePoint start = own.exec_available(now);
  give_up_late(device, start, dispatcher);
  const std::vector<Query> chosen = choose(device, queries(device, start, now));
  if (chosen.empty()) return false;
  std::vector<Candidate> candidates;
  candidates.reserve(chosen.size());
  for (const Query& query : chosen) candidates.push_back(query.candidate);
  const Duration headroom = chosen[0].deadline - (start + cluster().margin(device));
  const Group group = search_group(candidates, headroom, cluster().durations());
  const uint32_t width = group_width(own.lane_count(), group.size);
  const TimePoint earliest = this->earliest(device, width == own.lane_count(), start, now);
  ContextIndex context = 0;
  for (uint32_t i = 0; i < group.size; ++i) {
    const LaneInterval lanes{i * width, width};
    while (!chosen[i].context && !is_idle(device, context)) ++context;
    const bool sent = send(chosen[i], group.segments[i], lanes, chosen[i].context.value_or(context), earliest,
                           group.duration, now, dispatcher);
    if (!sent) return i > 0;
  }
  return true;
}

// The window closes when the deadline can no longer be met, as with other policies.
bool OverlapPolicy::send(const Query& query, const ExecSegment& segment, LaneInterval lanes, ContextIndex context,
                         TimePoint earliest, Duration expected, TimePoint now, Dispatcher& dispatcher) {
  const DeviceId device = segment.shape.device;
  const TimePoint start = std::max(earliest, now + cluster().device(device).delivery());
  const Window window{earliest, std::max(query.deadline - expected, start + lookahead(device))};
  if (query.context) {
    const Verdict verdict = dispatcher.resume(device, context, segment.range.last, lanes, expected, window);
    if (verdict != Verdict::kAccepted) return false;
    Begun& own = *std::ranges::find(begun(device), query.request, &Begun::request);
    own.range = segment.range;
    own.runs = true;
    return true;
  }
  const uint32_t batch_size = cluster().batch_sizes(device, query.key.model)[0];
  const ExecPart part{.range = segment.range, .lanes = lanes, .context = context};
  const Verdict verdict = dispatcher.begin(device, query.key.model, query.key.bucket, batch_size, part, expected,
                                           std::span(&query.request, 1), window);
  if (verdict != Verdict::kAccepted) return false;
  begun(device).push_back({query.key, query.request, query.deadline, context, segment.range});
  take(query.key, query.position, now);
  return true;
}

}  // namespace

std::unique_ptr<Policy> make_overlap_policy(const Cluster& cluster) { return std::make_unique<OverlapPolicy>(cluster); }

}  // namespace foliot::overlap
