#include "engine/device/vulkan/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/device/vulkan/operator_dispatches.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

std::span<const float> floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// B[K, N], or B[N, K] if turned -> [N / 4, K, 4]. extents: K, N, turned.
std::vector<std::byte> pack_columns(std::span<const std::byte> dense, std::span<const int64_t> extents) {
  const auto k = static_cast<size_t>(extents[0]), n = static_cast<size_t>(extents[1]);
  const bool turned = extents[2] != 0;
  const std::span<const float> from = floats(dense);
  std::vector<float> to(k * n);
  for (size_t i = 0; i < k; ++i)
    for (size_t j = 0; j < n; ++j) to[(j / 4 * k + i) * 4 + j % 4] = turned ? from[j * k + i] : from[i * n + j];
  return bytes_of(to);
}

// W[M, C, taps] -> [M / 4, taps, C, 4]. extents: M, C, taps.
std::vector<std::byte> pack_taps(std::span<const std::byte> dense, std::span<const int64_t> extents) {
  const auto m = static_cast<size_t>(extents[0]), c = static_cast<size_t>(extents[1]),
             taps = static_cast<size_t>(extents[2]);
  const std::span<const float> from = floats(dense);
  std::vector<float> to(m * c * taps);
  for (size_t o = 0; o < m; ++o)
    for (size_t i = 0; i < c; ++i)
      for (size_t t = 0; t < taps; ++t) to[((o / 4 * taps + t) * c + i) * 4 + o % 4] = from[(o * c + i) * taps + t];
  return bytes_of(to);
}

// One graph on its way.
class VulkanLowering {
 public:
  VulkanLowering(const Graph& graph, PackedConstants& constants) : graph_(graph), constants_(constants) {}

  Result<Plan> lower();

 private:
  bool is_output(ValueIndex value) const { return std::ranges::find(graph_.outputs, value) != graph_.outputs.end(); }
  TensorIndex add(Tensor tensor);
  TensorIndex tensor_of(ValueIndex value);
  TensorIndex result_of(ValueIndex value);
  // The same bytes under another shape and type.
  TensorIndex view(TensorIndex under, const Value& value, const Shape& shape);
  TensorIndex packed(ValueIndex value, std::string_view layout, PackedConstants::Pack pack, const Shape& extents);

  Status lower_node(const Node& node);
  Status lower_affine(const Node& node);
  Status lower_reshape(const Node& node);
  void pack_weights(const Node& node, Operator& operation);
  Operator begin(const Node& node);
  Status emit(Operator operation);
  Status finish_outputs();
  Status copy(TensorIndex from, TensorIndex to, const std::string& name);

  const Graph& graph_;
  PackedConstants& constants_;
  Plan plan_;
  std::vector<TensorIndex> tensor_;  // by value; kNoTensor: not yet
};

Result<Plan> VulkanLowering::lower() {
  plan_.batch_size = graph_.batch_size;
  plan_.bucket = graph_.bucket;
  tensor_.assign(graph_.values.size(), kNoTensor);
  for (const ValueIndex input : graph_.inputs) {
    const Value& value = graph_.values[input];
    tensor_[input] = add({.name = value.name,
                          .type = value.type,
                          .shape = value.shape,
                          .layout = {},
                          .bytes = byte_size(value.type, value.shape),
                          .place = Place::kInput});
    plan_.inputs.push_back(tensor_[input]);
  }
  for (const Node& node : graph_.nodes) {
    FOLIOT_RETURN_IF_ERROR(lower_node(node).with_context(
        fmt::format("node '{}' ({}) cannot run by Vulkan", node.name, to_string(node.kind))));
  }
  FOLIOT_RETURN_IF_ERROR(finish_outputs());
  return std::move(plan_);
}

TensorIndex VulkanLowering::add(Tensor tensor) {
  plan_.tensors.push_back(std::move(tensor));
  return static_cast<TensorIndex>(plan_.tensors.size() - 1);
}

TensorIndex VulkanLowering::tensor_of(ValueIndex index) {
  if (index == kNoValue) return kNoTensor;
  if (tensor_[index] != kNoTensor) return tensor_[index];
  const Value& value = graph_.values[index];
  FOLIOT_CHECK(value.is_constant());
  Tensor tensor{.name = value.name,
                .type = value.type,
                .shape = value.shape,
                .layout = {},
                .bytes = byte_size(value.type, value.shape),
                .place = Place::kWeights};
  tensor.constant = constants_.index(value.constant, "", nullptr, {});
  return tensor_[index] = add(std::move(tensor));
}

TensorIndex VulkanLowering::result_of(ValueIndex index) {
  const Value& value = graph_.values[index];
  return tensor_[index] = add({.name = value.name,
                               .type = value.type,
                               .shape = value.shape,
                               .layout = {},
                               .bytes = byte_size(value.type, value.shape),
                               .place = is_output(index) ? Place::kOutput : Place::kWorkspace});
}

TensorIndex VulkanLowering::view(TensorIndex under, const Value& value, const Shape& shape) {
  Tensor tensor = plan_.tensors[under];
  tensor.name = value.name;
  tensor.type = value.type;
  tensor.shape = shape;
  if (tensor.place != Place::kWeights && tensor.alias_of == kNoTensor) tensor.alias_of = under;
  return add(std::move(tensor));
}

TensorIndex VulkanLowering::packed(ValueIndex index, std::string_view layout, PackedConstants::Pack pack,
                                   const Shape& extents) {
  const Value& value = graph_.values[index];
  Tensor tensor{.name = value.name,
                .type = value.type,
                .shape = value.shape,
                .layout = fmt::format("{}{}", layout, element_count(value.shape)),
                .bytes = byte_size(value.type, value.shape),
                .place = Place::kWeights};
  const std::string form = fmt::format("{} {}", layout, to_string(extents));
  tensor.constant = constants_.index(value.constant, form, pack, extents);
  return add(std::move(tensor));
}

Operator VulkanLowering::begin(const Node& node) {
  return {.kind = node.kind,
          .name = node.name,
          .inputs = {},
          .outputs = {},
          .attributes = node.attributes,
          .post_operations = node.post_operations,
          .kernel = std::string(kernel_of(node.kind))};
}

Status VulkanLowering::emit(Operator operation) {
  const Result<std::vector<Dispatch>> dispatches = operator_dispatches({operation, plan_.tensors});
  if (!dispatches.ok()) return Status::unimplemented(dispatches.status().message());
  plan_.operators.push_back(std::move(operation));
  return {};
}

// What is read four at a time begins at a multiple of 16 bytes: four has to divide the columns or channels.
void VulkanLowering::pack_weights(const Node& node, Operator& operation) {
  const ValueIndex index = node.inputs[1];
  const Value& weights = graph_.values[index];
  const Shape& shape = weights.shape;
  if (!weights.is_constant() || weights.type != DataType::kFloat32 || shape.size() < 2) return;
  const bool product = node.kind == OperatorKind::kMatMul;
  if (product) {
    const bool turned = node.attributes.integer("transpose_b") != 0;
    const int64_t k = shape[shape.size() - (turned ? 1 : 2)], n = shape[shape.size() - (turned ? 2 : 1)];
    if (static_cast<uint64_t>(k * n) != element_count(shape) || n % 4 != 0) return;
    operation.inputs[1] = packed(index, kPackedColumns, pack_columns, {k, n, turned ? 1 : 0});
    return;
  }
  if (node.kind != OperatorKind::kConvolution || shape[0] / node.attributes.integer("groups") % 4 != 0 ||
      shape[0] % node.attributes.integer("groups") != 0) {
    return;
  }
  const auto taps = static_cast<int64_t>(element_count(Shape(shape.begin() + 2, shape.end())));
  operation.inputs[1] = packed(index, kPackedTaps, pack_taps, {shape[0], shape[1], taps});
}

// X * scale + shift, which is a product with a sum behind it.
Status VulkanLowering::lower_affine(const Node& node) {
  Operator operation = begin(node);
  operation.kind = OperatorKind::kBinary;
  operation.kernel = kernel_of(operation.kind);
  operation.attributes.set("function", Function::kMul);
  Shape channel(graph_.values[node.inputs[0]].shape.size() - 1, 1);
  for (const ValueIndex input : node.inputs) operation.inputs.push_back(tensor_of(input));
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const Value& value = graph_.values[node.inputs[i]];
    channel[0] = static_cast<int64_t>(element_count(value.shape));
    operation.inputs[i] = view(operation.inputs[i], value, channel);
  }
  operation.post_operations.insert(
      operation.post_operations.begin(),
      {.kind = PostOperation::Kind::kBinary, .function = Function::kAdd, .alpha = 0, .beta = 0, .input = 2});
  operation.outputs.push_back(result_of(node.outputs[0]));
  return emit(std::move(operation));
}

Status VulkanLowering::lower_reshape(const Node& node) {
  const ValueIndex output = node.outputs[0];
  const TensorIndex from = tensor_of(node.inputs[0]);
  const Value& value = graph_.values[output];
  if (!is_output(output)) {
    tensor_[output] = view(from, value, value.shape);
    return {};
  }
  return copy(from, result_of(output), node.name);
}

Status VulkanLowering::lower_node(const Node& node) {
  if (kernel_of(node.kind).empty() && node.kind != OperatorKind::kAffine) {
    return Status::unimplemented("there is no shader for it");
  }
  if (node.outputs.size() != 1) return Status::unimplemented("it has several results");
  if (node.kind == OperatorKind::kReshape) return lower_reshape(node);
  if (node.kind == OperatorKind::kAffine) return lower_affine(node);
  Operator operation = begin(node);
  const bool is_weighed = node.kind == OperatorKind::kMatMul || node.kind == OperatorKind::kConvolution;
  operation.inputs.assign(node.inputs.size(), kNoTensor);
  if (is_weighed) pack_weights(node, operation);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool is_packed = operation.inputs[i] != kNoTensor;
    if (!is_packed) operation.inputs[i] = tensor_of(node.inputs[i]);
  }
  operation.outputs.push_back(result_of(node.outputs[0]));
  if (node.kind == OperatorKind::kAttention) {
    const Shape& keys = graph_.values[node.inputs[2]].shape;
    Shape scores = graph_.values[node.outputs[0]].shape;
    scores.back() = keys[keys.size() - 2];
    operation.scratchpad = add({.name = node.name + " scores",
                                .type = DataType::kFloat32,
                                .shape = scores,
                                .layout = {},
                                .bytes = byte_size(DataType::kFloat32, scores),
                                .place = Place::kWorkspace});
  }
  return emit(std::move(operation));
}

Status VulkanLowering::copy(TensorIndex from, TensorIndex to, const std::string& name) {
  return emit({.kind = OperatorKind::kReorder,
               .name = name,
               .inputs = {from},
               .outputs = {to},
               .attributes = {},
               .post_operations = {},
               .kernel = std::string(kernel_of(OperatorKind::kReorder))});
}

Status VulkanLowering::finish_outputs() {
  std::vector<bool> taken(plan_.tensors.size(), false);
  for (const ValueIndex output : graph_.outputs) {
    const Value& value = graph_.values[output];
    const TensorIndex tensor = tensor_of(output);
    taken.resize(plan_.tensors.size(), false);
    if (plan_.tensors[tensor].place == Place::kOutput && plan_.tensors[tensor].alias_of == kNoTensor &&
        !taken[tensor]) {
      taken[tensor] = true;
      plan_.outputs.push_back(tensor);
      continue;
    }
    const TensorIndex own = add({.name = value.name,
                                 .type = value.type,
                                 .shape = value.shape,
                                 .layout = {},
                                 .bytes = byte_size(value.type, value.shape),
                                 .place = Place::kOutput});
    FOLIOT_RETURN_IF_ERROR(copy(tensor, own, value.name));
    plan_.outputs.push_back(own);
  }
  return {};
}

}  // namespace

uint32_t PackedConstants::index(const std::shared_ptr<const std::vector<std::byte>>& constant, const std::string& form,
                                Pack pack, std::span<const int64_t> extents) {
  const auto [known, added] = known_.try_emplace({constant.get(), form}, static_cast<uint32_t>(constants_.size()));
  if (added) constants_.push_back(pack == nullptr ? *constant : pack(*constant, extents));
  return known->second;
}

Result<Plan> lower_for_vulkan(const Graph& graph, PackedConstants& constants) {
  return VulkanLowering(graph, constants).lower();
}

Result<LayoutSize> vulkan_layout_size(DataType type, const std::string& layout) {
  for (const std::string_view prefix : {kPackedColumns, kPackedTaps}) {
    if (!layout.starts_with(prefix) || type != DataType::kFloat32) continue;
    const char* const end = layout.data() + layout.size();
    uint64_t elements = 0;
    const auto parsed = std::from_chars(layout.data() + prefix.size(), end, elements);
    if (parsed.ec == std::errc() && parsed.ptr == end && elements < uint64_t{1} << 40)
      return LayoutSize{.elements = elements, .bytes = elements * sizeof(float)};
  }
  return Status::invalid_argument(fmt::format("'{}' is no layout of Vulkan's weights", layout));
}

}  // namespace foliot
