#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/compiler/passes.h"

namespace foliot {
namespace {

// y[c] = factor[c] * x[c] + shift[c], and which value x is.
struct ChannelArithmetic {
  ValueIndex x = kNoValue;
  std::vector<float> factor;
  std::vector<float> shift;
};

// The dimension that the weights of an operator's result run along.
size_t channel_axis(const GraphEditor& editor, const Node& node) {
  return node.kind == OperatorKind::kMatMul ? editor.value(node.outputs[0]).shape.size() - 1 : 1;
}

// A constant that is one number per channel, or one for all: as one per channel.
std::optional<std::vector<float>> per_channel(const GraphEditor& editor, ValueIndex index, const Shape& shape,
                                              size_t axis) {
  const Value& value = editor.value(index);
  if (!value.is_constant() || value.type != DataType::kFloat32 || value.shape.size() > shape.size())
    return std::nullopt;
  const Constant constant = editor.constant(index);
  const std::span<const float> values = floats(constant);
  const auto channels = static_cast<size_t>(shape[axis]);
  if (values.size() == 1) return std::vector<float>(channels, values[0]);
  const size_t from_end = shape.size() - axis;
  const bool along_axis = values.size() == channels && value.shape.size() >= from_end &&
                          value.shape[value.shape.size() - from_end] == shape[axis];
  if (!along_axis) return std::nullopt;
  return std::vector<float>(values.begin(), values.end());
}

// Reads a binary operator with a constant on one side as arithmetic on channels.
std::optional<ChannelArithmetic> read_binary(const GraphEditor& editor, const Node& node, size_t axis) {
  const Function function = node.attributes.function();
  const bool multiplies = function == Function::kMul || function == Function::kDiv;
  if (!multiplies && function != Function::kAdd && function != Function::kSub) return std::nullopt;
  const bool left = editor.value(node.inputs[0]).is_constant();
  if (left && (function == Function::kSub || function == Function::kDiv)) return std::nullopt;
  ChannelArithmetic result;
  result.x = node.inputs[left ? 1 : 0];
  const Shape& shape = editor.value(result.x).shape;
  if (shape.size() <= axis || editor.value(node.outputs[0]).shape != shape) return std::nullopt;
  auto numbers = per_channel(editor, node.inputs[left ? 0 : 1], shape, axis);
  if (!numbers) return std::nullopt;
  for (float& number : *numbers) {
    if (function == Function::kDiv) number = 1 / number;
    if (function == Function::kSub) number = -number;
  }
  const auto channels = static_cast<size_t>(shape[axis]);
  result.factor = multiplies ? *numbers : std::vector<float>(channels, 1);
  result.shift = multiplies ? std::vector<float>(channels, 0) : std::move(*numbers);
  return result;
}

std::optional<ChannelArithmetic> read_affine(const GraphEditor& editor, const Node& node) {
  if (!editor.value(node.inputs[1]).is_constant() || !editor.value(node.inputs[2]).is_constant()) return std::nullopt;
  const Constant factor = editor.constant(node.inputs[1]);
  const Constant shift = editor.constant(node.inputs[2]);
  return ChannelArithmetic{.x = node.inputs[0],
                           .factor = {floats(factor).begin(), floats(factor).end()},
                           .shift = {floats(shift).begin(), floats(shift).end()}};
}

// How the weights of a node are laid out: in groups, one after the other, in each of which
// element i belongs to channel i / run % channels of those of the group.
struct WeightsLayout {
  size_t channels;
  size_t run;
  size_t groups = 1;
};

std::optional<WeightsLayout> weights_layout(const Node& node, const Shape& shape) {
  if (node.kind == OperatorKind::kAffine) return WeightsLayout{static_cast<size_t>(shape[0]), 1};
  if (node.kind == OperatorKind::kConvolution) {
    const auto channels = static_cast<size_t>(shape[0]);
    return WeightsLayout{channels, channels == 0 ? 1 : element_count(shape) / channels};
  }
  if (node.kind == OperatorKind::kConvolutionTranspose) {
    const auto run = static_cast<size_t>(element_count(Shape(shape.begin() + 2, shape.end())));
    return WeightsLayout{static_cast<size_t>(shape[1]), run, static_cast<size_t>(node.attributes.integer("groups"))};
  }
  if (node.kind == OperatorKind::kMatMul && shape.size() == 2) {
    const bool transposed = node.attributes.integer("transpose_b") != 0;
    return transposed ? WeightsLayout{static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1])}
                      : WeightsLayout{static_cast<size_t>(shape[1]), 1};
  }
  return std::nullopt;
}

Constant scaled_weights(const Constant& weights, WeightsLayout layout, const std::vector<float>& factor) {
  const std::span<const float> from = floats(weights);
  std::vector<std::byte> bytes(from.size_bytes());
  float* const to = reinterpret_cast<float*>(bytes.data());
  // Without divisions, which would be most of a compilation's time.
  size_t i = 0;
  for (size_t group = 0; group < layout.groups; ++group) {
    const float* const factors = factor.data() + group * layout.channels;
    const size_t end = from.size() / layout.groups * (group + 1);
    while (i < end) {
      for (size_t channel = 0; channel < layout.channels; ++channel) {
        for (const size_t run_end = i + layout.run; i < run_end; ++i) to[i] = from[i] * factors[channel];
      }
    }
  }
  return make_constant(DataType::kFloat32, weights.shape, std::move(bytes));
}

// Of all that scaled_weights() looks at beside the weights' values.
std::string bytes_of(const WeightsLayout& layout, const Shape& shape, const std::vector<float>& factor) {
  std::string result;
  const auto append = [&](const auto& values) {
    result.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  append(std::array{layout.channels, layout.run, layout.groups});
  append(shape);
  append(factor);
  return result;
}

// bias * factor + shift; no bias counts as zeros.
Constant scaled_bias(const GraphEditor& editor, ValueIndex bias, const ChannelArithmetic& arithmetic) {
  std::vector<float> to = arithmetic.shift;
  if (bias != kNoValue) {
    const Constant constant = editor.constant(bias);
    for (size_t i = 0; i < to.size(); ++i) to[i] += floats(constant)[i] * arithmetic.factor[i];
  }
  return make_constant({static_cast<int64_t>(to.size())}, to);
}

// The node before, with the arithmetic in its weights; nullopt if it has none
// that are constant.
std::optional<Node> absorb(GraphEditor& editor, const Node& node, const ChannelArithmetic& arithmetic) {
  if (!node.post_operations.empty() || !editor.value(node.inputs[1]).is_constant()) return std::nullopt;
  const ValueIndex bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
  if (bias != kNoValue && !editor.value(bias).is_constant()) return std::nullopt;
  const Constant weights = editor.constant(node.inputs[1]);
  const auto layout = weights_layout(node, weights.shape);
  if (!layout || layout->groups * layout->channels != arithmetic.factor.size()) return std::nullopt;
  Node result = node;
  const bool scales = std::ranges::any_of(arithmetic.factor, [](float f) { return f != 1; });
  if (scales) {
    // Graphs of several batch sizes scale the same weights.
    result.inputs[1] = editor.add_constant(
        node.name, editor.derive(weights, bytes_of(*layout, weights.shape, arithmetic.factor),
                                 [&] { return scaled_weights(weights, *layout, arithmetic.factor); }));
  }
  result.inputs.resize(3, kNoValue);
  result.inputs[2] = editor.add_constant(node.name, scaled_bias(editor, bias, arithmetic));
  return result;
}

bool has_weights(OperatorKind kind) {
  return kind == OperatorKind::kConvolution || kind == OperatorKind::kConvolutionTranspose ||
         kind == OperatorKind::kMatMul || kind == OperatorKind::kAffine;
}

// The node that makes the one operand of `node` that is no constant, if its
// weights could take in what `node` does.
NodeIndex find_absorber(const GraphEditor& editor, const Node& node) {
  for (ValueIndex input : node.inputs) {
    if (input == kNoValue) continue;
    const NodeIndex before = editor.producer(input);
    if (before != kNoNode && has_weights(editor.node(before).kind) && editor.sole_user(input) != kNoNode) return before;
  }
  return kNoNode;
}

}  // namespace

void fold_channel_arithmetic(GraphEditor& editor) {
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    const Node node = editor.node(i);
    const bool affine = node.kind == OperatorKind::kAffine;
    if (editor.is_removed(i) || (!affine && node.kind != OperatorKind::kBinary)) continue;
    const NodeIndex before = find_absorber(editor, node);
    if (before == kNoNode) continue;
    const size_t axis = channel_axis(editor, editor.node(before));
    const auto arithmetic = affine ? read_affine(editor, node) : read_binary(editor, node, axis);
    if (!arithmetic || arithmetic->x != editor.node(before).outputs[0]) continue;
    auto absorbed = absorb(editor, editor.node(before), *arithmetic);
    if (!absorbed) continue;
    absorbed->outputs = node.outputs;
    editor.remove(i);
    editor.replace(before, std::move(*absorbed));
  }
}

}  // namespace foliot
