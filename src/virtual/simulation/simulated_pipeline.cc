#include "virtual/simulation/simulated_pipeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "foundation/base/random.h"

namespace foliot {

std::shared_ptr<const PipelineInfo> simulated_pipeline(const Workload& workload, size_t position,
                                                       std::span<const std::shared_ptr<const ModelInfo>> models) {
  const PipelineLoad& load = workload.pipelines[position];
  auto pipeline = std::make_shared<PipelineInfo>();
  pipeline->id = PipelineId(static_cast<uint32_t>(position + 1));
  pipeline->name = load.name;
  for (const PipelineLoad::Stage& stage : load.stages) {
    const auto group = std::ranges::find(workload.groups, stage.models, &ModelGroup::name) - workload.groups.begin();
    PipelineStage own{.name = stage.name,
                      .model = models[workload.first_model(static_cast<size_t>(group))],
                      .bucket = BucketId(0),
                      .inputs = {},
                      .conditions = {},
                      .requires_all = {}};
    if (!stage.elements.empty()) own.count = {.at_most = stage.elements_most()};
    if (const PipelineLoad::Stage* const counts = load.find(stage.for_each)) {
      own.for_each = {.stage = static_cast<uint32_t>(counts - load.stages.data()), .at_most = counts->elements_most()};
    }
    const auto position_of = [&](const std::string& name) {
      const auto found = std::ranges::find(load.stages, name, &PipelineLoad::Stage::name);
      return static_cast<uint32_t>(found - load.stages.begin());
    };
    if (stage.after.empty() && stage.first_of.empty()) own.inputs.push_back({TensorSource()});
    if (!stage.first_of.empty()) {
      std::vector<TensorSource>& sources = own.inputs.emplace_back();
      for (const std::string& name : stage.first_of) sources.push_back({.stage = position_of(name)});
    }
    for (const std::string& name : stage.after) {
      const uint32_t before = position_of(name);
      const bool has_elements = load.stages[before].for_each == stage.for_each || name == stage.for_each;
      own.inputs.push_back({{.stage = before, .each = own.for_each && has_elements}});
      if (stage.share >= 1 || !own.requires_all.empty()) continue;
      std::vector<StageCondition>& conditions = pipeline->stages[before].conditions;
      own.requires_all.push_back({.stage = before, .condition = static_cast<uint32_t>(conditions.size())});
      conditions.push_back({.comparison = StageCondition::Comparison::kBelow, .limit = stage.share});
    }
    pipeline->stages.push_back(std::move(own));
  }
  return pipeline;
}

VisitReading drawn_reading(const PipelineLoad::Stage& load, const PipelineStage& stage, uint32_t position,
                           RequestId run, uint64_t seed) {
  uint32_t held = 0;
  Random random(seed ^ (run.value() * kStagesMax + position + 1));
  for (uint32_t i = 0; i < stage.conditions.size(); ++i) {
    if (random.uniform() < stage.conditions[i].limit) held |= 1u << i;
  }
  VisitReading reading{.conditions = static_cast<ConditionSet>(held)};
  if (load.elements.empty()) return reading;
  double left = random.uniform() * std::accumulate(load.elements.begin(), load.elements.end(), 0.0);
  uint32_t count = 0;
  for (uint32_t i = 0; i < load.elements.size(); ++i) {
    if (load.elements[i] <= 0) continue;
    count = i;
    if (left < load.elements[i]) break;
    left -= load.elements[i];
  }
  reading.count = static_cast<float>(count);
  return reading;
}

VisitReading recorded_reading(const RecordedRun& recorded, const PipelineInfo& pipeline, uint32_t position) {
  uint32_t held = 0;
  for (uint32_t stage = position + 1; stage < pipeline.stages.size(); ++stage) {
    for (const PipelineStage::Requirement& required : pipeline.stages[stage].requires_all) {
      if (required.stage == position && (recorded.visited >> stage & 1) != 0) held |= 1u << required.condition;
    }
  }
  VisitReading reading{.conditions = static_cast<ConditionSet>(held)};
  if (!recorded.elements.empty()) reading.count = recorded.elements[position];
  return reading;
}

}  // namespace foliot
