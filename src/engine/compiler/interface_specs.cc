#include "engine/compiler/interface_specs.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

// Whether the extents are those of dimension `name`, bucket by bucket.
bool follows(const std::vector<OutputExtents::Sizes>& buckets, const std::vector<int64_t>& extents,
             const std::string& name) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const auto found = buckets[i].find(name);
    if (found == buckets[i].end() || found->second != extents[i]) return false;
  }
  return true;
}

// The dimension that the model declares for this place, if it has that name and its
// extents; empty: none.
std::string declared_name(const Dimensions& dimensions, const OnnxValueInfo& output, size_t axis,
                          const std::vector<int64_t>& extents) {
  if (!output.dimensions || axis >= output.dimensions->size()) return {};
  const std::string& declared = (*output.dimensions)[axis].symbol;
  return !declared.empty() && follows(dimensions.buckets, extents, declared) ? declared : std::string();
}

// Adds a dimension of these extents to the buckets, under this name or one like it.
std::string add_dimension(std::string name, const std::vector<int64_t>& extents,
                          std::vector<OutputExtents::Sizes>* buckets) {
  while (buckets->front().contains(name) && !follows(*buckets, extents, name)) name += '_';
  for (size_t i = 0; i < extents.size(); ++i) (*buckets)[i][name] = extents[i];
  return name;
}

// The name of the variable dimension that an output has at one place; empty: it is fixed.
std::string dimension_name(const Dimensions& dimensions, size_t index, const OnnxValueInfo& output, size_t axis,
                           const std::vector<int64_t>& extents, OutputExtents& rules,
                           std::vector<OutputExtents::Sizes>* buckets) {
  if (dimensions.variable.empty()) return {};
  std::string declared = declared_name(dimensions, output, axis, extents);
  if (!declared.empty()) return declared;
  const bool varies = std::ranges::any_of(extents, [&](int64_t extent) { return extent != extents.front(); });
  const ExtentRule rule = rules.find(index, axis);
  if (rule.is_fixed && !varies) return {};
  if (rule.linear) {
    bool holds = true;
    for (size_t i = 0; i < extents.size(); ++i)
      holds = holds && rule.linear->of(dimensions.buckets[i].at(rule.linear->dimension)) == extents[i];
    if (holds) return add_dimension(to_string(*rule.linear), extents, buckets);
  }
  return add_dimension(fmt::format("{}_{}", output.name, axis), extents, buckets);
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
                                             std::span<const Graph* const> graphs, bool batching,
                                             OutputExtents& extents, std::vector<OutputExtents::Sizes>* buckets) {
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
      std::vector<int64_t> in_bucket;
      for (size_t bucket = 0; bucket < graphs.size(); ++bucket) {
        if (shape_in(bucket).size() != shape_in(0).size()) {
          return Status::unimplemented(
              fmt::format("output '{}' has another number of dimensions in every bucket", outputs[i].name));
        }
        in_bucket.push_back(shape_in(bucket)[axis]);
      }
      std::string name = dimension_name(dimensions, i, outputs[i], axis, in_bucket, extents, buckets);
      spec.shape.push_back(name.empty() ? in_bucket.front() : -1);
      spec.dimension_names.push_back(std::move(name));
    }
  }
  return specs;
}

}  // namespace foliot
