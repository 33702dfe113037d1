#include "control/fleet/scalers/task_scaler.h"

#include <algorithm>
#include <set>

#include "control/variants/variant.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

std::vector<BatchLatency> latencies_of(const ModelView::OnKind& own) {
  std::vector<BatchLatency> latencies;
  for (size_t i = 0; i < own.execs.size(); ++i) {
    latencies.push_back({own.batch_sizes[i], std::max(own.execs[i], Duration::nanoseconds(1))});
  }
  return latencies;
}

}  // namespace

void TaskScaler::add(std::shared_ptr<const TaskInfo> task) {
  const ServedTaskId id = task->id;
  Scaled scaled{.info = std::move(task)};
  // The task is the one of that name with other variants: what was loaded of those that stay counts.
  for (const auto& [other_id, other] : tasks_) {
    if (other.info->name != scaled.info->name) continue;
    scaled.choices = other.choices;
    scaled.shares = other.shares;
  }
  tasks_.insert_or_assign(id, std::move(scaled));
}

ScalingProblem TaskScaler::problem_of(Scaled& scaled, const ClusterView& view) const {
  const TaskInfo& task = *scaled.info;
  const Duration slo = task.default_slo.value_or(Duration::max());
  ScalingProblem problem{.variants = {}, .slo = slo};
  for (const KindView& kind : view.kinds) {
    problem.resources.push_back({kind.name, int64_t{kind.devices_up} * kSharesPerDevice});
  }
  std::vector<Choice> choices;
  for (const TaskVariant& variant : task.variants) {
    const uint32_t model = variant.model->id.value();
    if (model >= view.models.size() || !view.models[model].served) continue;
    problem.load += view.models[model].rate;
    if (variant.accuracy < task.accuracy) continue;
    for (const ModelView::OnKind& own : view.models[model].kinds) {
      if (own.execs.empty()) continue;
      const std::string& kind = view.kinds[own.kind.value()].name;
      const std::vector<BatchLatency> latencies = latencies_of(own);
      ScalableVariant facts{.name = variant.model->name + " on " + kind, .architecture = variant.model->name};
      facts.price = std::max<int64_t>(1, per_second_of_hourly(prices_.hourly_dollars_of(kind)) / kSharesPerDevice);
      facts.saturation = saturation_within(latencies, slo) / kSharesPerDevice;
      facts.latency = latencies.front().latency;
      facts.load = own.load;
      facts.needs.assign(problem.resources.size(), 0);
      facts.needs[own.kind.value()] = 1;
      problem.variants.push_back(std::move(facts));
      choices.push_back({variant.model->id, own.kind});
    }
  }
  std::vector<int64_t> shares(choices.size(), 0);
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto before = std::ranges::find(scaled.choices, choices[i]);
    if (before != scaled.choices.end()) shares[i] = scaled.shares[static_cast<size_t>(before - scaled.choices.begin())];
    problem.variants[i].running = shares[i];
  }
  if (choices != scaled.choices || scaled.autoscaler == nullptr) {
    scaled.autoscaler = std::make_unique<ModelAutoscaler>(solver_, options_);
  }
  scaled.choices = std::move(choices);
  scaled.shares = std::move(shares);
  return problem;
}

// A task on one kind compares no prices.
std::vector<std::string> TaskScaler::unpriced_kinds(const Scaled& scaled, const ClusterView& view) const {
  std::set<std::string> kinds;
  for (const Choice& choice : scaled.choices) {
    const KindView& kind = view.kinds[choice.kind.value()];
    if (kind.devices_up > 0) kinds.insert(kind.name);
  }
  if (kinds.size() < 2) return {};
  std::erase_if(kinds, [&](const std::string& kind) { return prices_.hourly_dollars.contains(kind); });
  return {kinds.begin(), kinds.end()};
}

// What others have taken is not there. What devices that left had is lost.
void TaskScaler::limit_to(ScalingProblem& problem, const std::vector<int64_t>& free) {
  for (size_t r = 0; r < problem.resources.size(); ++r) {
    problem.resources[r].total = free[r];
    int64_t left = free[r];
    for (ScalableVariant& variant : problem.variants) {
      if (variant.needs[r] == 0) continue;
      variant.running = std::min(variant.running, left);
      left -= variant.running;
    }
  }
}

void TaskScaler::add_targets(const Scaled& scaled, Targets& targets) {
  std::map<ModelId, uint32_t> copies;
  for (size_t i = 0; i < scaled.choices.size(); ++i) {
    copies[scaled.choices[i].model] +=
        static_cast<uint32_t>((scaled.shares[i] + kSharesPerDevice - 1) / kSharesPerDevice);
  }
  for (const auto& [model, count] : copies) {
    if (count == 0) continue;
    ModelTarget& target = targets.models[model];
    target.copies_least = std::max(target.copies_least, count);
  }
}

TaskScaler::Step TaskScaler::step(const ClusterView& view, TimePoint now) {
  Step step;
  std::vector<int64_t> free;
  for (const KindView& kind : view.kinds) free.push_back(int64_t{kind.devices_up} * kSharesPerDevice);
  for (auto& [id, scaled] : tasks_) {
    ScalingProblem problem = problem_of(scaled, view);
    if (problem.variants.empty()) continue;
    if (std::vector<std::string> kinds = unpriced_kinds(scaled, view); !kinds.empty()) {
      step.unpriced[scaled.info->name] = std::move(kinds);
    }
    limit_to(problem, free);
    const ScalingStep scaling = scaled.autoscaler->step(problem, now);
    if (!scaling.status.ok()) step.troubles[scaled.info->name] = scaling.status;
    for (size_t i = 0; i < scaled.choices.size(); ++i) {
      const int64_t delta = i < scaling.deltas.size() ? scaling.deltas[i] : 0;
      scaled.shares[i] = std::max<int64_t>(0, problem.variants[i].running + delta);
      for (size_t r = 0; r < free.size(); ++r) {
        free[r] = std::max<int64_t>(0, free[r] - problem.variants[i].needs[r] * scaled.shares[i]);
      }
    }
    add_targets(scaled, step.targets);
  }
  return step;
}

}  // namespace foliot
