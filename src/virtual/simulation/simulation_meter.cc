#include "virtual/simulation/simulation_meter.h"

#include <algorithm>
#include <utility>

#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

void record(PredictionError& error, Duration expected, Duration measured) {
  if (expected >= measured) {
    error.over.record(expected - measured);
  } else {
    error.under.record(measured - expected);
  }
}

}  // namespace

SimulationMeter::SimulationMeter(const SimulationMeterOptions& options, const Workload& workload,
                                 const Cluster& cluster)
    : options_(options), group_of_model_(workload.group_of_models()), cluster_(cluster) {
  report_.devices = options.devices;
  report_.warm_up = options.warm_up;
  report_.measured = options.duration - options.warm_up;
  report_.interval = options.interval;
  report_.all.name = "all";
  for (const ModelGroup& group : workload.groups) report_.groups.emplace_back().name = group.name;
  for (const PipelineLoad& pipeline : workload.pipelines) report_.pipelines.emplace_back().name = pipeline.name;
  for (const Stream& stream : workload.streams) {
    const auto position = static_cast<uint32_t>(report_.tenants.size());
    if (stream.tenant.empty() || !tenants_.emplace(tenant_named(stream.tenant), position).second) continue;
    report_.tenants.emplace_back().name = stream.tenant;
  }
  for (const Fault& fault : options.faults) {
    const Duration length = fault.length + kFaultAftermath;
    faults_.bins.emplace_back(static_cast<size_t>(length.nanoseconds() / kFaultBin.nanoseconds() + 1));
  }
  live_groups_.resize(workload.groups.size());
  asked_in_.resize(group_of_model_.size());
  cold_in_.resize(group_of_model_.size());
}

void SimulationMeter::begin(TimePoint begin) {
  begin_ = begin;
  measured_begin_ = begin + options_.warm_up;
  measured_end_ = begin + options_.duration;
}

void SimulationMeter::on_request(const Request& request, TimePoint now) {
  if (now < begin_) return;
  const uint32_t model = request.model.value();
  const uint32_t group = group_of_model_[model];
  const auto interval = static_cast<uint32_t>(report_.series.size() + 1);
  ++live_groups_[group].offered;
  if (std::exchange(asked_in_[model], interval) != interval) ++asked_models_;
  if (is_visit(request.id)) {
    if (counts(now)) ++report_.groups[group].offered;
    return;
  }
  ++live_.offered;
  ++report_.requests;
  if (!options_.faults.empty()) tally_faults(request.arrival - begin_, false);
  if (!counts(now)) return;
  ++report_.all.offered;
  ++report_.groups[group].offered;
  const auto tenant = tenants_.find(request.tenant);
  if (tenant == tenants_.end()) return;
  ++report_.tenants[tenant->second].offered;
  tenant_of_request_.insert(request.id, tenant->second);
}

void SimulationMeter::on_action(const Action& action, TimePoint now) {
  if (action.type != ActionType::kInfer || !counts(now)) return;
  // The action is in the device's timeline already.
  expected_completions_.insert(action.id, cluster_.device(action.device).exec_available(now));
}

void SimulationMeter::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  if (now < begin_) return;
  if (!outcome.done()) {
    for (const BatchRows::Row& row : action.rows) returned_.insert(row.request, 0);
    expected_completions_.erase(action.id);
    if (counts(now)) ++report_.actions_refused;
    return;
  }
  record_busy(outcome, action.rows.size());
  if (!counts(now)) {
    expected_completions_.erase(action.id);
    return;
  }
  switch (action.type) {
    case ActionType::kLoad: ++report_.loads; break;
    case ActionType::kUnload: ++report_.unloads; return;
    case ActionType::kInfer:
      ++report_.execs;
      ++report_.batch_sizes[action.rows.size()];
      break;
  }
  record_errors(action, outcome);
}

void SimulationMeter::record_errors(const Action& action, const Outcome& outcome) {
  if (action.type == ActionType::kLoad) return record(report_.load_duration, action.expected, outcome.duration);
  record(report_.infer_duration, action.expected, outcome.duration);
  const TimePoint* expected = expected_completions_.find(action.id);
  if (expected == nullptr) return;
  record(report_.infer_completion, *expected - begin_, outcome.end - begin_);
  expected_completions_.erase(action.id);
}

void SimulationMeter::tally_faults(Duration arrival, bool good) {
  bool counted = false;
  for (size_t i = 0; i < options_.faults.size(); ++i) {
    const Fault& fault = options_.faults[i];
    if (arrival < fault.at || arrival >= fault.end() + kFaultAftermath) continue;
    const auto bin = static_cast<size_t>((arrival - fault.at).nanoseconds() / kFaultBin.nanoseconds());
    ++(good ? faults_.bins[i][bin].good : faults_.bins[i][bin].offered);
    if (!std::exchange(counted, true)) ++(good ? faults_.good : faults_.offered);
  }
}

Duration SimulationMeter::within_measured(TimePoint start, TimePoint end) const {
  return std::max(std::min(end, measured_end_) - std::max(start, measured_begin_), Duration());
}

void SimulationMeter::record_busy(const Outcome& outcome, uint32_t rows) {
  if (outcome.type == ActionType::kUnload) return;
  const bool exec = outcome.type == ActionType::kInfer;
  (exec ? report_.exec_time : report_.load_time) += within_measured(outcome.start, outcome.end);
  TimePoint from = std::max(outcome.start, begin_);
  const auto index_of = [&](TimePoint at) {
    return static_cast<size_t>((at - begin_).nanoseconds() / options_.interval.nanoseconds());
  };
  const size_t last = index_of(outcome.end);
  if (busy_.size() <= last) busy_.resize(last + 1);
  for (size_t i = index_of(from); i <= last; ++i) {
    const TimePoint until = std::min(outcome.end, begin_ + options_.interval * static_cast<int64_t>(i + 1));
    (exec ? busy_[i].exec : busy_[i].load) += until - from;
    from = until;
  }
  busy_[last].execs += exec ? 1 : 0;
  busy_[last].rows += rows;
  busy_[last].loads += exec ? 0 : 1;
}

void SimulationMeter::on_completion(const Completion& completion, TimePoint now) {
  if (completion.arrival < begin_) return;
  const uint32_t model = completion.model.value();
  const uint32_t group = group_of_model_[model];
  const bool visit = is_visit(completion.id);
  if (!visit) {
    if (completion.served() && !options_.faults.empty()) tally_faults(completion.arrival - begin_, true);
    tally(live_, completion);
  }
  tally(live_groups_[group], completion);
  const auto interval = static_cast<uint32_t>(report_.series.size() + 1);
  if (completion.cold_start && std::exchange(cold_in_[model], interval) != interval) ++cold_models_;
  const bool returned = !returned_.empty() && returned_.erase(completion.id);
  if (completion.served() && counts(now)) tally_within(completion, visit);
  if (!counts(completion.arrival)) return;
  const bool mispredicted = !completion.served() && (returned || completion.refusal == Refusal::kLate);
  if (!visit) {
    tally(report_.all, completion, mispredicted);
    tally_refusal(completion, now);
  }
  tally(report_.groups[group], completion, mispredicted);
  const uint32_t* tenant = tenant_of_request_.find(completion.id);
  if (tenant == nullptr) return;
  tally(report_.tenants[*tenant], completion, mispredicted);
  tenant_of_request_.erase(completion.id);
}

bool SimulationMeter::is_visit(RequestId request) const {
  return !report_.pipelines.empty() && visit_slot(request).has_value();
}

void SimulationMeter::on_run(const Request& request, const PipelineInfo* /*pipeline*/, TimePoint now) {
  if (now < begin_) return;
  ++live_.offered;
  ++report_.requests;
  if (!options_.faults.empty()) tally_faults(request.arrival - begin_, false);
  if (!counts(now)) return;
  ++report_.all.offered;
  ++report_.pipelines[request.pipeline.value() - 1].offered;
}

void SimulationMeter::on_run_over(const Completion& completion, TimePoint now) {
  if (completion.arrival < begin_) return;
  if (completion.served() && !options_.faults.empty()) tally_faults(completion.arrival - begin_, true);
  tally(live_, completion);
  RequestTally& own = report_.pipelines[completion.pipeline.value() - 1];
  if (completion.served() && counts(now)) {
    ++report_.all.good_within;
    ++own.good_within;
  }
  if (!counts(completion.arrival)) return;
  const bool mispredicted = completion.refusal == Refusal::kLate;
  tally(report_.all, completion, mispredicted);
  tally_refusal(completion, now);
  tally(own, completion, mispredicted);
}

void SimulationMeter::tally_within(const Completion& completion, bool visit) {
  if (!visit) ++report_.all.good_within;
  ++report_.groups[group_of_model_[completion.model.value()]].good_within;
  const uint32_t* tenant = tenant_of_request_.find(completion.id);
  if (tenant != nullptr) ++report_.tenants[*tenant].good_within;
}

void SimulationMeter::tally_refusal(const Completion& completion, TimePoint now) {
  if (completion.deadline.is_infinite()) return;
  const double share =
      (now - completion.arrival).to_seconds() / (completion.deadline - completion.arrival).to_seconds();
  RefusalTally& refusals = report_.refusals;
  const bool refused = !completion.served() && completion.refusal != Refusal::kLate;
  if (refused) refusals.refused_after.record(Duration::from_seconds(share));
  if (refused && share <= RefusalTally::kDecisionPart) return;
  ++refusals.admitted;
  if (!completion.served()) ++refusals.admitted_missed;
}

void SimulationMeter::tally(RequestTally& to, const Completion& completion, bool mispredicted) {
  if (completion.batch_size > 0) {
    to.latency.record(completion.finished - completion.arrival);
    if (completion.cold_start) ++to.cold_starts;
  }
  if (completion.served()) {
    ++to.good;
  } else {
    ++to.missed[completion.refusal];
    if (mispredicted) ++to.mispredicted;
  }
}

void SimulationMeter::tally(Live& to, const Completion& completion) {
  ++(completion.served() ? to.good : to.missed);
  if (completion.batch_size == 0) return;
  to.latency.record(completion.finished - completion.arrival);
  if (completion.cold_start) ++to.cold_starts;
}

IntervalTally SimulationMeter::take(Live& live) {
  const IntervalTally result{.offered = live.offered,
                             .good = live.good,
                             .missed = live.missed,
                             .cold_starts = live.cold_starts,
                             .latency_p50 = live.latency.quantile(0.5),
                             .latency_p99 = live.latency.quantile(0.99),
                             .latency_max = live.latency.max()};
  live = Live();
  return result;
}

void SimulationMeter::end_interval() {
  SimulationInterval row{.begin = options_.interval * static_cast<int64_t>(report_.series.size()),
                         .all = take(live_),
                         .active_models = std::exchange(asked_models_, 0),
                         .cold_models = std::exchange(cold_models_, 0)};
  for (Live& live : live_groups_) row.groups.push_back(take(live));
  report_.series.push_back(std::move(row));
}

SimulationReport SimulationMeter::finish() {
  end_interval();
  const double device_seconds = options_.interval.to_seconds() * options_.devices;
  busy_.resize(report_.series.size());
  for (size_t i = 0; i < busy_.size(); ++i) {
    SimulationInterval& row = report_.series[i];
    row.loads = busy_[i].loads;
    row.device_busy = busy_[i].exec.to_seconds() / device_seconds;
    row.load_busy = busy_[i].load.to_seconds() / device_seconds;
    if (busy_[i].execs > 0) {
      row.batch_size_mean = static_cast<double>(busy_[i].rows) / static_cast<double>(busy_[i].execs);
    }
  }
  return std::move(report_);
}

}  // namespace foliot
