#include "planning/pipelines/planned_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace foliot {
namespace {

constexpr uint32_t kDraws = 1 << 16;  // for shares of queries: a standard error of at most 0.002
constexpr uint64_t kSeed = 18;
// A measured share of the queries may exceed that of the stages before by chance.
constexpr double kShareTolerance = 0.02;

// The share of queries that reach each stage, from the visits of the stages before it: observed
// ones, or draws.
class Draws {
 public:
  Draws() : observed_(false), visits_(kDraws) {}
  explicit Draws(std::vector<VisitSet> observed) : Draws() {
    if (observed.empty()) return;
    observed_ = true;
    visits_ = std::move(observed);
  }

  double reached(const PlannedStage& stage) const {
    const auto count =
        std::count_if(visits_.begin(), visits_.end(), [&](VisitSet visits) { return stage.reached_by(visits); });
    return static_cast<double>(count) / static_cast<double>(visits_.size());
  }
  void visit(uint32_t index, const PlannedStage& stage) {
    if (observed_) return;
    for (VisitSet& visits : visits_) {
      if (stage.reached_by(visits) && random_.uniform() < stage.probability) visits |= VisitSet{1} << index;
    }
  }

 private:
  Random random_{kSeed};
  bool observed_;
  std::vector<VisitSet> visits_;
};

std::vector<uint32_t> positions(const PipelineSpec& spec, const std::vector<TensorName>& names) {
  std::vector<uint32_t> found;
  for (const TensorName& name : names) {
    for (uint32_t i = 0; i < spec.stages.size(); ++i) {
      if (spec.stages[i].name == name.stage) found.push_back(i);
    }
  }
  return found;
}

// `needed`: the stage is skipped where none of these was visited.
template <typename Edges>
void add_sources(std::vector<uint32_t> sources, bool needed, Edges& to) {
  to.parents.insert(to.parents.end(), sources.begin(), sources.end());
  if (needed && !sources.empty()) to.needs.push_back(std::move(sources));
}

void sort_unique(std::vector<uint32_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

void add_edges(const PipelineSpec& spec, const StageSpec& from, PlannedStage& to) {
  for (const auto& [input, names] : from.inputs) {
    const bool from_call =
        std::any_of(names.begin(), names.end(), [](const TensorName& name) { return name.stage.empty(); });
    add_sources(positions(spec, names), !from_call, to);
  }
  for (const StageSpec::When& when : from.when) add_sources(positions(spec, {when.output}), true, to);
  if (from.for_each) {
    const std::vector<uint32_t> counting = positions(spec, {from.for_each->count});
    to.counted_by = counting.front();
    add_sources(counting, true, to);
  }
  sort_unique(to.parents);
}

Status add_kinds(const StageProfile& profile, const PlanningInputs& inputs, PlannedStage& to) {
  for (const KindProfile& measured : profile.kinds) {
    const auto devices = inputs.devices.find(measured.kind);
    if (devices != inputs.devices.end() && devices->second == 0) continue;
    const auto price = inputs.prices.find(measured.kind);
    if (price == inputs.prices.end()) {
      return Status::invalid_argument(
          fmt::format("{}: no price of '{}', on which {} measures stage '{}': add a line '\"{}\" = DOLLARS'",
                      inputs.prices_file, measured.kind, inputs.profiles_file, to.name, measured.kind));
    }
    StageKind kind{measured.kind, price->second, measured.batch_sizes, {0}};
    for (uint32_t rows = 1; rows <= measured.batch_sizes.back(); ++rows) {
      kind.durations_ns.push_back(measured.duration(rows, inputs.quantile).nanoseconds());
    }
    to.kinds.push_back(std::move(kind));
  }
  if (to.kinds.empty()) {
    return Status::invalid_argument(
        fmt::format("{}: has 0 devices of each kind on which {} measures stage '{}': give it one at least",
                    inputs.prices_file, inputs.profiles_file, to.name));
  }
  return Status();
}

// As many visits as the stage may have.
Status check_visits(const StageSpec& stage, const StageProfile& profile, const std::string& file) {
  const uint32_t most = stage.for_each ? stage.for_each->at_most : 1;
  const auto wrong = [&](const std::string& what) {
    return Status::invalid_argument(
        fmt::format("{}: stage '{}' has {}; a query visits it at most {} (for_each in the "
                    "pipeline's file)",
                    file, stage.name, what, most == 1 ? "once" : fmt::format("{} times", most)));
  };
  if (profile.scale_factor > most) return wrong(fmt::format("{} visits on average", profile.scale_factor));
  if (profile.visits_shares.size() > most + 1) {
    return wrong(fmt::format("shares of up to {} visits", profile.visits_shares.size() - 1));
  }
  if (stage.for_each || profile.visits_shares.empty()) return Status();
  return wrong("a list of shares of numbers of visits");
}

}  // namespace

bool PlannedStage::reached_by(VisitSet visits) const {
  return std::all_of(needs.begin(), needs.end(), [&](const std::vector<uint32_t>& alternatives) {
    return std::any_of(alternatives.begin(), alternatives.end(), [&](uint32_t i) { return (visits >> i & 1) != 0; });
  });
}

void PlannedStage::set_mean_visits(double mean) {
  const auto below = static_cast<size_t>(mean);
  visits_shares.assign(below + 2, 0);
  visits_shares[below + 1] = mean - static_cast<double>(below);
  visits_shares[below] = 1 - visits_shares[below + 1];
}

uint8_t PlannedStage::visits_at(double rank) const {
  double left = rank * std::accumulate(visits_shares.begin(), visits_shares.end(), 0.0);
  size_t visits = 0;
  while (visits + 1 < visits_shares.size() && left >= visits_shares[visits]) left -= visits_shares[visits++];
  return static_cast<uint8_t>(visits);
}

StageEdges edges_of(const PipelineStage& stage) {
  StageEdges edges;
  for (const std::vector<TensorSource>& sources : stage.inputs) {
    std::vector<uint32_t> stages;
    for (const TensorSource& source : sources) {
      if (source.stage) stages.push_back(*source.stage);
    }
    const bool from_call = stages.size() < sources.size();
    add_sources(std::move(stages), !from_call, edges);
  }
  for (const PipelineStage::Requirement& each : stage.requires_all) add_sources({each.stage}, true, edges);
  if (stage.for_each) {
    edges.counted_by = stage.for_each->stage;
    add_sources({stage.for_each->stage}, true, edges);
  }
  sort_unique(edges.parents);
  return edges;
}

bool PlannedPipeline::unconditional() const {
  return std::all_of(stages.begin(), stages.end(), [](const PlannedStage& stage) {
    return stage.probability >= 1 && (!stage.counted_by || stage.visits_shares.front() <= 0);
  });
}

bool PlannedPipeline::has_elements() const {
  return std::any_of(stages.begin(), stages.end(),
                     [](const PlannedStage& stage) { return stage.counted_by.has_value(); });
}

std::vector<uint8_t> PlannedPipeline::draw_elements(Random& random) const {
  std::vector<double> ranks;
  for (size_t i = 0; i < stages.size(); ++i) ranks.push_back(random.uniform());
  std::vector<uint8_t> elements;
  for (const PlannedStage& stage : stages) {
    elements.push_back(stage.counted_by ? stage.visits_at(ranks[*stage.counted_by]) : uint8_t{1});
  }
  return elements;
}

VisitSet PlannedPipeline::draw_visits(Random& random) const {
  VisitSet visits = 0;
  for (uint32_t i = 0; i < stages.size(); ++i) {
    // Each stage takes a number of every query, so that probabilities do not disturb each other.
    const bool holds = random.uniform() < stages[i].probability;
    if (holds && stages[i].reached_by(visits)) visits |= VisitSet{1} << i;
  }
  return visits;
}

void PlannedPipeline::set_scale_factors() {
  Draws draws;
  for (uint32_t i = 0; i < stages.size(); ++i) {
    const double visits = stages[i].counted_by ? mean_of_shares(stages[i].visits_shares) : 1;
    stages[i].scale_factor = draws.reached(stages[i]) * stages[i].probability * visits;
    draws.visit(i, stages[i]);
  }
}

void PlannedPipeline::set_probabilities() {
  Draws draws;
  for (uint32_t i = 0; i < stages.size(); ++i) {
    const double reached = draws.reached(stages[i]);
    if (stages[i].counted_by) {
      stages[i].set_mean_visits(reached > 0 ? stages[i].scale_factor / reached : 0);
    } else {
      stages[i].scale_factor = std::min(stages[i].scale_factor, reached);
      stages[i].probability = reached > 0 ? stages[i].scale_factor / reached : 0;
    }
    draws.visit(i, stages[i]);
  }
}

std::vector<std::string> stages_without_visits(const PipelineSpec& spec, const StageProfiles& profiles) {
  std::vector<std::string> stages;
  for (const StageSpec& stage : spec.stages) {
    const auto profile = profiles.find(stage.name);
    const bool is_conditional = !stage.when.empty() || stage.for_each.has_value();
    if (is_conditional && profile != profiles.end() && !profile->second.has_visits) stages.push_back(stage.name);
  }
  return stages;
}

Result<PlannedPipeline> plan_stages(const PipelineSpec& spec, const PlanningInputs& inputs) {
  PlannedPipeline pipeline{spec.name, {}, inputs.devices};
  Draws draws(inputs.visits);
  for (uint32_t i = 0; i < spec.stages.size(); ++i) {
    const StageSpec& from = spec.stages[i];
    const auto profile = inputs.profiles.find(from.name);
    if (profile == inputs.profiles.end()) {
      return Status::invalid_argument(
          fmt::format("{}: no [[profile]] of stage '{}' ({}:{}): measure it, or add durations by hand",
                      inputs.profiles_file, from.name, spec.file, from.line));
    }
    PlannedStage stage{from.name, {}, {}, 1, profile->second.scale_factor, {}};
    add_edges(spec, from, stage);
    const double reached = draws.reached(stage);
    FOLIOT_RETURN_IF_ERROR(check_visits(from, profile->second, inputs.profiles_file));
    if (from.for_each) {
      stage.visits_shares = profile->second.visits_shares;
      if (stage.visits_shares.empty()) {
        stage.set_mean_visits(reached > 0 ? stage.scale_factor / reached : 0);
      } else {  // those of all queries, of which not all reach it
        const double sum = std::accumulate(stage.visits_shares.begin(), stage.visits_shares.end(), 0.0);
        stage.visits_shares.front() = std::max(0.0, stage.visits_shares.front() - (1 - reached) * sum);
      }
      FOLIOT_RETURN_IF_ERROR(add_kinds(profile->second, inputs, stage));
      draws.visit(i, stage);
      pipeline.stages.push_back(std::move(stage));
      continue;
    }
    if (stage.scale_factor < 1 && stage.scale_factor > reached + kShareTolerance) {
      return Status::invalid_argument(fmt::format(
          "{}: stage '{}' cannot be visited by {} of the queries: the stages that it needs are visited by {:.2f}",
          inputs.profiles_file, stage.name, stage.scale_factor, reached));
    }
    stage.scale_factor = std::min(stage.scale_factor, reached);
    stage.probability = reached > 0 ? std::min(1.0, stage.scale_factor / reached) : 0;
    FOLIOT_RETURN_IF_ERROR(add_kinds(profile->second, inputs, stage));
    draws.visit(i, stage);
    pipeline.stages.push_back(std::move(stage));
  }
  return pipeline;
}

}  // namespace foliot
