#include "answer/pipelines/pipeline_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "answer/pipelines/spec_check.h"
#include "foundation/base/hash.h"
#include "foundation/config/repository_path.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPipelineFile = "pipeline.toml";

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

constexpr std::string_view kEachSuffix = "[]";

// "STAGE.TENSOR"; a tensor's name may have further '.'.
TensorName parse_tensor_name(std::string text) {
  const bool each = text.ends_with(kEachSuffix);
  if (each) text.resize(text.size() - kEachSuffix.size());
  const size_t dot = text.find('.');
  if (dot == std::string::npos) return {"", text, each};
  return {text.substr(0, dot), text.substr(dot + 1), each};
}

// A text, or a list of them.
void read_sources(TomlReader& reader, std::string_view key, std::vector<TensorName>& to) {
  std::vector<std::string> texts;
  reader.texts(key, texts);
  for (const std::string& text : texts) {
    if (text.front() == '.') reader.fail(key, fmt::format("has '{}', which names no stage: write STAGE.OUTPUT", text));
    to.push_back(parse_tensor_name(text));
  }
}

std::optional<double> number_of(const toml::node& node) {
  const std::optional<double> value = node.is_number() ? node.value<double>() : std::nullopt;
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<StepOption> read_option(const toml::node& node) {
  if (const auto flag = node.value_exact<bool>()) return StepOption(*flag);
  if (const auto whole = node.value_exact<int64_t>()) return StepOption(*whole);
  if (const auto text = node.value_exact<std::string>()) return StepOption(*text);
  if (const auto number = number_of(node)) return StepOption(*number);
  const toml::array* list = node.as_array();
  if (list == nullptr) return std::nullopt;
  std::vector<double> numbers;
  for (const toml::node& element : *list) {
    const std::optional<double> number = number_of(element);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return StepOption(std::move(numbers));
}

// All that a step's stage has besides; what of it a step knows is its own business.
void read_options(const toml::table& table, TomlReader& reader, StageSpec& stage) {
  static constexpr std::array<std::string_view, 6> kStageKeys{"name", "model", "step", "inputs", "when", "for_each"};
  for (const auto& [key, node] : table) {
    if (std::ranges::find(kStageKeys, key.str()) != kStageKeys.end()) continue;
    const std::optional<StepOption> option = read_option(node);
    if (option) {
      stage.options[std::string(key.str())] = *option;
      reader.leave(key.str());
    } else {
      reader.fail(key.str(), "must be a number, true, false, a text or a list of numbers");
    }
  }
}

void read_value(TomlReader& reader, StageCondition& condition) {
  using Value = StageCondition::Value;
  std::string value = reader.has("element") ? "element" : "maximum";
  reader.text("value", value);
  reader.whole("element", condition.element);
  if (value == "maximum") {
    condition.value = Value::kMaximum;
  } else if (value == "element") {
    condition.value = Value::kElement;
  } else if (value == "argmax") {
    condition.value = Value::kArgmax;
  } else {
    return reader.fail("value", fmt::format("is '{}'; it must be \"maximum\", \"element\" or \"argmax\"", value));
  }
  if (condition.value == Value::kElement && !reader.has("element")) {
    reader.fail("value", "is \"element\"; say which, such as element = 0");
  }
  if (condition.value != Value::kElement && reader.has("element")) {
    reader.fail("element", fmt::format("belongs to value = \"element\", and the value is \"{}\"", value));
  }
}

void read_comparison(TomlReader& reader, StageCondition& condition) {
  using Comparison = StageCondition::Comparison;
  static constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
      {"below", Comparison::kBelow},      {"at_most", Comparison::kAtMost}, {"above", Comparison::kAbove},
      {"at_least", Comparison::kAtLeast}, {"equal", Comparison::kEqual},    {"not_equal", Comparison::kNotEqual},
  };
  std::string_view given;
  for (const auto& [key, comparison] : kComparisons) {
    reader.number(key, condition.limit);
    if (!reader.has(key)) continue;
    if (!given.empty())
      return reader.fail(key, fmt::format("is a second comparison, beside '{}'; write a condition for each", given));
    given = key;
    condition.comparison = comparison;
  }
  if (given.empty()) {
    reader.fail("a condition needs a comparison: one of below, at_most, above, at_least, equal and not_equal");
  }
}

Status read_when(const toml::table& table, TomlReader reader, StageSpec& stage) {
  StageSpec::When& when = stage.when.emplace_back();
  when.line = line_of(table);
  std::string output;
  reader.text("output", output);
  if (output.empty()) reader.fail("a condition needs an output: output = \"STAGE.OUTPUT\"");
  when.output = parse_tensor_name(output);
  read_value(reader, when.condition);
  read_comparison(reader, when.condition);
  return reader.finish();
}

Status read_for_each(int line, TomlReader& reader, StageSpec& stage) {
  StageSpec::ForEach& for_each = stage.for_each.emplace(StageSpec::ForEach());
  for_each.line = line;
  std::string count;
  reader.text("count", count);
  reader.whole("at_most", for_each.at_most, 1, kSlotsMax - 1);
  if (count.empty()) reader.fail("for_each needs the output that counts its elements: count = \"STAGE.OUTPUT\"");
  if (!reader.has("at_most")) reader.fail("for_each needs the most elements that there may be, such as at_most = 16");
  for_each.count = parse_tensor_name(count);
  return reader.finish();
}

// Calls read(table, reader) for each table of the list, until one is wrong.
template <typename Read>
Status read_each(const toml::table& table, TomlReader& reader, std::string_view key, Read read) {
  std::vector<TomlReader> readers = reader.tables(key);
  for (size_t i = 0; i < readers.size(); ++i) {
    FOLIOT_RETURN_IF_ERROR(read(*table.get(key)->as_array()->get(i)->as_table(), readers[i]));
  }
  return Status();
}

Status read_stage(const toml::table& table, TomlReader& reader, PipelineSpec& spec) {
  StageSpec& stage = spec.stages.emplace_back();
  stage.line = line_of(table);
  reader.text("name", stage.name);
  if (stage.name.empty()) reader.fail("a stage needs a name: name = \"NAME\"");
  reader.text("model", stage.model);
  reader.text("step", stage.step);
  if (reader.has("model") == reader.has("step")) {
    reader.fail(fmt::format("stage '{}' needs a model or a step, and not both", stage.name));
  }
  if (!stage.step.empty()) {
    stage.model = fmt::format("{}.{}", spec.name, stage.name);
    read_options(table, reader, stage);
  }
  if (std::optional<TomlReader> inputs = reader.table("inputs")) {
    for (const auto& [key, node] : *table.get("inputs")->as_table()) {
      read_sources(*inputs, key.str(), stage.inputs[std::string(key.str())]);
    }
    FOLIOT_RETURN_IF_ERROR(inputs->finish());
  }
  if (std::optional<TomlReader> for_each = reader.table("for_each")) {
    FOLIOT_RETURN_IF_ERROR(read_for_each(line_of(*table.get("for_each")), *for_each, stage));
  }
  FOLIOT_RETURN_IF_ERROR(read_each(table, reader, "when", [&](const toml::table& inner, TomlReader& inner_reader) {
    return read_when(inner, inner_reader, stage);
  }));
  return reader.finish();
}

Status read_output(const toml::table& table, TomlReader& reader, PipelineSpec& spec) {
  PipelineSpec::Output& output = spec.outputs.emplace_back();
  output.line = line_of(table);
  reader.text("name", output.name);
  if (output.name.empty()) reader.fail("an output needs a name: name = \"NAME\"");
  read_sources(reader, "from", output.from);
  if (output.from.empty()) reader.fail("an output needs a source: from = \"STAGE.OUTPUT\"");
  if (reader.has("fill")) reader.number("fill", output.fill.emplace());
  return reader.finish();
}

Status read_table(const toml::table& table, PipelineSpec& spec) {
  TomlReader reader(table, spec.file);
  reader.positive("default_slo", spec.default_slo);
  reader.flag("cache", spec.cache);
  FOLIOT_RETURN_IF_ERROR(read_each(table, reader, "stage", [&](const toml::table& inner, TomlReader& inner_reader) {
    return read_stage(inner, inner_reader, spec);
  }));
  FOLIOT_RETURN_IF_ERROR(read_each(table, reader, "output", [&](const toml::table& inner, TomlReader& inner_reader) {
    return read_output(inner, inner_reader, spec);
  }));
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return check_and_order(spec);
}

Status check_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* other : {"model.onnx", "model.py", "application.toml"}) {
    if (!fs::exists(folder / other, error)) continue;
    return Status::invalid_argument(
        fmt::format("{} has {} and {}; a pipeline is nothing else besides: move one of them to another folder",
                    folder.string(), kPipelineFile, other));
  }
  return Status();
}

void fill_from(const Result<toml::table>& table, PipelineSpec& spec) {
  spec.status = table.ok() ? read_table(*table, spec) : table.status();
  if (spec.status.ok()) spec.content = content_hash(*table);
}

}  // namespace

PipelineSpec parse_pipeline(const std::string& name, const std::string& file, std::string_view text) {
  PipelineSpec spec;
  spec.name = name;
  spec.file = file;
  fill_from(parse_toml(text, file), spec);
  return spec;
}

PipelineSpec read_pipeline(const std::string& name, const fs::path& file) {
  PipelineSpec spec;
  spec.name = name;
  spec.file = file.string();
  spec.status = check_folder(file.parent_path());
  if (spec.status.ok()) fill_from(read_toml_file(file), spec);
  return spec;
}

Result<std::vector<PipelineSpec>> scan_pipelines(const fs::path& repository) {
  std::vector<PipelineSpec> pipelines;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_repository(repository));
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    const fs::path file = entry / kPipelineFile;
    std::error_code ignored;
    if (name.starts_with('.') || !fs::is_regular_file(file, ignored)) continue;
    pipelines.push_back(read_pipeline(name, file));
  }
  return pipelines;
}

}  // namespace foliot
