#include "planning/pipelines/exact_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

class BranchAndBound {
 public:
  BranchAndBound(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal, const Configuration& known,
                 uint64_t estimates_most)
      : pipeline_(pipeline),
        estimator_(pipeline, trace, goal),
        bounds_(pipeline, trace, goal, 1),
        estimates_most_(estimates_most),
        best_(known),
        best_cost_(cost(pipeline, known)),
        unlimited_(fastest_configuration(pipeline)) {
    for (StageConfiguration& stage : unlimited_.stages) stage.replicas = static_cast<uint32_t>(trace.size());
  }

  Result<PipelinePlan> search() {
    list_options();
    Configuration configuration = unlimited_;
    if (!branch(0, 0, configuration)) {
      return Status::resource_exhausted(fmt::format("the cheapest configuration of '{}' takes more than {} estimates",
                                                    pipeline_.name, estimates_most_));
    }
    return PipelinePlan{best_, estimator_.estimate(best_), best_cost_};
  }

 private:
  struct Option {
    StageConfiguration configuration;
    double cost = 0;
  };

  bool feasible(const Configuration& configuration) {
    ++estimates_;
    return estimator_.feasible(configuration);
  }

  // Of each stage, those that meet the goal while all others are as fast as can be, by cost.
  void list_options() {
    cheapest_rest_.assign(pipeline_.stages.size() + 1, 0);
    for (uint32_t i = 0; i < pipeline_.stages.size(); ++i) {
      options_.emplace_back();
      for (uint32_t kind = 0; kind < pipeline_.stages[i].kinds.size(); ++kind) add_options(i, kind);
      std::stable_sort(options_[i].begin(), options_[i].end(),
                       [](const Option& a, const Option& b) { return a.cost < b.cost; });
    }
    for (size_t i = pipeline_.stages.size(); i-- > 0;) {
      cheapest_rest_[i] = cheapest_rest_[i + 1] + (options_[i].empty() ? best_cost_ : options_[i].front().cost);
    }
  }

  void add_options(uint32_t stage, uint32_t kind_index) {
    const StageKind& kind = pipeline_.stages[stage].kinds[kind_index];
    for (uint32_t batch = 1;; batch = std::min(2 * batch, kind.batch_most())) {
      Configuration configuration = unlimited_;
      bool enough = false;
      for (uint32_t replicas = bounds_.replicas_least(stage, kind, batch); replicas * kind.price < best_cost_;
           ++replicas) {
        configuration.stages[stage] = {kind_index, batch, replicas};
        enough = enough || feasible(configuration);
        if (enough) options_[stage].push_back({configuration.stages[stage], replicas * kind.price});
        if (replicas >= estimator_.trace().size()) break;
      }
      if (batch >= kind.batch_most()) return;
    }
  }

  // False once there were too many estimates.
  bool branch(uint32_t stage, double cost_so_far, Configuration& configuration) {
    if (stage == pipeline_.stages.size()) {
      best_ = configuration;
      best_cost_ = cost_so_far;
      return true;
    }
    for (const Option& option : options_[stage]) {
      if (cost_so_far + option.cost + cheapest_rest_[stage + 1] >= best_cost_ * (1 - 1e-9)) break;
      if (estimates_ >= estimates_most_) return false;
      configuration.stages[stage] = option.configuration;
      if (feasible(configuration) && !branch(stage + 1, cost_so_far + option.cost, configuration)) return false;
    }
    configuration.stages[stage] = unlimited_.stages[stage];
    return true;
  }

  const PlannedPipeline& pipeline_;
  Estimator estimator_;
  const CandidateSearch bounds_;
  const uint64_t estimates_most_;
  Configuration best_;
  double best_cost_;
  Configuration unlimited_;
  std::vector<std::vector<Option>> options_;
  std::vector<double> cheapest_rest_;
  uint64_t estimates_ = 0;
};

}  // namespace

Result<PipelinePlan> plan_exactly(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                  const Configuration& known, uint64_t estimates_most) {
  return BranchAndBound(pipeline, trace, goal, known, estimates_most).search();
}

}  // namespace foliot
