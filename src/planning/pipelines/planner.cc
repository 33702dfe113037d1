#include "planning/pipelines/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "foundation/base/units.h"

namespace foliot {
namespace {

constexpr uint32_t kSampleBlocks = 24;
constexpr uint32_t kRepairsMax = 64;

uint32_t fastest_kind(const PlannedStage& stage) {
  const auto fastest =
      std::min_element(stage.kinds.begin(), stage.kinds.end(), [](const StageKind& a, const StageKind& b) {
        return std::pair(a.durations_ns[1], a.price) < std::pair(b.durations_ns[1], b.price);
      });
  return static_cast<uint32_t>(fastest - stage.kinds.begin());
}

uint64_t replicas_of(const Configuration& configuration) {
  uint64_t sum = 0;
  for (const StageConfiguration& stage : configuration.stages) sum += stage.replicas;
  return sum;
}

uint32_t doubled(uint32_t batch, const StageKind& kind) { return std::min(2 * batch, kind.batch_most()); }

// The most replicas that cost less than `price_below` or, where neither costs anything, are fewer than
// `replicas_below`; 0: none.
uint32_t replicas_that_are_less(double price_below, uint32_t replicas_below, double price) {
  if (price <= 0) return price_below > 0 ? kPlannedReplicasMax : replicas_below - 1;
  const double most = std::min(price_below / price * (1 - 1e-9), static_cast<double>(kPlannedReplicasMax));
  return static_cast<uint32_t>(most);
}

// The least value in [low, high] for which `holds`, which holds for `high`.
template <typename Holds>
uint32_t least(uint32_t low, uint32_t high, const Holds& holds) {
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

}  // namespace

Configuration fastest_configuration(const PlannedPipeline& pipeline) {
  Configuration configuration;
  for (const PlannedStage& stage : pipeline.stages) configuration.stages.push_back({fastest_kind(stage), 1, 1});
  return configuration;
}

Planner::Planner(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                 const PlannerOptions& options)
    : pipeline_(pipeline), goal_(goal), options_(options), search_(pipeline, trace, goal, options.threads) {}

uint32_t Planner::slowest_stage(const Configuration& configuration) const {
  uint32_t slowest = 0;
  double lowest = std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < pipeline_.stages.size(); ++i) {
    const double here = throughput(pipeline_.stages[i], configuration.stages[i]);
    if (here < lowest) {
      lowest = here;
      slowest = i;
    }
  }
  return slowest;
}

// One replica after the other, as printed; but since which stage gets the next does not depend on
// whether the goal is met, the search first doubles the number of steps and then bisects.
std::optional<Configuration> Planner::initialize() {
  Configuration configuration = fastest_configuration(pipeline_);
  if (service_time(pipeline_, configuration) > goal_.slo) return std::nullopt;
  std::vector<Configuration> steps{configuration};
  const auto too_few = [&](const Configuration& from) {
    for (uint32_t i = 0; i < pipeline_.stages.size(); ++i) {
      const StageKind& kind = kind_of(pipeline_.stages[i], from.stages[i]);
      if (from.stages[i].replicas < search_.replicas_least(i, kind, 1)) return true;
    }
    return false;
  };
  const auto step = [&] {
    const uint32_t slowest = slowest_stage(configuration);
    return ++configuration.stages[slowest].replicas <= kPlannedReplicasMax;
  };
  while (too_few(configuration)) {
    if (!step()) return std::nullopt;
  }
  steps = {configuration};
  for (size_t more = 1; !search_.feasible(steps.back()); more *= 2) {
    steps = {steps.back()};
    for (size_t i = 0; i < more; ++i) {
      if (!step()) return std::nullopt;
      steps.push_back(configuration);
    }
  }
  const uint32_t first = steps.size() == 1 ? 0 : 1;
  return steps[least(first, static_cast<uint32_t>(steps.size() - 1),
                     [&](uint32_t i) { return search_.feasible(steps[i]); })];
}

std::optional<Configuration> Planner::increase_batch(const Configuration& from, uint32_t stage,
                                                     Estimator& estimator) const {
  Configuration to = from;
  StageConfiguration& changed = to.stages[stage];
  const StageKind& kind = kind_of(pipeline_.stages[stage], changed);
  if (changed.batch >= kind.batch_most()) return std::nullopt;
  changed.batch = doubled(changed.batch, kind);
  return estimator.feasible(to) ? std::optional(to) : std::nullopt;
}

std::optional<Configuration> Planner::remove_replica(const Configuration& from, uint32_t stage,
                                                     Estimator& estimator) const {
  Configuration to = from;
  StageConfiguration& changed = to.stages[stage];
  const StageKind& kind = kind_of(pipeline_.stages[stage], changed);
  if (changed.replicas <= search_.replicas_least(stage, kind, changed.batch)) return std::nullopt;
  --changed.replicas;
  return estimator.feasible(to) ? std::optional(to) : std::nullopt;
}

// Re-initialised and minimised for that stage alone: of each batch size, the fewest replicas that
// meet the goal, as far as they cost less than what is there.
std::optional<Configuration> Planner::downgrade_hardware(const Configuration& from, uint32_t stage, uint32_t kind_index,
                                                         Estimator& estimator) const {
  const StageKind& kind = pipeline_.stages[stage].kinds[kind_index];
  Configuration to = from;
  to.stages[stage] = {kind_index, 1, 1};
  if (service_time(pipeline_, to) > goal_.slo) return std::nullopt;
  double best_cost = cost(pipeline_.stages[stage], from.stages[stage]);
  uint32_t best_replicas = from.stages[stage].replicas;
  std::optional<Configuration> best;
  for (uint32_t batch = 1;; batch = doubled(batch, kind)) {
    const uint32_t most = replicas_that_are_less(best_cost, best_replicas, kind.price);
    const uint32_t fewest = search_.replicas_least(stage, kind, batch);
    const auto feasible = [&](uint32_t replicas) {
      to.stages[stage] = {kind_index, batch, replicas};
      return estimator.feasible(to);
    };
    if (fewest <= most && feasible(most)) {
      const uint32_t replicas = least(fewest, most, feasible);
      to.stages[stage] = {kind_index, batch, replicas};
      best = to;
      best_cost = cost(pipeline_.stages[stage], to.stages[stage]);
      best_replicas = replicas;
    }
    if (batch >= kind.batch_most()) return best;
  }
}

std::vector<uint32_t> Planner::kinds_below(const Configuration& from, uint32_t stage) const {
  const std::vector<StageKind>& kinds = pipeline_.stages[stage].kinds;
  const uint32_t current = from.stages[stage].kind;
  std::vector<uint32_t> below;
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    if (i != current && (!options_.next_cheaper_kind_only || kinds[i].price < kinds[current].price)) below.push_back(i);
  }
  if (options_.next_cheaper_kind_only && !below.empty()) {
    below = {*std::max_element(below.begin(), below.end(),
                               [&](uint32_t a, uint32_t b) { return kinds[a].price < kinds[b].price; })};
  }
  return below;
}

// The action that reduces the cost most; of equals, the one that leaves the fewest replicas.
std::optional<Configuration> Planner::best_action(const Configuration& from) {
  std::vector<CandidateSearch::Task> tasks;
  std::vector<std::optional<Configuration>> results(pipeline_.stages.size() * (kStagesMax + 1));
  const auto add = [&](auto action) {
    std::optional<Configuration>& to = results[tasks.size()];
    tasks.push_back([&to, action](Estimator& estimator) { to = action(estimator); });
  };
  for (uint32_t stage = 0; stage < pipeline_.stages.size(); ++stage) {
    add([&, stage](Estimator& estimator) { return remove_replica(from, stage, estimator); });
    for (const uint32_t kind : kinds_below(from, stage)) {
      add([&, stage, kind](Estimator& estimator) { return downgrade_hardware(from, stage, kind, estimator); });
    }
  }
  search_.run(tasks);
  std::optional<Configuration> best;
  const auto rank = [&](const Configuration& of) { return std::pair(cost(pipeline_, of), replicas_of(of)); };
  for (std::optional<Configuration>& result : results) {
    if (result && (!best || rank(*result) < rank(*best))) best = std::move(result);
  }
  return best;
}

std::optional<Configuration> Planner::first_batch_increase(const Configuration& from) {
  std::vector<std::optional<Configuration>> results(pipeline_.stages.size());
  std::vector<CandidateSearch::Task> tasks;
  for (uint32_t stage = 0; stage < results.size(); ++stage) {
    tasks.push_back([&, stage](Estimator& estimator) { results[stage] = increase_batch(from, stage, estimator); });
  }
  search_.run(tasks);
  const auto first =
      std::find_if(results.begin(), results.end(), [](const auto& result) { return result.has_value(); });
  return first == results.end() ? std::nullopt : *first;
}

// IncreaseBatch costs nothing, so it is the best action only where no other is possible.
Configuration Planner::minimize_cost(Configuration configuration) {
  while (true) {
    search_.keep(configuration);
    std::optional<Configuration> next = best_action(configuration);
    if (!next) next = first_batch_increase(configuration);
    if (!next) return configuration;
    configuration = *std::move(next);
  }
}

std::optional<Configuration> Planner::repair(Configuration configuration) {
  uint64_t missed = std::numeric_limits<uint64_t>::max();
  for (uint32_t i = 0; i < kRepairsMax; ++i) {
    if (search_.feasible(configuration)) return configuration;
    search_.keep(configuration);
    std::vector<uint64_t> late(pipeline_.stages.size());
    std::vector<CandidateSearch::Task> tasks;
    for (uint32_t stage = 0; stage < late.size(); ++stage) {
      tasks.push_back([&, stage](Estimator& estimator) {
        Configuration more = configuration;
        ++more.stages[stage].replicas;
        late[stage] = estimator.missed(more);
      });
    }
    search_.run(tasks);
    const auto best = std::min_element(late.begin(), late.end());
    if (*best >= missed) return std::nullopt;
    missed = *best;
    ++configuration.stages[static_cast<size_t>(best - late.begin())].replicas;
  }
  return std::nullopt;
}

namespace {

Status cannot_meet(const PlannedPipeline& pipeline, LatencyGoal goal) {
  const Duration service = service_time(pipeline, fastest_configuration(pipeline));
  if (service > goal.slo) {
    return Status::invalid_argument(fmt::format(
        "the SLO of {} is below the service time of '{}': a query alone takes {} on the fastest kinds, in batches of 1",
        format_duration(goal.slo), pipeline.name, format_duration(service)));
  }
  return Status::invalid_argument(
      fmt::format("'{}' cannot meet an SLO of {} with {} replicas of a stage: raise the SLO", pipeline.name,
                  format_duration(goal.slo), kPlannedReplicasMax));
}

std::optional<Configuration> plan_on_sample(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                            const PlannerOptions& options) {
  const double share = static_cast<double>(options.sample_queries) / static_cast<double>(trace.size());
  const QueryTrace sample = trace.sample(share, kSampleBlocks, goal.slo);
  if (sample.size() == 0) return std::nullopt;
  Planner planner(pipeline, sample, goal, options);
  std::optional<Configuration> first = planner.initialize();
  return first ? std::optional(planner.minimize_cost(*std::move(first))) : std::nullopt;
}

}  // namespace

Result<PipelinePlan> plan_pipeline(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                   const PlannerOptions& options) {
  if (trace.size() == 0) return Status::invalid_argument("the trace is empty: planning needs arrivals");
  Planner planner(pipeline, trace, goal, options);
  std::optional<Configuration> first;
  if (options.sample_queries > 0 && trace.size() > 2 * options.sample_queries) {
    first = plan_on_sample(pipeline, trace, goal, options);
    if (first) first = planner.repair(*std::move(first));
  }
  if (!first) first = planner.initialize();
  if (!first) return cannot_meet(pipeline, goal);
  PipelinePlan result{.configuration = planner.minimize_cost(*std::move(first)), .estimate = {}};
  if (options.known && planner.feasible(*options.known)) {
    Configuration known = planner.minimize_cost(*options.known);
    if (cost(pipeline, known) < cost(pipeline, result.configuration)) result.configuration = std::move(known);
  }
  result.estimate = planner.estimate(result.configuration);
  result.cost = cost(pipeline, result.configuration);
  return result;
}

std::vector<Duration> tighter_slos(Duration service_time, Duration below) {
  constexpr double kStep = 1.1;
  std::vector<Duration> slos;
  for (Duration slo = service_time; slo < below; slo = slo.scaled(kStep)) slos.push_back(slo);
  return slos;
}

namespace {

Result<PipelinePlan> plan_from_tighter(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                       PlannerOptions options) {
  if (trace.size() == 0) return Status::invalid_argument("the trace is empty: planning needs arrivals");
  const Duration service = service_time(pipeline, fastest_configuration(pipeline));
  for (const Duration slo : tighter_slos(service, goal.slo)) {
    Result<PipelinePlan> tighter = plan_pipeline(pipeline, trace, {slo, goal.attainment}, options);
    if (tighter.ok()) options.known = std::move(tighter->configuration);
  }
  return plan_pipeline(pipeline, trace, goal, options);
}

struct Excess {
  std::string kind;
  uint64_t wanted = 0;
  uint32_t devices = 0;
};

// The first kind of which there are not enough devices; nullopt: there is none.
std::optional<Excess> find_excess(const PlannedPipeline& pipeline, const Configuration& configuration) {
  for (const auto& [kind, devices] : pipeline.devices) {
    uint64_t wanted = 0;
    for (size_t i = 0; i < pipeline.stages.size(); ++i) {
      const StageConfiguration& stage = configuration.stages[i];
      if (kind_of(pipeline.stages[i], stage).kind == kind) wanted += stage.replicas;
    }
    if (wanted > devices) return Excess{kind, wanted, devices};
  }
  return std::nullopt;
}

void raise_price(PlannedPipeline& pipeline, const std::string& kind, double by) {
  for (PlannedStage& stage : pipeline.stages) {
    for (StageKind& each : stage.kinds) each.price += each.kind == kind ? by : 0;
  }
}

}  // namespace

Status check_devices(const PlannedPipeline& pipeline, const Configuration& configuration) {
  const std::optional<Excess> excess = find_excess(pipeline, configuration);
  if (!excess) return Status();
  return Status::invalid_argument(
      fmt::format("no plan was found for '{}' with {} devices of kind '{}'; {} would do: raise the SLO, measure the "
                  "stages on another kind, or add devices",
                  pipeline.name, excess->devices, excess->kind, excess->wanted));
}

// A kind that is short costs more in the next round, until the plan takes no more of it than there is.
Result<PipelinePlan> plan_monotonely(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                     const PlannerOptions& options) {
  constexpr int kRounds = 24;
  Result<PipelinePlan> plan = plan_from_tighter(pipeline, trace, goal, options);
  if (!plan.ok()) return plan;
  PlannedPipeline dearer = pipeline;
  double by = 0;
  for (const PlannedStage& stage : pipeline.stages) {
    for (const StageKind& kind : stage.kinds) by = std::max(by, kind.price / 8);
  }
  if (by <= 0) by = 1;
  for (int round = 0; round < kRounds; ++round) {
    const std::optional<Excess> excess = find_excess(pipeline, plan->configuration);
    if (!excess) {
      plan->cost = cost(pipeline, plan->configuration);
      return plan;
    }
    raise_price(dearer, excess->kind, by);
    by *= 1.5;
    Result<PipelinePlan> next = plan_pipeline(dearer, trace, goal, options);
    FOLIOT_RETURN_IF_ERROR(next.status());
    plan = std::move(next);
  }
  FOLIOT_RETURN_IF_ERROR(check_devices(pipeline, plan->configuration));
  plan->cost = cost(pipeline, plan->configuration);
  return plan;
}

}  // namespace foliot
