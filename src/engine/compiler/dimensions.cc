#include "engine/compiler/dimensions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "engine/compiler/bucket_suggestion.h"

namespace foliot {
namespace {

std::string describe(const OnnxDimension& dimension) {
  if (dimension.value != -1) return std::to_string(dimension.value);
  return dimension.symbol.empty() ? "variable" : fmt::format("'{}'", dimension.symbol);
}

// Gives the dimensions without a symbol names by which buckets can refer to them.
void name_dimensions(std::vector<OnnxValueInfo>& inputs) {
  std::set<std::string> names;
  for (const OnnxValueInfo& input : inputs)
    for (const OnnxDimension& dimension : *input.dimensions) names.insert(dimension.symbol);
  for (OnnxValueInfo& input : inputs) {
    for (size_t axis = 0; axis < input.dimensions->size(); ++axis) {
      OnnxDimension& dimension = (*input.dimensions)[axis];
      if (dimension.value != -1 || !dimension.symbol.empty()) continue;
      dimension.symbol = fmt::format("{}_{}", input.name, axis);
      while (!names.insert(dimension.symbol).second) dimension.symbol += '_';
    }
  }
}

// Why the leading dimensions of the inputs cannot be a batch; empty: they may be one.
std::string why_inputs_have_no_batch(const std::vector<OnnxValueInfo>& inputs, const CompileOptions& options) {
  if (inputs.empty()) return "the model has no inputs";
  for (const OnnxValueInfo& input : inputs) {
    if (input.dimensions->empty()) return fmt::format("input '{}' has no dimensions", input.name);
    const OnnxDimension& own = input.dimensions->front();
    const OnnxDimension& first = inputs[0].dimensions->front();
    if (own.value != first.value) {
      return fmt::format("the inputs' first dimensions differ: that of '{}' is {}, that of '{}' is {}", inputs[0].name,
                         describe(first), input.name, describe(own));
    }
    if (own.value == -1 && options.buckets.contains(own.symbol)) {
      return fmt::format("'{}', the first dimension of input '{}', has sizes under [buckets] in model.toml", own.symbol,
                         input.name);
    }
  }
  return {};
}

// As above, of the outputs that the model declares.
std::string why_outputs_have_no_batch(const OnnxModel& model, const OnnxDimension& batch) {
  for (const OnnxValueInfo& output : model.outputs) {
    if (!output.dimensions) continue;
    if (output.dimensions->empty()) return fmt::format("output '{}' has no dimensions", output.name);
    const OnnxDimension& first = output.dimensions->front();
    // One row may be declared for as many as come in.
    if (first.value == -1 || first.value == batch.value || (first.value == 1 && batch.value == -1)) continue;
    return fmt::format("the first dimension of output '{}' is {}, that of the inputs {}", output.name, first.value,
                       describe(batch));
  }
  return {};
}

Status require_leading(const std::vector<OnnxValueInfo>& inputs, const std::vector<std::string>& names) {
  std::vector<std::string> leading;
  bool all = true;
  for (const OnnxValueInfo& input : inputs) {
    const bool has_any = !input.dimensions->empty();
    leading.push_back(fmt::format("{} of '{}'", has_any ? describe(input.dimensions->front()) : "none", input.name));
    all = all && has_any && std::ranges::find(names, input.dimensions->front().symbol) != names.end();
  }
  if (all) return {};
  return Status::invalid_argument(
      fmt::format("`batch_dimension` in model.toml names '{}', which is not the first dimension of every input; the "
                  "first dimensions are {}. Name these, or leave it out",
                  fmt::join(names, "', '"), fmt::join(leading, ", ")));
}

Status find_batch(const OnnxModel& model, const CompileOptions& options, Dimensions* dimensions) {
  if (!options.batch_dimensions.empty()) {
    FOLIOT_RETURN_IF_ERROR(require_leading(dimensions->inputs, options.batch_dimensions));
    dimensions->batching = true;
    dimensions->writes_batch_size = true;
    return {};
  }
  dimensions->why_not = why_inputs_have_no_batch(dimensions->inputs, options);
  if (!dimensions->why_not.empty()) return {};
  const OnnxDimension& first = dimensions->inputs[0].dimensions->front();
  dimensions->why_not = why_outputs_have_no_batch(model, first);
  dimensions->batching = dimensions->why_not.empty();
  if (!dimensions->batching) return {};
  if (first.value != -1) dimensions->own_batch_size = first.value;
  dimensions->writes_batch_size = first.value != -1;
  dimensions->is_guess = std::ranges::any_of(
      dimensions->inputs, [&](const OnnxValueInfo& input) { return input.dimensions->front().symbol != first.symbol; });
  return {};
}

void list_variable(Dimensions* dimensions) {
  for (const OnnxValueInfo& input : dimensions->inputs) {
    for (size_t axis = dimensions->batching ? 1 : 0; axis < input.dimensions->size(); ++axis) {
      const OnnxDimension& dimension = (*input.dimensions)[axis];
      if (dimension.value != -1) continue;
      auto found = std::ranges::find(dimensions->variable, dimension.symbol, &VariableDimension::name);
      if (found == dimensions->variable.end()) {
        dimensions->variable.push_back({.name = dimension.symbol, .axis = axis, .rank = input.dimensions->size()});
        found = dimensions->variable.end() - 1;
      }
      found->places.push_back(fmt::format("dimension {} of input '{}'", axis, input.name));
    }
  }
}

Status check_buckets(const CompileOptions& options, const std::vector<VariableDimension>& variable) {
  size_t length = 0;
  for (const auto& [name, values] : options.buckets) {
    if (std::ranges::find(variable, name, &VariableDimension::name) == variable.end()) {
      std::vector<std::string> names;
      for (const VariableDimension& dimension : variable) names.push_back(fmt::format("'{}'", dimension.name));
      return Status::invalid_argument(
          fmt::format("[buckets] in model.toml names '{}', which is no variable dimension of the model; it has: {}",
                      name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    }
    const bool ascending = std::ranges::is_sorted(values) && !values.empty() && values.front() > 0;
    if (!ascending) {
      return Status::invalid_argument(
          fmt::format("[buckets] '{}' in model.toml must be a list of positive sizes, ascending", name));
    }
    if (length != 0 && values.size() != length) {
      return Status::invalid_argument("the lists under [buckets] in model.toml must have one length");
    }
    length = values.size();
  }
  if (length > std::numeric_limits<uint16_t>::max()) return Status::invalid_argument("there are too many buckets");
  return {};
}

// All variable dimensions need sizes.
Status check_declared(const CompileOptions& options, const Dimensions& dimensions) {
  std::vector<std::string> open;
  for (const VariableDimension& dimension : dimensions.variable) {
    if (options.buckets.contains(dimension.name)) continue;
    open.push_back(fmt::format("'{}' ({})", dimension.name, fmt::join(dimension.places, ", ")));
  }
  if (open.empty()) return {};
  return Status::invalid_argument(fmt::format(
      "variable dimensions without sizes: {}; declare the sizes to compile for in model.toml{}, for example with the "
      "line: {}",
      fmt::join(open, ", "), options.buckets.empty() ? " (the table [buckets])" : ", in place of its [buckets]",
      buckets_as_toml(suggest_buckets(dimensions.variable, options.buckets))));
}

}  // namespace

std::vector<Shape> Dimensions::input_shapes(int64_t batch_size, const std::map<std::string, int64_t>& values) const {
  std::vector<Shape> shapes;
  for (const OnnxValueInfo& input : inputs) {
    Shape& shape = shapes.emplace_back();
    for (const OnnxDimension& dimension : *input.dimensions) {
      shape.push_back(dimension.value != -1 ? dimension.value : 0);
      if (batching && shape.size() == 1) {
        shape.back() = batch_size;
      } else if (dimension.value == -1) {
        shape.back() = values.at(dimension.symbol);
      }
    }
  }
  return shapes;
}

Result<Dimensions> find_dimensions(const OnnxModel& model, const CompileOptions& options, bool may_batch) {
  for (const OnnxValueInfo& input : model.inputs) {
    if (!input.dimensions) {
      return Status::invalid_argument(
          fmt::format("input '{}' has no shape; export the model with the shapes of its inputs", input.name));
    }
  }
  Dimensions dimensions;
  dimensions.inputs = model.inputs;
  name_dimensions(dimensions.inputs);
  if (may_batch) FOLIOT_RETURN_IF_ERROR(find_batch(model, options, &dimensions));
  list_variable(&dimensions);
  return dimensions;
}

std::vector<std::string> leading_dimensions(const Dimensions& dimensions) {
  std::vector<std::string> names;
  for (const VariableDimension& dimension : dimensions.variable)
    if (dimension.axis == 0) names.push_back(dimension.name);
  return names;
}

Result<Dimensions> resolve_dimensions(const OnnxModel& model, const CompileOptions& given, bool may_batch) {
  FOLIOT_ASSIGN_OR_RETURN(Dimensions dimensions, find_dimensions(model, given, may_batch));
  CompileOptions options = given;
  const std::vector<std::string> leading = leading_dimensions(dimensions);
  if (leading.size() == 1 && !options.buckets.contains(leading[0])) {
    std::vector<int64_t>& sizes = options.buckets[leading[0]];
    if (given.buckets.empty()) {
      sizes.assign(given.batch_sizes.begin(), given.batch_sizes.end());
    } else {
      sizes.assign(given.buckets.begin()->second.size(), 1);
    }
  }
  // First what stands in model.toml and is wrong: it may be meant for what it lacks.
  FOLIOT_RETURN_IF_ERROR(check_buckets(options, dimensions.variable));
  FOLIOT_RETURN_IF_ERROR(check_declared(options, dimensions));
  dimensions.buckets.resize(options.buckets.empty() ? 1 : options.buckets.begin()->second.size());
  for (const auto& [name, values] : options.buckets) {
    for (size_t i = 0; i < dimensions.buckets.size(); ++i) dimensions.buckets[i][name] = values[i];
  }
  return dimensions;
}

}  // namespace foliot
