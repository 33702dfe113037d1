#include "answer/pipelines/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/pipelines/number_range.h"
#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

std::string names_of(const std::vector<TensorSpec>& specs) {
  std::vector<std::string_view> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<uint32_t> position_of(const std::vector<TensorSpec>& specs, std::string_view name) {
  const auto found = std::ranges::find(specs, name, &TensorSpec::name);
  if (found == specs.end()) return std::nullopt;
  return static_cast<uint32_t>(found - specs.begin());
}

// With the bucket's extents; -1 where there is no bucket.
Shape extents_in(const TensorSpec& spec, const Bucket* bucket) {
  return bucket == nullptr ? spec.shape : shape_in(spec, *bucket);
}

bool is_variable(const Shape& shape) { return std::ranges::count(shape, -1) > 0; }

std::string to_text(DataType type, const Shape& shape) {
  return fmt::format("{} {}", to_string(type), to_string(shape));
}
std::string to_text(const Bucket& bucket) {
  std::vector<std::string> sizes;
  for (const auto& [name, extent] : bucket.dimensions) sizes.push_back(fmt::format("{} = {}", name, extent));
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}
std::string to_text(std::span<const Bucket> buckets) {
  std::vector<std::string> texts;
  for (const Bucket& bucket : buckets) texts.push_back(to_text(bucket));
  return fmt::format("{}", fmt::join(texts, ", "));
}

class Resolver {
 public:
  Resolver(const PipelineSpec& spec, const ModelsByName& models) : spec_(spec), models_(models) {}

  Status run() {
    FOLIOT_RETURN_IF_ERROR(add_stages());
    for (uint32_t stage = 0; stage < stages_.size(); ++stage) FOLIOT_RETURN_IF_ERROR(choose_bucket(stage));
    name_dimensions();
    for (uint32_t stage = 0; stage < stages_.size(); ++stage) FOLIOT_RETURN_IF_ERROR(add_count(stage));
    for (uint32_t stage = 0; stage < stages_.size(); ++stage) {
      FOLIOT_RETURN_IF_ERROR(connect(stage));
      for (const StageSpec::When& when : spec_.stages[stage].when) FOLIOT_RETURN_IF_ERROR(add_condition(stage, when));
    }
    for (const PipelineSpec::Output& output : spec_.outputs) FOLIOT_RETURN_IF_ERROR(add_output(output));
    return Status();
  }

  std::shared_ptr<const ModelInfo> info(PipelineId id) && {
    ModelInfo info{.name = spec_.name, .content = content()};
    info.inputs = std::move(inputs_);
    info.outputs = std::move(output_specs_);
    info.buckets = variable_ ? model(*variable_).buckets : std::vector<Bucket>(1);
    for (Bucket& bucket : info.buckets) bucket.dimensions.insert(dimensions_.begin(), dimensions_.end());
    info.runnables = {{.batch_sizes = batch_sizes()}};
    info.default_slo = spec_.default_slo;
    info.cache = spec_.cache;
    info.pipeline = std::make_shared<const PipelineInfo>(PipelineInfo{.id = id,
                                                                      .name = spec_.name,
                                                                      .content = spec_.content,
                                                                      .stages = std::move(stages_),
                                                                      .outputs = std::move(outputs_)});
    return std::make_shared<const ModelInfo>(std::move(info));
  }

 private:
  Status error(int line, std::string_view message) const {
    return Status::invalid_argument(fmt::format("{}:{}: {}", spec_.file, line, message));
  }
  Status error(uint32_t stage, std::string_view message) const {
    return error(spec_.stages[stage].line, fmt::format("stage '{}': {}", spec_.stages[stage].name, message));
  }

  const ModelInfo& model(uint32_t stage) const { return *stages_[stage].model; }
  // nullptr: that of the run.
  const Bucket* bucket_of(uint32_t stage) const {
    const std::optional<BucketId> bucket = stages_[stage].bucket;
    return bucket ? &model(stage).buckets[bucket->value()] : nullptr;
  }
  uint32_t position(std::string_view stage) const {
    const auto found = std::ranges::find(spec_.stages, stage, &StageSpec::name);
    FOLIOT_CHECK(found != spec_.stages.end());
    return static_cast<uint32_t>(found - spec_.stages.begin());
  }

  Status add_stages() {
    for (const StageSpec& from : spec_.stages) {
      const auto found = models_.find(from.model);
      const auto stage = static_cast<uint32_t>(stages_.size());
      if (found == models_.end() || found->second == nullptr) {
        return error(stage, fmt::format("there is no model '{}'", from.model));
      }
      stages_.push_back({.name = from.name, .model = found->second, .bucket = BucketId()});
      if (from.for_each) {
        stages_.back().for_each = {.stage = position(from.for_each->count.stage), .at_most = from.for_each->at_most};
      }
      FOLIOT_RETURN_IF_ERROR(check_model(stage));
    }
    return Status();
  }

  Status check_model(uint32_t stage) const {
    const ModelInfo& own = model(stage);
    if (own.pipeline != nullptr) return error(stage, fmt::format("'{}' is a pipeline; a stage has a model", own.name));
    if (!own.batching) {
      return error(stage, fmt::format("model '{}' has no batch dimension; stages need one, since the runs of several "
                                      "calls are computed as one batch",
                                      own.name));
    }
    for (const std::vector<TensorSpec>* tensors : {&own.inputs, &own.outputs}) {
      const auto varies =
          std::ranges::find_if(*tensors, [](const TensorSpec& tensor) { return tensor.bound.has_value(); });
      if (varies == tensors->end()) continue;
      return error(stage,
                   fmt::format("'{}' of model '{}' is {}, of which each row has a size of its own; stages pass on "
                               "tensors of one size: call the model by itself",
                               varies->name, own.name, to_text(varies->type, varies->shape)));
    }
    const auto& inputs = spec_.stages[stage].inputs;
    for (const auto& [name, sources] : inputs) {
      if (position_of(own.inputs, name)) continue;
      return error(
          stage, fmt::format("model '{}' has no input '{}'; its inputs are {}", own.name, name, names_of(own.inputs)));
    }
    for (const TensorSpec& input : own.inputs) {
      if (inputs.contains(input.name)) continue;
      return error(stage, fmt::format("input '{}' of model '{}' has no source; write inputs = {{ {} = \"STAGE.OUTPUT\" "
                                      "}}, or the name of an input of the call",
                                      input.name, own.name, input.name));
    }
    return Status();
  }

  // An output of an earlier stage.
  struct StageOutput {
    TensorSource source;
    const TensorSpec* spec = nullptr;
    Shape shape;  // -1: it depends on the run's bucket
  };
  // `of`: what takes it, for the error.
  Result<StageOutput> stage_output(const TensorName& name, int line, std::string_view of) const {
    const uint32_t stage = position(name.stage);
    const std::vector<TensorSpec>& outputs = model(stage).outputs;
    const std::optional<uint32_t> output = position_of(outputs, name.tensor);
    if (!output) {
      return error(line, fmt::format("{} has '{}', and model '{}' has no output '{}'; its outputs are {}", of,
                                     to_string(name), model(stage).name, name.tensor, names_of(outputs)));
    }
    Shape shape = extents_in(outputs[*output], bucket_of(stage));
    if (stages_[stage].for_each) shape.insert(shape.begin(), stages_[stage].for_each->at_most);
    return StageOutput{{stage, *output, name.each}, &outputs[*output], std::move(shape)};
  }

  Status choose_bucket(uint32_t stage) {
    const std::vector<Bucket>& buckets = model(stage).buckets;
    std::vector<BucketId> fitting;
    for (uint16_t i = 0; i < buckets.size(); ++i) fitting.emplace_back(i);
    bool fed = false;  // a variable dimension, by a stage
    for (const TensorSpec& input : model(stage).inputs) {
      for (const TensorName& source : spec_.stages[stage].inputs.at(input.name)) {
        if (source.stage.empty()) continue;
        FOLIOT_ASSIGN_OR_RETURN(const StageOutput from, source_of(stage, input, source));
        std::erase_if(fitting,
                      [&](BucketId bucket) { return extents_in(input, &buckets[bucket.value()]) != from.shape; });
        if (fitting.empty()) return misfit(stage, input, source, from);
        fed = fed || is_variable(input.shape);
      }
    }
    stages_[stage].bucket = fitting.front();
    if (fitting.size() == 1) return Status();
    if (fed) {
      return error(stage, fmt::format("several buckets of model '{}' fit its sources; take all of its inputs with "
                                      "variable dimensions from stages, or none",
                                      model(stage).name));
    }
    if (variable_) {
      return error(stage, fmt::format("its model '{}' has several buckets ({}), among which the size of the call's "
                                      "inputs chooses, and stage '{}' has such already; one stage of a pipeline may",
                                      model(stage).name, to_text(buckets), stages_[*variable_].name));
    }
    variable_ = stage;
    stages_[stage].bucket.reset();
    return Status();
  }

  Result<StageOutput> source_of(uint32_t stage, const TensorSpec& input, const TensorName& source) const {
    const std::string of = fmt::format("stage '{}': the input '{}'", stages_[stage].name, input.name);
    FOLIOT_ASSIGN_OR_RETURN(StageOutput from, stage_output(source, spec_.stages[stage].line, of));
    if (source.each) FOLIOT_RETURN_IF_ERROR(take_element(stage, input, source, from.shape));
    if (from.spec->type != input.type) return misfit(stage, input, source, from);
    if (is_variable(from.shape)) {
      return error(stage, fmt::format("the input '{}' takes '{}' of shape {}, which depends on the size of the call's "
                                      "inputs; stages take tensors of a fixed size from each other",
                                      input.name, to_string(source), to_string(from.shape)));
    }
    return from;
  }

  // Leaves the shape of one element.
  Status take_element(uint32_t stage, const TensorSpec& input, const TensorName& source, Shape& shape) const {
    const int64_t at_most = stages_[stage].for_each->at_most;
    if (shape.empty() || shape.front() != at_most) {
      return error(stage,
                   fmt::format("the input '{}' takes '{}' element by element, of shape {}; its first dimension must "
                               "be {}, the at_most of for_each",
                               input.name, to_string(source), to_string(shape), at_most));
    }
    shape.erase(shape.begin());
    return Status();
  }

  Status misfit(uint32_t stage, const TensorSpec& input, const TensorName& source, const StageOutput& from) const {
    const std::string message =
        fmt::format("input '{}' of model '{}' is {}, and '{}' of model '{}' is {}; they must be equal", input.name,
                    model(stage).name, to_text(input.type, input.shape), to_string(source),
                    model(*from.source.stage).name, to_text(from.spec->type, from.shape));
    if (!is_variable(input.shape)) return error(stage, message);
    return error(stage, fmt::format("{} in one bucket of {}", message, to_text(model(stage).buckets)));
  }

  // What clients call the variable dimensions that the call feeds.
  void name_dimensions() {
    std::map<std::string, uint32_t> stages;  // that have the name as it is
    if (variable_) {
      for (const auto& [name, extent] : model(*variable_).buckets.front().dimensions) stages[name] = *variable_;
    }
    for (uint32_t stage = 0; stage < stages_.size(); ++stage) {
      auto& names = dimension_names_.emplace_back();
      for (const TensorSpec& input : model(stage).inputs) {
        const auto& sources = spec_.stages[stage].inputs.at(input.name);
        if (std::ranges::none_of(sources, [](const TensorName& source) { return source.stage.empty(); })) continue;
        for (const std::string& name : input.dimension_names) {
          if (name.empty() || names.contains(name)) continue;
          const bool is_own = stages.emplace(name, stage).first->second == stage;
          names[name] = is_own ? name : fmt::format("{}.{}", stages_[stage].name, name);
        }
      }
    }
  }

  Status connect(uint32_t stage) {
    for (const TensorSpec& input : model(stage).inputs) {
      std::vector<TensorSource>& to = stages_[stage].inputs.emplace_back();
      for (const TensorName& source : spec_.stages[stage].inputs.at(input.name)) {
        if (source.stage.empty()) {
          FOLIOT_ASSIGN_OR_RETURN(const uint32_t position, call_input(stage, input, source));
          to.push_back({.tensor = position, .each = source.each});
        } else {
          FOLIOT_ASSIGN_OR_RETURN(const StageOutput from, source_of(stage, input, source));
          to.push_back(from.source);
        }
      }
    }
    return Status();
  }

  // The position of the call's input of this name, which feeds this one.
  Result<uint32_t> call_input(uint32_t stage, const TensorSpec& input, const TensorName& source) {
    const std::string& name = source.tensor;
    TensorSpec wanted = input;
    Shape extents = extents_in(input, bucket_of(stage));
    if (source.each) {
      const int64_t at_most = stages_[stage].for_each->at_most;
      wanted.shape.insert(wanted.shape.begin(), at_most);
      wanted.dimension_names.insert(wanted.dimension_names.begin(), "");
      extents.insert(extents.begin(), at_most);
    }
    if (const std::optional<uint32_t> known = position_of(inputs_, name)) {
      const auto& [first_stage, first_input, first_extents] = feeds_[*known];
      const TensorSpec& first = inputs_[*known];
      // What has the run's bucket is of one stage, and varies with one dimension.
      const bool vary_alike = !is_variable(extents) || first.dimension_names == wanted.dimension_names;
      if (first.type == wanted.type && first.shape == wanted.shape && first_extents == extents && vary_alike) {
        return *known;
      }
      return error(stage,
                   fmt::format("'{}' of the call feeds input '{}' of model '{}', {}, and input '{}' of model '{}' "
                               "in stage '{}', {}; they must be equal, in their buckets, too",
                               name, input.name, model(stage).name, to_text(input.type, extents), first_input,
                               model(first_stage).name, stages_[first_stage].name, to_text(first.type, first_extents)));
    }
    TensorSpec& spec = inputs_.emplace_back(std::move(wanted));
    spec.name = name;
    for (size_t i = 0; i < spec.shape.size(); ++i) {
      if (spec.shape[i] >= 0) continue;
      spec.dimension_names[i] = dimension_names_[stage].at(spec.dimension_names[i]);
      if (stages_[stage].bucket) dimensions_[spec.dimension_names[i]] = extents[i];
    }
    feeds_.push_back({stage, input.name, extents});
    return static_cast<uint32_t>(inputs_.size() - 1);
  }

  // In the stage that counts the elements of this one.
  Status add_count(uint32_t stage) {
    if (!stages_[stage].for_each) return Status();
    const StageSpec::ForEach& for_each = *spec_.stages[stage].for_each;
    const std::string of = fmt::format("stage '{}': for_each", stages_[stage].name);
    FOLIOT_ASSIGN_OR_RETURN(const StageOutput from, stage_output(for_each.count, for_each.line, of));
    const bool is_number = from.spec->type != DataType::kBool && from.spec->type != DataType::kBytes;
    if (!is_number || is_variable(from.shape) || element_count(from.shape) != 1) {
      return error(for_each.line, fmt::format("{} counts by '{}', {}; a count is one number in a row", of,
                                              to_string(for_each.count), to_text(from.spec->type, from.shape)));
    }
    stages_[*from.source.stage].count = {.output = from.source.tensor, .at_most = for_each.at_most};
    return Status();
  }

  Status add_condition(uint32_t stage, const StageSpec::When& when) {
    const std::string of = fmt::format("stage '{}': a condition", stages_[stage].name);
    FOLIOT_ASSIGN_OR_RETURN(const StageOutput from, stage_output(when.output, when.line, of));
    FOLIOT_RETURN_IF_ERROR(check_condition(when, from, of));
    StageCondition condition = when.condition;
    condition.output = from.source.tensor;
    // Equal conditions of several stages are one.
    std::vector<StageCondition>& conditions = stages_[*from.source.stage].conditions;
    const auto found = std::ranges::find_if(conditions, [&](const StageCondition& other) {
      return other.output == condition.output && other.value == condition.value && other.element == condition.element &&
             other.comparison == condition.comparison && other.limit == condition.limit;
    });
    const auto position = static_cast<uint32_t>(found - conditions.begin());
    if (found == conditions.end()) conditions.push_back(condition);
    FOLIOT_CHECK(conditions.size() <= kConditionsMax);
    stages_[stage].requires_all.push_back({*from.source.stage, position});
    return Status();
  }

  Status check_condition(const StageSpec::When& when, const StageOutput& from, const std::string& of) const {
    const std::string text = fmt::format("'{}', {}", to_string(when.output), to_text(from.spec->type, from.shape));
    if (is_variable(from.shape)) {
      return error(when.line, fmt::format("{} compares {}, whose size depends on that of the call's inputs; compare an "
                                          "output of a fixed size",
                                          of, text));
    }
    const uint64_t elements = element_count(from.shape);
    if (elements == 0) return error(when.line, fmt::format("{} compares {}, which has no elements", of, text));
    const StageCondition& condition = when.condition;
    if (condition.value == StageCondition::Value::kElement && condition.element >= elements) {
      return error(when.line, fmt::format("{} compares element {} of {}, which has {}: write 0 to {}", of,
                                          condition.element, text, elements, elements - 1));
    }
    NumberRange range = range_of(from.spec->type);
    if (condition.value == StageCondition::Value::kArgmax) range = {0, static_cast<double>(elements - 1)};
    if (condition.limit >= range.lowest && condition.limit <= range.highest) return Status();
    return error(when.line, fmt::format("{} compares {} with {}; its values are from {} to {}", of, text,
                                        condition.limit, range.lowest, range.highest));
  }

  Status add_output(const PipelineSpec::Output& output) {
    const std::string of = fmt::format("output '{}'", output.name);
    PipelineInfo::Output& to = outputs_.emplace_back();
    std::optional<StageOutput> first;
    for (const TensorName& name : output.from) {
      FOLIOT_ASSIGN_OR_RETURN(StageOutput from, stage_output(name, output.line, of));
      to.sources.push_back(from.source);
      if (!first) {
        first = std::move(from);
      } else if (from.spec->type != first->spec->type || from.shape != first->shape ||
                 (is_variable(from.shape) && from.spec->dimension_names != first->spec->dimension_names)) {
        return error(output.line, fmt::format("{} has '{}', {}, and '{}', {}; they must be equal", of,
                                              to_string(output.from.front()), to_text(first->spec->type, first->shape),
                                              to_string(name), to_text(from.spec->type, from.shape)));
      }
    }
    if (output.fill) FOLIOT_RETURN_IF_ERROR(check_fill(output, first->spec->type));
    to.fill = output.fill.value_or(0);
    TensorSpec& spec = output_specs_.emplace_back(*first->spec);
    spec.name = output.name;
    if (spec.dimension_names.size() < first->shape.size()) {  // that of the elements
      spec.dimension_names.insert(spec.dimension_names.begin(), "");
    }
    if (!is_variable(first->shape)) spec.dimension_names.assign(spec.dimension_names.size(), "");
    spec.shape = std::move(first->shape);
    return Status();
  }

  Status check_fill(const PipelineSpec::Output& output, DataType type) const {
    const NumberRange range = range_of(type);
    const bool is_half = type == DataType::kFloat16 || type == DataType::kBfloat16;
    if (is_half ? *output.fill == 0 : range.contains(*output.fill)) return Status();
    return error(output.line, fmt::format("output '{}' is {}, which 'fill' = {} is none of; it must be {}", output.name,
                                          to_string(type), *output.fill,
                                          is_half ? "0"
                                                  : fmt::format("a {}number from {} to {}", range.whole ? "whole " : "",
                                                                range.lowest, range.highest)));
  }

  // Of the stage with the smallest largest one.
  std::vector<uint32_t> batch_sizes() const {
    const auto smallest =
        std::ranges::min_element(stages_, {}, [](const PipelineStage& stage) { return stage.model->batch_size_max(); });
    return smallest->model->batch_sizes();
  }

  // Empty: that of a model is unknown.
  std::string content() const {
    std::string text = spec_.content;
    for (const PipelineStage& stage : stages_) {
      if (stage.model->content.empty()) return "";
      text += fmt::format("\n{}", stage.model->content);
    }
    return spec_.content.empty() ? "" : hash_hex(std::as_bytes(std::span(text)));
  }

  // What an input of the call was first seen to feed.
  struct Feed {
    uint32_t stage = 0;
    std::string input;  // of its model
    Shape extents;
  };

  const PipelineSpec& spec_;
  const ModelsByName& models_;
  std::vector<PipelineStage> stages_;
  std::optional<uint32_t> variable_;                                 // the stage that runs in the bucket of the run
  std::vector<std::map<std::string, std::string>> dimension_names_;  // by stage: the model's -> the clients'
  std::vector<TensorSpec> inputs_;                                   // of the call
  std::vector<Feed> feeds_;                                          // by them
  std::map<std::string, int64_t> dimensions_;                        // of these, but for those of variable_
  std::vector<TensorSpec> output_specs_;
  std::vector<PipelineInfo::Output> outputs_;
};

}  // namespace

Result<std::shared_ptr<const ModelInfo>> resolve(const PipelineSpec& spec, const ModelsByName& models, PipelineId id) {
  FOLIOT_CHECK(spec.status.ok());
  Resolver resolver(spec, models);
  FOLIOT_RETURN_IF_ERROR(resolver.run());
  return std::move(resolver).info(id);
}

}  // namespace foliot
