#include "compiler/interface_specs.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

// Whether the extents are those of dimension `name`, bucket by bucket.
bool follows(const Dimensions& dimensions, const std::vector<int64_t>& extents, const std::string& name) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const auto found = dimensions.buckets[i].find(name);
    if (found == dimensions.buckets[i].end() || found->second != extents[i]) return false;
  }
  return true;
}

// The name of the variable dimension that an output has at one place; empty: it is fixed.
Result<std::string> dimension_name(const Dimensions& dimensions, const OnnxValueInfo& output, size_t axis,
                                   const std::vector<int64_t>& extents) {
  if (output.dimensions && axis < output.dimensions->size()) {
    const std::string& declared = (*output.dimensions)[axis].symbol;
    if (!declared.empty() && follows(dimensions, extents, declared)) return declared;
  }
  const bool varies = std::ranges::any_of(extents, [&](int64_t extent) { return extent != extents.front(); });
  if (!varies) return std::string();
  for (const auto& [name, value] : dimensions.buckets.front()) {
    if (follows(dimensions, extents, name)) return name;
  }
  return Status::unimplemented(
      fmt::format("dimension {} of output '{}' varies with the bucket and is none of its dimensions; declare one "
                  "bucket only under [buckets] in model.toml",
                  axis, output.name));
}

}  // namespace

std::vector<TensorSpec> input_specs(const Dimensions& dimensions, bool batching) {
  std::vector<TensorSpec> specs;
  for (const OnnxValueInfo& input : dimensions.inputs) {
    TensorSpec& spec = specs.emplace_back();
    spec.name = input.name;
    spec.type = input.type;
    for (size_t axis = batching ? 1 : 0; axis < input.dimensions->size(); ++axis) {
      const OnnxDimension& dimension = (*input.dimensions)[axis];
      const bool is_batch = dimensions.batching && axis == 0;
      spec.shape.push_back(is_batch ? dimensions.own_batch_size : dimension.value);
      spec.dimension_names.push_back(!is_batch && dimension.value == -1 ? dimension.symbol : "");
    }
  }
  return specs;
}

Result<std::vector<TensorSpec>> output_specs(const Dimensions& dimensions, const std::vector<OnnxValueInfo>& outputs,
                                             std::span<const Graph* const> graphs, bool batching) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TensorSpec& spec = specs.emplace_back();
    spec.name = outputs[i].name;
    spec.type = outputs[i].type;
    spec.labels = outputs[i].labels;
    const auto shape_in = [&](size_t bucket) -> const Shape& {
      return graphs[bucket]->values[graphs[bucket]->outputs[i]].shape;
    };
    for (size_t axis = batching ? 1 : 0; axis < shape_in(0).size(); ++axis) {
      std::vector<int64_t> extents;
      for (size_t bucket = 0; bucket < graphs.size(); ++bucket) {
        if (shape_in(bucket).size() != shape_in(0).size()) {
          return Status::unimplemented(
              fmt::format("output '{}' has another number of dimensions in every bucket", outputs[i].name));
        }
        extents.push_back(shape_in(bucket)[axis]);
      }
      FOLIOT_ASSIGN_OR_RETURN(std::string name, dimension_name(dimensions, outputs[i], axis, extents));
      spec.shape.push_back(name.empty() ? extents.front() : -1);
      spec.dimension_names.push_back(std::move(name));
    }
  }
  return specs;
}

}  // namespace foliot
