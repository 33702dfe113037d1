#include "answer/pipelines/spec_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace foliot {
namespace {

constexpr size_t kNameBytesMax = 64;        // of a stage, an input or an output
constexpr size_t kModelBytesMax = 255;      // as of every model
constexpr size_t kSourcesMax = kStagesMax;  // of one input or output

bool is_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, allowed);
}

// The graph of the stages by their positions in the spec, as they are given.
class Checker {
 public:
  explicit Checker(PipelineSpec& spec) : spec_(spec) {}

  Status check_and_order() {
    FOLIOT_RETURN_IF_ERROR(check_count());
    FOLIOT_RETURN_IF_ERROR(check_stage_names());
    for (const StageSpec& stage : spec_.stages) FOLIOT_RETURN_IF_ERROR(check_stage(stage));
    FOLIOT_RETURN_IF_ERROR(check_condition_counts());
    FOLIOT_RETURN_IF_ERROR(check_elements());
    FOLIOT_RETURN_IF_ERROR(order());
    FOLIOT_RETURN_IF_ERROR(check_outputs());
    FOLIOT_RETURN_IF_ERROR(check_reachable());
    return check_sources_are_taken();
  }

 private:
  Status error(int line, std::string_view message) const {
    if (line == 0) return Status::invalid_argument(fmt::format("{}: {}", spec_.file, message));
    return Status::invalid_argument(fmt::format("{}:{}: {}", spec_.file, line, message));
  }
  Status error(const StageSpec& stage, std::string_view message) const {
    return error(stage.line, fmt::format("stage '{}' {}", stage.name, message));
  }

  std::optional<size_t> find(std::string_view stage) const {
    const auto found = std::ranges::find(spec_.stages, stage, &StageSpec::name);
    if (found == spec_.stages.end()) return std::nullopt;
    return static_cast<size_t>(found - spec_.stages.begin());
  }

  std::string stage_names() const {
    std::vector<std::string> names;
    for (const StageSpec& stage : spec_.stages) names.push_back(stage.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  // "takes X" where X is of no stage, or wrong.
  Status check_source(int line, const std::string& of, const TensorName& source) const {
    const std::string text = to_string(source);
    if (!source.stage.empty() && !find(source.stage)) {
      return error(line, fmt::format("{} '{}', and there is no stage '{}'; the stages are {}", of, text, source.stage,
                                     stage_names()));
    }
    if (!source.stage.empty() && source.tensor.empty()) {
      return error(line, fmt::format("{} '{}', which names no output: write STAGE.OUTPUT", of, text));
    }
    if (source.stage.empty() && !is_name(source.tensor)) {
      return error(line, fmt::format("{} '{}'; an input of the call has a name of 1 to {} letters, digits, '_' and '-'",
                                     of, text, kNameBytesMax));
    }
    return Status();
  }

  Status check_is_whole(int line, const std::string& of, const TensorName& source) const {
    if (!source.each) return Status();
    return error(line,
                 fmt::format("{} '{}'; only inputs of stages with for_each are taken element by element: leave out "
                             "the []",
                             of, to_string(source)));
  }

  Status check_sources(int line, const std::string& of, const std::vector<TensorName>& sources) const {
    if (sources.empty() || sources.size() > kSourcesMax) {
      return error(line, fmt::format("{} {} sources; 1 to {} are allowed", of, sources.size(), kSourcesMax));
    }
    for (size_t i = 0; i < sources.size(); ++i) {
      FOLIOT_RETURN_IF_ERROR(check_source(line, of, sources[i]));
      if (std::find(sources.begin(), sources.begin() + static_cast<ptrdiff_t>(i), sources[i]) !=
          sources.begin() + static_cast<ptrdiff_t>(i)) {
        return error(line, fmt::format("{} '{}' twice", of, to_string(sources[i])));
      }
    }
    return Status();
  }

  Status check_count() const {
    if (spec_.stages.empty()) return error(0, "there are no stages; write a table [[stage]] for each");
    if (spec_.stages.size() > kStagesMax) {
      return error(spec_.stages[kStagesMax].line,
                   fmt::format("there are {} stages; at most {} are allowed", spec_.stages.size(), kStagesMax));
    }
    return Status();
  }

  Status check_stage_names() const {
    std::set<std::string_view> names;
    for (const StageSpec& stage : spec_.stages) {
      if (!is_name(stage.name)) {
        return error(stage.line,
                     fmt::format("a stage's name has 1 to {} letters, digits, '_' and '-', and '{}' does not",
                                 kNameBytesMax, stage.name));
      }
      if (!names.insert(stage.name).second) {
        return error(stage, fmt::format("is there twice, first at line {}", spec_.stages[*find(stage.name)].line));
      }
    }
    return Status();
  }

  Status check_stage(const StageSpec& stage) const {
    if (stage.model.empty()) return error(stage, "has no model");
    if (stage.model == spec_.name)
      return error(stage, fmt::format("has the model '{}', the pipeline itself", stage.model));
    if (stage.model.size() > kModelBytesMax) {
      return error(stage, fmt::format("has a model with a name of {} bytes, '{}'; at most {} are allowed",
                                      stage.model.size(), stage.model, kModelBytesMax));
    }
    if (stage.inputs.empty()) return error(stage, "has no inputs; write inputs = { INPUT = \"STAGE.OUTPUT\" }");
    for (const auto& [input, sources] : stage.inputs) {
      FOLIOT_RETURN_IF_ERROR(
          check_sources(stage.line, fmt::format("stage '{}': the input '{}' has", stage.name, input), sources));
    }
    for (const StageSpec::When& when : stage.when) {
      const std::string of = fmt::format("stage '{}': a condition has the output", stage.name);
      FOLIOT_RETURN_IF_ERROR(check_source(when.line, of, when.output));
      FOLIOT_RETURN_IF_ERROR(check_is_whole(when.line, of, when.output));
      if (when.output.stage.empty()) {
        return error(when.line, fmt::format("{} '{}', which is an input of the call; conditions compare outputs of "
                                            "stages: write STAGE.OUTPUT",
                                            of, when.output.tensor));
      }
    }
    return Status();
  }

  // Equal conditions of two stages are one.
  Status check_condition_counts() const {
    using Key = std::tuple<std::string, StageCondition::Value, uint64_t, StageCondition::Comparison, double>;
    std::map<std::string, std::set<Key>> conditions;
    for (const StageSpec& stage : spec_.stages) {
      for (const StageSpec::When& when : stage.when) {
        const StageCondition& c = when.condition;
        std::set<Key>& own = conditions[when.output.stage];
        own.emplace(when.output.tensor, c.value, c.element, c.comparison, c.limit);
        if (own.size() > kConditionsMax) {
          return error(when.line, fmt::format("more than {} conditions compare outputs of stage '{}'; at most {} are "
                                              "allowed",
                                              kConditionsMax, when.output.stage, kConditionsMax));
        }
      }
    }
    return Status();
  }

  // Those of stages that are visited for each element, and that nothing else takes elements.
  Status check_elements() const {
    uint64_t slots = 0;
    for (const StageSpec& stage : spec_.stages) {
      slots += stage.for_each ? stage.for_each->at_most : 1;
      if (stage.for_each) FOLIOT_RETURN_IF_ERROR(check_for_each(stage));
      for (const auto& [input, sources] : stage.inputs) {
        for (const TensorName& source : sources) FOLIOT_RETURN_IF_ERROR(check_element(stage, input, source));
      }
      for (const StageSpec::When& when : stage.when) {
        if (!spec_.stages[*find(when.output.stage)].for_each) continue;
        return error(when.line,
                     fmt::format("stage '{}': a condition has the output '{}' of stage '{}', which is visited for "
                                 "each element; conditions compare outputs of stages that are visited once",
                                 stage.name, to_string(when.output), when.output.stage));
      }
    }
    if (slots <= kSlotsMax) return Status();
    return error(
        0, fmt::format("a run may have {} visits of its stages, with `at_most` for each that has for_each; at most {} "
                       "are allowed: lower at_most",
                       slots, kSlotsMax));
  }

  Status check_for_each(const StageSpec& stage) const {
    const auto& [count, at_most, line] = *stage.for_each;
    const std::string of = fmt::format("stage '{}': for_each has the count", stage.name);
    FOLIOT_RETURN_IF_ERROR(check_source(line, of, count));
    if (count.stage.empty() || count.each) {
      return error(line,
                   fmt::format("{} '{}', which is no output of a stage: write STAGE.OUTPUT", of, to_string(count)));
    }
    const StageSpec& counting = spec_.stages[*find(count.stage)];
    if (counting.for_each) {
      return error(line, fmt::format("{} '{}' of a stage that is itself visited for each element; count in one that is "
                                     "visited once",
                                     of, to_string(count)));
    }
    for (const StageSpec& other : spec_.stages) {
      if (!other.for_each || other.for_each->count.stage != count.stage) continue;
      if (other.for_each->count == count && other.for_each->at_most == at_most) continue;
      return error(
          line, fmt::format("stage '{}': for_each is of '{}', at most {}, and that of stage '{}' of '{}', at most {}; "
                            "all that count in one stage must have the same count and at_most",
                            stage.name, to_string(count), at_most, other.name, to_string(other.for_each->count),
                            other.for_each->at_most));
    }
    const bool takes_element = std::ranges::any_of(stage.inputs, [](const auto& input) {
      return std::ranges::any_of(input.second, [](const TensorName& source) { return source.each; });
    });
    if (takes_element) return Status();
    return error(stage,
                 "has for_each, and no input that differs for each element: write \"STAGE.OUTPUT[]\" for one that is "
                 "taken element by element");
  }

  Status check_element(const StageSpec& stage, const std::string& input, const TensorName& source) const {
    if (!source.each) return Status();
    const std::string of = fmt::format("stage '{}': the input '{}' has '{}'", stage.name, input, to_string(source));
    if (!stage.for_each) {
      return error(stage.line, of + ", which takes it element by element; that needs for_each = { count = "
                                    "\"STAGE.OUTPUT\", at_most = NUMBER }");
    }
    if (source.stage.empty()) return Status();
    const StageSpec& from = spec_.stages[*find(source.stage)];
    if (!from.for_each || from.for_each->count == stage.for_each->count) return Status();
    return error(stage.line,
                 fmt::format("{} of a stage with as many elements as '{}' says, and has for_each of '{}'; they must "
                             "be the same",
                             of, to_string(from.for_each->count), to_string(stage.for_each->count)));
  }

  // The stages that this one cannot come before.
  std::set<size_t> needs(const StageSpec& stage) const {
    std::set<size_t> needed;
    for (const auto& [input, sources] : stage.inputs) {
      for (const TensorName& source : sources) {
        if (!source.stage.empty()) needed.insert(*find(source.stage));
      }
    }
    for (const StageSpec::When& when : stage.when) needed.insert(*find(when.output.stage));
    if (stage.for_each) needed.insert(*find(stage.for_each->count.stage));
    return needed;
  }

  Status order() {
    std::vector<std::set<size_t>> open;
    for (const StageSpec& stage : spec_.stages) open.push_back(needs(stage));
    std::vector<bool> done(open.size());
    std::vector<StageSpec> ordered;
    while (ordered.size() < open.size()) {
      size_t next = 0;
      const auto is_ready = [&](size_t i) {
        return !done[i] && std::ranges::all_of(open[i], [&](size_t needed) { return done[needed]; });
      };
      while (next < open.size() && !is_ready(next)) ++next;
      if (next == open.size()) return cycle_error(open, done);
      done[next] = true;
      ordered.push_back(spec_.stages[next]);
    }
    spec_.stages = std::move(ordered);
    return Status();
  }

  // REQUIRES: each stage that is not done needs one that is not.
  Status cycle_error(const std::vector<std::set<size_t>>& open, const std::vector<bool>& done) const {
    std::vector<size_t> path;
    auto at = static_cast<size_t>(std::ranges::find(done, false) - done.begin());
    while (std::ranges::find(path, at) == path.end()) {
      path.push_back(at);
      at = *std::ranges::find_if(open[at], [&](size_t needed) { return !done[needed]; });
    }
    path.erase(path.begin(), std::ranges::find(path, at));
    // Each needs the next; the text goes the way of the tensors, from the stage that comes first in the file.
    std::ranges::reverse(path);
    std::rotate(path.begin(), std::ranges::min_element(path), path.end());
    std::string text;
    for (const size_t stage : path) text += spec_.stages[stage].name + " -> ";
    const StageSpec& first = spec_.stages[path.front()];
    return error(first, fmt::format("is in a cycle: {}{}; a pipeline has none", text, first.name));
  }

  Status check_outputs() const {
    if (spec_.outputs.empty()) return error(0, "there are no outputs; write a table [[output]] for each");
    const std::vector<bool> always = always_visited(spec_);
    std::set<std::string_view> names;
    for (const PipelineSpec::Output& output : spec_.outputs) {
      if (!is_name(output.name)) {
        return error(output.line,
                     fmt::format("an output's name has 1 to {} letters, digits, '_' and '-', and '{}' does not",
                                 kNameBytesMax, output.name));
      }
      const std::string called = fmt::format("output '{}'", output.name);
      if (!names.insert(output.name).second) return error(output.line, called + " is there twice");
      FOLIOT_RETURN_IF_ERROR(check_sources(output.line, called + " has", output.from));
      bool filled = output.fill.has_value();
      for (const TensorName& source : output.from) {
        FOLIOT_RETURN_IF_ERROR(check_is_whole(output.line, called + " has", source));
        if (source.stage.empty()) {
          return error(output.line, fmt::format("{} has '{}', which is an input of the call; outputs come from stages: "
                                                "write STAGE.OUTPUT",
                                                called, source.tensor));
        }
        filled = filled || always[*find(source.stage)];
      }
      if (filled) continue;
      return error(output.line, fmt::format("{} may come from no stage, where all of its sources are skipped; say with "
                                            "`fill = NUMBER` what its elements are then",
                                            called));
    }
    return Status();
  }

  Status check_reachable() const {
    std::vector<bool> reached(spec_.stages.size());
    for (const PipelineSpec::Output& output : spec_.outputs) {
      for (const TensorName& source : output.from) reached[*find(source.stage)] = true;
    }
    for (size_t i = spec_.stages.size(); i-- > 0;) {
      if (!reached[i]) return error(spec_.stages[i], "is unreachable: no output depends on it; remove it");
      for (const size_t needed : needs(spec_.stages[i])) reached[needed] = true;
    }
    return Status();
  }

  // What comes after a source that is always there would never be taken.
  Status check_sources_are_taken() const {
    const std::vector<bool> always = always_visited(spec_);
    const auto check = [&](int line, const std::string& of, const std::vector<TensorName>& sources) {
      for (size_t i = 0; i + 1 < sources.size(); ++i) {
        if (!sources[i].stage.empty() && !always[*find(sources[i].stage)]) continue;
        return error(line, fmt::format("{} never takes '{}': it comes after '{}', which is always there; put it first",
                                       of, to_string(sources[i + 1]), to_string(sources[i])));
      }
      return Status();
    };
    for (const StageSpec& stage : spec_.stages) {
      for (const auto& [input, sources] : stage.inputs) {
        FOLIOT_RETURN_IF_ERROR(
            check(stage.line, fmt::format("stage '{}': the input '{}'", stage.name, input), sources));
      }
    }
    for (const PipelineSpec::Output& output : spec_.outputs) {
      FOLIOT_RETURN_IF_ERROR(check(output.line, fmt::format("output '{}'", output.name), output.from));
    }
    return Status();
  }

  PipelineSpec& spec_;
};

}  // namespace

Status check_and_order(PipelineSpec& spec) { return Checker(spec).check_and_order(); }

std::vector<bool> always_visited(const PipelineSpec& spec) {
  std::set<std::string_view> always;
  std::vector<bool> result;
  for (const StageSpec& stage : spec.stages) {
    const bool fed = std::ranges::all_of(stage.inputs, [&](const auto& input) {
      return std::ranges::any_of(input.second, [&](const TensorName& source) {
        return source.stage.empty() || always.contains(source.stage);
      });
    });
    const bool counted = !stage.for_each || always.contains(stage.for_each->count.stage);
    result.push_back(fed && counted && stage.when.empty());
    if (result.back()) always.insert(stage.name);
  }
  return result;
}

}  // namespace foliot
