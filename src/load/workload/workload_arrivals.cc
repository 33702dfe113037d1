#include "load/workload/workload_arrivals.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "foundation/base/check.h"
#include "load/workload/popularity.h"

namespace foliot {

// Yields (instant, model); the instants never fall.
class WorkloadArrivals::Source {
 public:
  struct Next {
    Duration at;
    uint32_t model = 0;
  };
  explicit Source(uint32_t stream_index) : stream_(stream_index) {}
  virtual ~Source() = default;
  uint32_t stream() const { return stream_; }
  virtual std::optional<Next> next() = 0;

 private:
  const uint32_t stream_;
};

namespace {

using Next = WorkloadArrivals::Source::Next;

// An open loop: one process, whose requests are spread over one or many models.
class OpenLoop : public WorkloadArrivals::Source {
 public:
  OpenLoop(uint32_t stream_index, const Stream& stream, std::vector<uint32_t> models,
           std::unique_ptr<ArrivalProcess> process, Duration first_gap, Random random)
      : Source(stream_index),
        models_(std::move(models)),
        process_(std::move(process)),
        popularity_(static_cast<uint32_t>(models_.size()), stream.zipf),
        start_(stream.start),
        at_(stream.start + first_gap),
        activate_every_(stream.activate_every),
        random_(random) {}

  std::optional<Next> next() override {
    const std::optional<Duration> gap = process_->next_gap(random_);
    if (!gap) return std::nullopt;
    at_ += *gap;
    return Next{at_, models_[draw()]};
  }

 private:
  uint32_t draw() {
    if (models_.size() == 1) return 0;
    if (activate_every_ == Duration()) return popularity_.draw(random_);
    const auto activated = static_cast<uint64_t>((at_ - start_).nanoseconds() / activate_every_.nanoseconds()) + 1;
    return static_cast<uint32_t>(random_.below(std::min<uint64_t>(activated, models_.size())));
  }

  const std::vector<uint32_t> models_;
  const std::unique_ptr<ArrivalProcess> process_;
  const Popularity popularity_;
  const Duration start_;
  Duration at_;
  const Duration activate_every_;
  Random random_;
};

// The first request of every user of a closed loop.
class ClosedLoop : public WorkloadArrivals::Source {
 public:
  ClosedLoop(uint32_t stream_index, const Stream& stream, std::vector<uint32_t> models)
      : Source(stream_index),
        models_(std::move(models)),
        concurrency_(stream.concurrency),
        start_(stream.start),
        activate_every_(stream.activate_every) {}

  std::optional<Next> next() override {
    const uint64_t model = user_ / concurrency_;
    if (model == models_.size()) return std::nullopt;
    ++user_;
    return Next{start_ + activate_every_ * static_cast<int64_t>(model), models_[model]};
  }

 private:
  const std::vector<uint32_t> models_;
  const uint32_t concurrency_;
  const Duration start_;
  const Duration activate_every_;
  uint64_t user_ = 0;
};

class TracedFunctions : public WorkloadArrivals::Source {
 public:
  TracedFunctions(uint32_t stream_index, const Stream& stream, std::vector<uint32_t> models, Random random)
      : Source(stream_index),
        models_(std::move(models)),
        trace_(stream.trace),
        replay_(trace_->replay(random)),
        start_(stream.start) {}

  std::optional<Next> next() override {
    const std::optional<Invocation> invocation = replay_->next();
    if (!invocation) return std::nullopt;
    return Next{start_ + invocation->at, models_[invocation->function % models_.size()]};
  }

 private:
  const std::vector<uint32_t> models_;
  const std::shared_ptr<const FunctionTrace> trace_;
  const std::unique_ptr<TraceReplay> replay_;
  const Duration start_;
};

ArrivalOptions share_of(ArrivalOptions arrivals, double share) {
  arrivals.rate *= share;
  arrivals.ramp_rate *= share;
  return arrivals;
}

// Evenly spaced processes of many models must not all begin at once.
Duration first_gap(const ArrivalOptions& arrivals, Random& random) {
  if (arrivals.kind != ArrivalKind::kUniform) return Duration();
  return Duration::from_seconds((random.uniform() - 1) / arrivals.rate);
}

using Sources = std::vector<std::unique_ptr<WorkloadArrivals::Source>>;

Status add_open_loops(uint32_t index, const Stream& stream, const std::vector<uint32_t>& models, Random random,
                      Sources& sources) {
  if (!stream.per_model) {
    FOLIOT_ASSIGN_OR_RETURN(auto process, make_arrivals(stream.arrivals));
    sources.push_back(std::make_unique<OpenLoop>(index, stream, models, std::move(process), Duration(), random));
    return Status();
  }
  double sum = 0;
  for (size_t i = 0; i < models.size(); ++i) sum += std::pow(static_cast<double>(i + 1), -stream.zipf);
  for (size_t i = 0; i < models.size(); ++i) {
    const ArrivalOptions arrivals = share_of(stream.arrivals, std::pow(static_cast<double>(i + 1), -stream.zipf) / sum);
    Random own = random.fork();
    FOLIOT_ASSIGN_OR_RETURN(auto process, make_arrivals(arrivals));
    const Duration gap = first_gap(arrivals, own);
    sources.push_back(std::make_unique<OpenLoop>(index, stream, std::vector{models[i]}, std::move(process), gap, own));
  }
  return Status();
}

Status add_sources(uint32_t index, const Workload& workload, Random random, Sources& sources) {
  const Stream& stream = workload.streams[index];
  const std::vector<uint32_t> models = workload.models_of(stream);
  if (stream.concurrency > 0) {
    sources.push_back(std::make_unique<ClosedLoop>(index, stream, models));
  } else if (stream.trace != nullptr) {
    sources.push_back(std::make_unique<TracedFunctions>(index, stream, models, random));
  } else {
    return add_open_loops(index, stream, models, random, sources);
  }
  return Status();
}

}  // namespace

bool WorkloadArrivals::Due::operator>(const Due& other) const {
  return std::pair(arrival.at, source) > std::pair(other.arrival.at, other.source);
}

WorkloadArrivals::WorkloadArrivals() = default;
WorkloadArrivals::WorkloadArrivals(WorkloadArrivals&&) noexcept = default;
WorkloadArrivals::~WorkloadArrivals() = default;

Result<WorkloadArrivals> WorkloadArrivals::make(const Workload& workload, uint64_t seed) {
  FOLIOT_RETURN_IF_ERROR(workload.check());
  WorkloadArrivals result;
  const std::vector<uint32_t> groups = workload.group_of_models();
  result.models_ = static_cast<uint32_t>(groups.size());
  Random random(seed);
  uint32_t position = 0;
  for (uint32_t i = 0; i < workload.streams.size(); ++i) {
    const Stream& stream = workload.streams[i];
    for (; position < stream.position.value_or(i); ++position) random.fork();
    ++position;
    result.streams_.push_back({stream.concurrency > 0, stream.think_time, stream.stop});
    for (const uint32_t group : groups) result.slos_.push_back(workload.slo_of(stream, workload.groups[group]));
    FOLIOT_RETURN_IF_ERROR(add_sources(i, workload, random.fork(), result.sources_));
  }
  for (uint32_t source = 0; source < result.sources_.size(); ++source) result.push_next(source);
  return result;
}

void WorkloadArrivals::push_next(uint32_t source) {
  const std::optional<Next> next = sources_[source]->next();
  const uint32_t stream = sources_[source]->stream();
  if (!next || next->at >= streams_[stream].stop) return;
  const Duration slo = slos_[size_t{stream} * models_ + next->model];
  heap_.push_back({{.at = next->at, .model = next->model, .stream = stream, .slo = slo}, source});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

std::optional<Arrival> WorkloadArrivals::next() {
  if (heap_.empty()) return std::nullopt;
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  const Due due = heap_.back();
  heap_.pop_back();
  push_next(due.source);
  return due.arrival;
}

std::optional<Arrival> WorkloadArrivals::follow(const Arrival& over, Duration now) const {
  const StreamState& stream = streams_[over.stream];
  if (!stream.closed) return std::nullopt;
  Arrival next = over;
  next.at = now + stream.think_time;
  return next.at < stream.stop ? std::optional(next) : std::nullopt;
}

}  // namespace foliot
