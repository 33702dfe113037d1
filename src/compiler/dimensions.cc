#include "compiler/dimensions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

namespace foliot {
namespace {

bool same(const OnnxDimension& a, const OnnxDimension& b) { return a.value == b.value && a.symbol == b.symbol; }

// Whether the leading dimension of all inputs is one and the same.
bool inputs_share_leading_dimension(const OnnxModel& model) {
  if (model.inputs.empty()) return false;
  for (const OnnxValueInfo& input : model.inputs) {
    if (input.dimensions->empty() || !same(input.dimensions->front(), model.inputs[0].dimensions->front()))
      return false;
  }
  return true;
}

// Whether the outputs, where the model declares them, could have that dimension.
bool outputs_may_share(const OnnxModel& model, const OnnxDimension& batch) {
  return std::ranges::all_of(model.outputs, [&](const OnnxValueInfo& output) {
    if (!output.dimensions) return true;
    if (output.dimensions->empty()) return false;
    // One row may be declared for as many as come in.
    const int64_t declared = output.dimensions->front().value;
    return declared == -1 || declared == batch.value || (declared == 1 && batch.value == -1);
  });
}

Status require_leading(const OnnxModel& model, const std::string& symbol) {
  for (const OnnxValueInfo& input : model.inputs) {
    if (input.dimensions->empty() || input.dimensions->front().symbol != symbol) {
      return Status::invalid_argument(
          fmt::format("batch dimension '{}' is not the first dimension of input '{}'; name another as "
                      "`batch_dimension` in model.toml, or leave it out",
                      symbol, input.name));
    }
  }
  return {};
}

// The name by which buckets can speak of a dimension that has none.
std::string dimension_name(const OnnxValueInfo& input, size_t axis) {
  const std::string& symbol = (*input.dimensions)[axis].symbol;
  return symbol.empty() ? fmt::format("{}_{}", input.name, axis) : symbol;
}

Status check_buckets(const CompileOptions& options, const std::set<std::string>& variable) {
  size_t length = 0;
  for (const auto& [name, values] : options.buckets) {
    if (!variable.contains(name)) {
      return Status::invalid_argument(
          fmt::format("[buckets] in model.toml names '{}', which is no variable dimension of the model; it has: {}",
                      name, variable.empty() ? "none" : fmt::format("{}", fmt::join(variable, ", "))));
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

// Names every variable dimension but the batch, and finds its values.
Status resolve_buckets(const CompileOptions& options, Dimensions* dimensions) {
  std::set<std::string> variable;
  for (OnnxValueInfo& input : dimensions->inputs) {
    for (size_t axis = dimensions->batching ? 1 : 0; axis < input.dimensions->size(); ++axis) {
      OnnxDimension& dimension = (*input.dimensions)[axis];
      if (dimension.value != -1) continue;
      dimension.symbol = dimension_name(input, axis);
      variable.insert(dimension.symbol);
      if (options.buckets.contains(dimension.symbol)) continue;
      return Status::invalid_argument(
          fmt::format("dimension {} of input '{}' is variable ('{}'): declare the sizes to compile for in model.toml, "
                      "for example `[buckets]` with `{} = [32, 64, 128]`",
                      axis, input.name, dimension.symbol, dimension.symbol));
    }
  }
  FOLIOT_RETURN_IF_ERROR(check_buckets(options, variable));
  const size_t count = options.buckets.empty() ? 1 : options.buckets.begin()->second.size();
  dimensions->buckets.resize(count);
  for (const auto& [name, values] : options.buckets) {
    for (size_t i = 0; i < count; ++i) dimensions->buckets[i][name] = values[i];
  }
  return {};
}

}  // namespace

std::vector<Shape> Dimensions::input_shapes(int64_t batch_size, size_t bucket) const {
  std::vector<Shape> shapes;
  for (const OnnxValueInfo& input : inputs) {
    Shape& shape = shapes.emplace_back();
    for (const OnnxDimension& dimension : *input.dimensions) {
      shape.push_back(dimension.value != -1 ? dimension.value : 0);
      if (batching && shape.size() == 1) {
        shape.back() = batch_size;
      } else if (dimension.value == -1) {
        shape.back() = buckets[bucket].at(dimension.symbol);
      }
    }
  }
  return shapes;
}

Result<Dimensions> resolve_dimensions(const OnnxModel& model, const CompileOptions& options) {
  for (const OnnxValueInfo& input : model.inputs) {
    if (!input.dimensions) {
      return Status::invalid_argument(
          fmt::format("input '{}' has no shape; export the model with the shapes of its inputs", input.name));
    }
  }
  Dimensions dimensions;
  dimensions.inputs = model.inputs;
  if (!options.batch_dimension.empty()) {
    FOLIOT_RETURN_IF_ERROR(require_leading(model, options.batch_dimension));
    dimensions.batching = true;
  } else if (inputs_share_leading_dimension(model)) {
    const OnnxDimension& leading = model.inputs[0].dimensions->front();
    const bool declared = leading.value == -1 && options.buckets.contains(dimension_name(model.inputs[0], 0));
    dimensions.batching = !declared && outputs_may_share(model, leading);
    if (dimensions.batching && leading.value != -1) dimensions.own_batch_size = leading.value;
  }
  FOLIOT_RETURN_IF_ERROR(resolve_buckets(options, &dimensions));
  return dimensions;
}

}  // namespace foliot
