#include "load/workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "foundation/base/random.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {
namespace {

constexpr uint32_t kModelsMax = 1'000'000;
constexpr uint32_t kConcurrencyMax = 65'536;

}  // namespace

uint32_t Workload::models() const { return first_model(groups.size()); }

uint32_t Workload::first_model(size_t group) const {
  uint32_t first = 0;
  for (size_t i = 0; i < group; ++i) first += groups[i].count;
  return first;
}

std::vector<uint32_t> Workload::group_of_models() const {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < groups.size(); ++i) result.insert(result.end(), groups[i].count, i);
  return result;
}

std::vector<std::string> Workload::model_names() const {
  std::vector<std::string> names;
  for (const ModelGroup& group : groups) {
    for (uint32_t i = 0; i < group.count; ++i) {
      names.push_back(group.count == 1 ? group.name : fmt::format("{}_{}", group.name, i));
    }
  }
  return names;
}

std::vector<uint32_t> Workload::models_of(const Stream& stream) const {
  std::vector<uint32_t> models;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::optional<uint32_t> pipeline = pipeline_of(stream);
    const bool asked =
        pipeline ? pipelines[*pipeline].stages.front().models == groups[i].name
                 : stream.models.empty() || std::count(stream.models.begin(), stream.models.end(), groups[i].name);
    if (!asked) continue;
    const uint32_t first = first_model(i);
    for (uint32_t model = first; model < first + groups[i].count; ++model) models.push_back(model);
  }
  if (stream.popularity_seed > 0) {
    Random random(stream.popularity_seed);
    for (size_t i = models.size(); i > 1; --i) std::swap(models[i - 1], models[random.below(i)]);
  }
  return models;
}

std::optional<uint32_t> Workload::pipeline_of(const Stream& stream) const {
  const auto found = std::ranges::find(pipelines, stream.pipeline, &PipelineLoad::name);
  if (found == pipelines.end()) return std::nullopt;
  return static_cast<uint32_t>(found - pipelines.begin());
}

Duration Workload::slo_of(const Stream& stream, const ModelGroup& group) const {
  if (stream.best_effort) return Duration::max();
  const std::optional<uint32_t> pipeline = pipeline_of(stream);
  return stream.slo.value_or((pipeline ? pipelines[*pipeline].slo : group.slo).value_or(Duration::max()));
}

Status Workload::check_groups() const {
  std::set<std::string> names;
  uint64_t count = 0;
  for (const ModelGroup& group : groups) {
    const auto wrong = [&](std::string_view what) {
      return Status::invalid_argument(fmt::format("models '{}': {}", group.name, what));
    };
    if (group.name.empty()) return Status::invalid_argument("models without a name");
    if (!names.insert(group.name).second) return wrong("the name is given twice");
    if (group.count == 0) return wrong("count must be above 0");
    if (group.slo && *group.slo <= Duration()) return wrong("slo must be above 0");
    if (!(std::isfinite(group.weight) && group.weight > 0)) return wrong("weight must be above 0");
    count += group.count;
  }
  if (count > kModelsMax) return Status::invalid_argument(fmt::format("more than {} models", kModelsMax));
  return Status();
}

Status Workload::check_stream(const Stream& stream) const {
  const auto wrong = [&](std::string_view what) {
    return Status::invalid_argument(fmt::format("stream '{}': {}", stream.name, what));
  };
  if (!stream.pipeline.empty() && !pipeline_of(stream)) {
    return wrong(fmt::format("pipeline '{}' does not exist", stream.pipeline));
  }
  if (!stream.pipeline.empty() && !stream.models.empty()) return wrong("models and pipeline exclude each other");
  for (const std::string& name : stream.models) {
    const bool known =
        std::any_of(groups.begin(), groups.end(), [&](const ModelGroup& group) { return group.name == name; });
    if (!known) return wrong(fmt::format("models '{}' do not exist", name));
  }
  if (!(std::isfinite(stream.zipf) && stream.zipf >= 0)) return wrong("zipf must not be negative");
  if (stream.slo && *stream.slo <= Duration()) return wrong("slo must be above 0");
  if (stream.slo && stream.best_effort) return wrong("slo and best_effort exclude each other");
  if (stream.start < Duration()) return wrong("start must not be negative");
  if (stream.stop <= stream.start) return wrong("stop must come after start");
  if (stream.activate_every < Duration()) return wrong("activate_every must not be negative");
  const bool ramp = stream.activate_every > Duration();
  if (stream.concurrency > 0) {
    if (stream.trace != nullptr) return wrong("concurrency and a trace exclude each other");
    if (stream.concurrency > kConcurrencyMax) return wrong(fmt::format("concurrency goes up to {}", kConcurrencyMax));
    if (stream.think_time <= Duration()) return wrong("think_time must be above 0");
    return Status();
  }
  if (stream.trace != nullptr) {
    return ramp ? wrong("activate_every and a trace exclude each other") : Status();
  }
  if (ramp && (stream.per_model || stream.zipf > 0)) {
    return wrong("activate_every needs one process and uniform popularity");
  }
  if (stream.per_model && stream.arrivals.kind == ArrivalKind::kReplay) {
    return wrong("a trace of instants is of one process: per_model does not go with it");
  }
  FOLIOT_RETURN_IF_ERROR(check_recorded(stream));
  const auto arrivals = make_arrivals(stream.arrivals);
  return arrivals.ok() ? Status() : wrong(arrivals.status().message());
}

Status Workload::check_recorded(const Stream& stream) const {
  if (stream.recorded.empty()) return Status();
  const auto wrong = [&](const std::string& what) {
    return Status::invalid_argument(fmt::format("stream '{}': recorded runs {}", stream.name, what));
  };
  const std::optional<uint32_t> pipeline = pipeline_of(stream);
  const size_t instants = stream.arrivals.instants.size();
  if (!pipeline || stream.arrivals.kind != ArrivalKind::kReplay || stream.start != Duration()) {
    return wrong("are of a stream that replays all runs of a pipeline");
  }
  if (stream.recorded.size() != instants) {
    return wrong(fmt::format("are {}, of {} instants", stream.recorded.size(), instants));
  }
  const std::vector<PipelineLoad::Stage>& stages = pipelines[*pipeline].stages;
  for (const std::optional<RecordedRun>& run : stream.recorded) {
    if (!run || run->elements.empty()) continue;
    if (run->elements.size() != stages.size()) return wrong("have elements of other stages than the pipeline has");
    for (size_t i = 0; i < stages.size(); ++i) {
      if (run->elements[i] <= stages[i].elements_most()) continue;
      return wrong(fmt::format("have {} elements of stage '{}', which has {} at most", run->elements[i], stages[i].name,
                               stages[i].elements_most()));
    }
  }
  return Status();
}

Status Workload::check_elements(const PipelineLoad& pipeline, const PipelineLoad::Stage& stage) {
  const auto wrong = [&](std::string_view what) {
    return Status::invalid_argument(fmt::format("pipeline '{}': stage '{}': {}", pipeline.name, stage.name, what));
  };
  if (!stage.elements.empty() && stage.elements_most() == 0) {
    return wrong("elements must be probable to be 0, 1 and so on: at least two numbers");
  }
  const PipelineLoad::Stage* const before = stage.after.empty() ? nullptr : pipeline.find(stage.after.front());
  if (stage.share < 1 && before != nullptr && !before->for_each.empty()) {
    return wrong(fmt::format("a share is of a stage that is visited once, and '{}' is visited for each element of '{}'",
                             before->name, before->for_each));
  }
  if (stage.for_each.empty()) return Status();
  if (!stage.elements.empty()) return wrong("it is visited for each element, and cannot have elements of its own");
  const PipelineLoad::Stage* const counts = pipeline.find(stage.for_each);
  const bool is_earlier = counts != nullptr && counts < &stage;
  if (!is_earlier) return wrong(fmt::format("for_each: there is no stage '{}' before it", stage.for_each));
  if (counts->elements.empty()) return wrong(fmt::format("for_each: stage '{}' has no elements", stage.for_each));
  return Status();
}

Status Workload::check_pipelines() const {
  std::set<std::string> names;
  for (const PipelineLoad& pipeline : pipelines) {
    const auto wrong = [&](std::string_view what) {
      return Status::invalid_argument(fmt::format("pipeline '{}': {}", pipeline.name, what));
    };
    if (pipeline.name.empty()) return Status::invalid_argument("a pipeline without a name");
    if (!names.insert(pipeline.name).second) return wrong("the name is given twice");
    if (pipeline.slo && *pipeline.slo <= Duration()) return wrong("slo must be above 0");
    if (pipeline.stages.empty()) return wrong("no stages: [[pipelines.stages]] is missing");
    if (pipeline.stages.size() > kStagesMax) {
      return wrong(fmt::format("{} stages; it may have {}", pipeline.stages.size(), kStagesMax));
    }
    uint64_t slots = 0;
    std::map<std::string, uint32_t> conditions;  // of each stage so far
    for (const PipelineLoad::Stage& stage : pipeline.stages) {
      const auto wrong_stage = [&](std::string_view what) {
        return wrong(fmt::format("stage '{}': {}", stage.name, what));
      };
      const auto group = std::ranges::find(groups, stage.models, &ModelGroup::name);
      if (group == groups.end()) return wrong_stage(fmt::format("models '{}' do not exist", stage.models));
      if (group->count != 1)
        return wrong_stage(fmt::format("models '{}' have a count of {}; it must be 1", stage.models, group->count));
      for (const std::string& name : stage.after) {
        if (!conditions.contains(name)) return wrong_stage(fmt::format("there is no stage '{}' before it", name));
      }
      for (const std::string& name : stage.first_of) {
        if (!conditions.contains(name)) return wrong_stage(fmt::format("there is no stage '{}' before it", name));
      }
      if (!(stage.share > 0 && stage.share <= 1)) return wrong_stage("share must be above 0 and at most 1");
      if (stage.share < 1 && stage.after.empty()) {
        return wrong_stage(stage.first_of.empty() ? "the first stage is visited by all runs: share must be 1"
                                                  : "a share is of a stage in 'after', which is empty");
      }
      if (stage.share < 1 && ++conditions[stage.after.front()] > kConditionsMax) {
        return wrong_stage(
            fmt::format("more than {} stages with a share come after '{}'", kConditionsMax, stage.after.front()));
      }
      if (!conditions.emplace(stage.name, 0).second) return wrong_stage("the name is given twice");
      FOLIOT_RETURN_IF_ERROR(check_elements(pipeline, stage));
      slots += stage.for_each.empty() ? 1 : pipeline.find(stage.for_each)->elements_most();
      if (slots > kSlotsMax) {
        return wrong_stage(fmt::format("a run may have {} visits up to here; it may have {}", slots, kSlotsMax));
      }
    }
  }
  return Status();
}

Status Workload::check() const {
  if (groups.empty()) return Status::invalid_argument("no models: [[models]] is missing");
  FOLIOT_RETURN_IF_ERROR(check_groups());
  FOLIOT_RETURN_IF_ERROR(check_pipelines());
  if (streams.empty()) return Status::invalid_argument("no requests: [[streams]] is missing");
  for (const Stream& stream : streams) FOLIOT_RETURN_IF_ERROR(check_stream(stream));
  return Status();
}

}  // namespace foliot
