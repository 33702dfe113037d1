#include "planning/pipelines/pipeline_tuners.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace foliot {
namespace {

// Arrivals that a tuner keeps: so many times those of the plan's longest window. A ratio beyond that counts as that.
constexpr size_t kArrivalsOverPlanned = 16;
constexpr size_t kArrivalsLeast = 4096;

// Empty: it is a plan of this pipeline.
std::string difference(const SavedPlan& saved, const TunedPipeline& pipeline) {
  const TuningPlan& plan = saved.plan;
  if (!plan.content.empty() && !pipeline.content.empty() && plan.content != pipeline.content) {
    return fmt::format("{}: is a plan of another pipeline.toml than the one that is served; plan it again", saved.file);
  }
  for (size_t i = 0; i < std::max(plan.stages.size(), pipeline.stages.size()); ++i) {
    const std::string planned = i < plan.stages.size() ? plan.stages[i].name : "";
    const std::string served = i < pipeline.stages.size() ? pipeline.stages[i].name : "";
    if (planned != served) {
      return fmt::format("{}: stage {} is '{}', and that of the pipeline '{}'; plan it again", saved.file, i + 1,
                         planned, served);
    }
    if (plan.stages[i].model != pipeline.stages[i].model_name) {
      return fmt::format("{}: stage '{}' has model '{}', and that of the pipeline '{}'; plan it again", saved.file,
                         served, plan.stages[i].model, pipeline.stages[i].model_name);
    }
  }
  return "";
}

TunerOptions options_for(TunerOptions options, const TuningPlan& plan) {
  options.arrivals_most = std::clamp(kArrivalsOverPlanned * plan.envelope.most.back(),
                                     std::min(kArrivalsLeast, options.arrivals_most), options.arrivals_most);
  return options;
}

uint32_t count_of(const std::map<std::string, uint32_t>& up, const std::string& kind) {
  const auto found = up.find(kind);
  return found == up.end() ? 0 : found->second;
}

}  // namespace

TunedPipeline::TunedPipeline(const PipelineInfo& info) : id(info.id), name(info.name), content(info.content) {
  for (const PipelineStage& stage : info.stages) {
    stages.push_back({stage.name, stage.model->name, stage.model->id, edges_of(stage)});
  }
}

void PipelineTuners::set_plans(std::map<std::string, SavedPlan> plans) {
  std::erase_if(plans_, [&](const auto& each) { return !plans.contains(each.first); });
  for (auto& [name, plan] : plans) {
    Planned& planned = plans_[name];
    planned.damaged = plan.status.message();
    // One that was just made has no stages.
    const bool had = !planned.plan.plan.stages.empty() && planned.plan.status.ok() && planned.mismatch.empty();
    if (!plan.status.ok() && had) continue;
    if (had && planned.plan.plan == plan.plan) continue;
    planned.tuner.reset();
    planned.plan = std::move(plan);
    attach(name, planned);
  }
}

const TunedPipeline* PipelineTuners::served(const std::string& name) const {
  const TunedPipeline* last = nullptr;
  for (const auto& [id, pipeline] : served_) {
    if (pipeline.name == name) last = &pipeline;
  }
  return last;
}

void PipelineTuners::attach(const std::string& name, Planned& planned) {
  const TunedPipeline* const pipeline = served(name);
  const bool usable = planned.plan.status.ok() && pipeline != nullptr;
  planned.mismatch = usable ? difference(planned.plan, *pipeline) : "";
  if (!usable || !planned.mismatch.empty()) {
    planned.tuner.reset();
  } else if (planned.tuner == nullptr) {
    make_tuner(*pipeline, planned);
  }
}

void PipelineTuners::make_tuner(const TunedPipeline& pipeline, Planned& planned) const {
  const TuningPlan& plan = planned.plan.plan;
  const auto* const replan = std::get_if<ReplanOptions>(&method_);
  planned.replans = nullptr;
  if (replan == nullptr || !plan.can_estimate()) {
    const TunerOptions options = replan == nullptr ? std::get<TunerOptions>(method_) : TunerOptions::by_ratio();
    planned.tuner = std::make_unique<Tuner>(plan, options_for(options, plan));
    return;
  }
  std::vector<StageEdges> edges;
  for (const TunedPipeline::Stage& stage : pipeline.stages) edges.push_back(stage.edges);
  auto tuner = std::make_unique<ReplanTuner>(plan, edges, *replan);
  planned.replans = tuner.get();
  planned.tuner = std::move(tuner);
}

void PipelineTuners::share_work() {
  const auto* const options = std::get_if<ReplanOptions>(&method_);
  if (options == nullptr) return;
  const auto replans = [](const Planned& planned) { return planned.tuner != nullptr && planned.replans != nullptr; };
  const auto count = std::ranges::count_if(plans_, [&](const auto& each) { return replans(each.second); });
  for (auto& [name, planned] : plans_) {
    if (replans(planned)) planned.replans->set_replayed_most(options->replayed_most / static_cast<uint64_t>(count));
  }
}

void PipelineTuners::add(TunedPipeline pipeline) {
  const std::string name = pipeline.name;
  served_.insert_or_assign(pipeline.id, std::move(pipeline));
  if (const auto planned = plans_.find(name); planned != plans_.end()) attach(name, planned->second);
}

void PipelineTuners::remove(PipelineId pipeline) {
  const auto removed = served_.extract(pipeline);
  if (!removed) return;
  const std::string& name = removed.mapped().name;
  if (const auto planned = plans_.find(name); planned != plans_.end()) attach(name, planned->second);
}

void PipelineTuners::arrive(PipelineId pipeline, TimePoint at) {
  const auto found = served_.find(pipeline);
  if (found == served_.end()) return;
  const auto planned = plans_.find(found->second.name);
  if (planned == plans_.end() || planned->second.tuner == nullptr) return;
  last_ = std::max(last_, at);
  planned->second.tuner->arrive(last_);
}

void PipelineTuners::add_targets(const TunedPipeline& pipeline, const Planned& planned, Step& step) {
  const std::vector<uint32_t>& replicas = planned.tuner->replicas();
  for (size_t i = 0; i < replicas.size(); ++i) {
    const TuningPlan::Stage& stage = planned.plan.plan.stages[i];
    step.replicas.push_back({pipeline.name, stage.name, replicas[i], stage.replicas});
    step.devices[stage.kind] += replicas[i];
    step.targets[pipeline.stages[i].model].copies_least += replicas[i];
  }
}

// Empty: none.
std::string PipelineTuners::trouble_of(const std::string& name, const Planned& planned) {
  const std::string& reason = planned.mismatch.empty() ? planned.damaged : planned.mismatch;
  if (reason.empty()) return "";
  const bool keeps = planned.mismatch.empty() && planned.plan.status.ok();
  return fmt::format("pipeline '{}' {}: {}", name, keeps ? "keeps the plan that it had" : "is not tuned", reason);
}

PipelineTuners::Step PipelineTuners::step(const std::map<std::string, uint32_t>& up, TimePoint now) {
  last_ = std::max(last_, now);
  share_work();
  Step step;
  // Kinds of the models' stages; of those in `anywhere` one has no device.
  std::map<ModelId, std::set<std::string>> kinds;
  std::set<ModelId> anywhere;
  for (auto& [name, planned] : plans_) {
    if (const std::string trouble = trouble_of(name, planned); !trouble.empty()) step.troubles[name] = trouble;
    const TunedPipeline* const pipeline = served(name);
    if (planned.tuner == nullptr || pipeline == nullptr) continue;
    planned.tuner->tick(last_);
    add_targets(*pipeline, planned, step);
    for (size_t i = 0; i < pipeline->stages.size(); ++i) {
      const std::string& kind = planned.plan.plan.stages[i].kind;
      kinds[pipeline->stages[i].model].insert(kind);
      if (count_of(up, kind) == 0) anywhere.insert(pipeline->stages[i].model);
    }
  }
  for (auto& [model, target] : step.targets) {
    if (!anywhere.contains(model)) target.kinds.assign(kinds[model].begin(), kinds[model].end());
  }
  for (const auto& [kind, wanted] : step.devices) {
    if (count_of(up, kind) >= wanted) continue;
    step.shortages[kind] =
        fmt::format("tuned pipelines want {} devices of kind '{}', and {} are up: a model has at most as many copies",
                    wanted, kind, count_of(up, kind));
  }
  return step;
}

}  // namespace foliot
