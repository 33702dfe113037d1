#include "planning/pipelines/coarse_grained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "foundation/base/units.h"
#include "planning/pipelines/envelope.h"
#include "planning/pipelines/planner.h"

namespace foliot {
namespace {

// With the duration of a full batch in every stage.
Duration longest_path(const PlannedPipeline& pipeline, const Configuration& unit, uint32_t batch) {
  PlannedPipeline full = pipeline;
  for (size_t i = 0; i < full.stages.size(); ++i) {
    StageKind& kind = full.stages[i].kinds[unit.stages[i].kind];
    kind.durations_ns[1] = kind.durations_ns[std::min(batch, kind.batch_most())];
  }
  return service_time(full, unit);
}

uint32_t units_for(double rate, double unit_throughput) {
  return std::max(uint32_t{1}, static_cast<uint32_t>(std::ceil(rate / unit_throughput - 1e-9)));
}

}  // namespace

Result<CoarseGrainedPlan> plan_coarse_grained(const PlannedPipeline& pipeline, const QueryTrace& trace, Duration slo,
                                              CoarseGrainedRate rate, CoarseGrainedUnit unit) {
  if (trace.size() == 0) return Status::invalid_argument("the trace is empty: planning needs arrivals");
  CoarseGrainedPlan plan{fastest_configuration(pipeline)};
  if (longest_path(pipeline, plan.configuration, 1) > slo) {
    return Status::invalid_argument(
        fmt::format("the SLO of {} is below the service time of '{}'", format_duration(slo), pipeline.name));
  }
  uint32_t batch = 1;
  while (batch < kPlannedBatchMax && longest_path(pipeline, plan.configuration, batch * 2) <= slo) batch *= 2;
  plan.unit_throughput = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    StageConfiguration& stage = plan.configuration.stages[i];
    stage.batch = std::min(batch, kind_of(pipeline.stages[i], stage).batch_most());
    plan.unit_throughput = std::min(plan.unit_throughput, throughput(pipeline.stages[i], stage));
  }
  if (unit == CoarseGrainedUnit::kOneBatch) {
    plan.unit_throughput = batch / longest_path(pipeline, plan.configuration, batch).to_seconds();
  }
  const double needed = rate == CoarseGrainedRate::kMean
                            ? trace.rate()
                            : traffic_envelope(trace.arrivals_ns, {slo}).most.front() / slo.to_seconds();
  for (StageConfiguration& stage : plan.configuration.stages) stage.replicas = units_for(needed, plan.unit_throughput);
  return plan;
}

CoarseGrainedTuner::CoarseGrainedTuner(const CoarseGrainedPlan& plan, Duration wait)
    : unit_throughput_(plan.unit_throughput), wait_(wait) {
  for (const StageConfiguration& stage : plan.configuration.stages) replicas_.push_back(stage.replicas);
  needed_.emplace_back(TimePoint(), replicas_.front());
}

bool CoarseGrainedTuner::arrive(TimePoint) {
  ++arrivals_;
  return false;
}

bool CoarseGrainedTuner::tick(TimePoint now) {
  const double seconds = (now - ticked_).to_seconds();
  if (seconds <= 0) return false;
  const uint32_t units = units_for(static_cast<double>(arrivals_) / seconds, unit_throughput_);
  arrivals_ = 0;
  ticked_ = now;
  while (!needed_.empty() && needed_.front().first < now - wait_) needed_.pop_front();
  while (!needed_.empty() && needed_.back().second <= units) needed_.pop_back();
  needed_.emplace_back(now, units);
  const uint32_t wanted = needed_.front().second;
  if (wanted == replicas_.front()) return false;
  std::fill(replicas_.begin(), replicas_.end(), wanted);
  return true;
}

}  // namespace foliot
