#include "engine/compiler/quantized_product.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace foliot {
namespace {

// Weights as integers around zero, with a scale for each entry of `axis`.
struct Weights {
  Constant codes;
  std::vector<double> scales;
};

// Element i of a tensor belongs to entry i / run % extent of a dimension.
struct ChannelDimension {
  size_t extent = 1, run = 1;

  ChannelDimension(const Shape& shape, size_t axis) : extent(static_cast<size_t>(shape[axis])) {
    for (size_t d = axis + 1; d < shape.size(); ++d) run *= static_cast<size_t>(shape[d]);
  }
  size_t entry(size_t i) const { return i / run % extent; }
};

// Nullopt: with its zero points taken off, a weight does not fit int8.
std::optional<Constant> centred(const Constant& codes, const std::vector<int64_t>& zero_points, size_t axis) {
  if (codes.type == DataType::kInt8 && std::ranges::all_of(zero_points, [](int64_t z) { return z == 0; })) return codes;
  std::vector<int64_t> values = to_integers(codes);
  const ChannelDimension along(codes.shape, axis);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] -= zero_points.size() == 1 ? zero_points[0] : zero_points[along.entry(i)];
    if (values[i] < -128 || values[i] > 127) return std::nullopt;
  }
  return from_integers(DataType::kInt8, codes.shape, values);
}

// `axis`: that of the result's channels; the scales must run along it.
std::optional<Weights> read_weights(const GraphEditor& editor, ValueIndex value, size_t axis) {
  const NodeIndex producer = editor.producer(value);
  if (producer == kNoNode || editor.node(producer).kind != OperatorKind::kDequantize) return std::nullopt;
  const Node& node = editor.node(producer);
  if (!editor.value(node.inputs[0]).is_constant()) return std::nullopt;
  Weights result{.codes = {}, .scales = node.attributes.reals("scales")};
  const bool whole = result.scales.size() == 1;
  if (!whole && node.attributes.integer("axis") != static_cast<int64_t>(axis)) return std::nullopt;
  auto codes = centred(editor.constant(node.inputs[0]), node.attributes.integers("zero_points"), axis);
  if (!codes) return std::nullopt;
  result.codes = std::move(*codes);
  if (whole) result.scales.resize(static_cast<size_t>(result.codes.shape[axis]), result.scales[0]);
  return result;
}

std::vector<int64_t> sums(const Constant& weights, size_t axis) {
  const ChannelDimension along(weights.shape, axis);
  std::vector<int64_t> result(along.extent);
  for (size_t i = 0; i < weights.bytes->size(); ++i)
    result[along.entry(i)] += std::to_integer<int8_t>((*weights.bytes)[i]);
  return result;
}

bool is_padded(const Node& node) {
  return node.kind == OperatorKind::kConvolution &&
         std::ranges::any_of(node.attributes.integers("pads"), [](int64_t pad) { return pad != 0; });
}

// The dimension of the weights that the result's channels are; nullopt: unknown.
std::optional<size_t> weights_channel_axis(const GraphEditor& editor, const Node& node) {
  if (node.kind == OperatorKind::kConvolution) return 0;
  if (node.kind != OperatorKind::kMatMul || editor.value(node.inputs[1]).shape.size() != 2) return std::nullopt;
  return node.attributes.integer("transpose_b") != 0 ? 0 : 1;
}

}  // namespace

std::optional<Quantized> read_quantized(const GraphEditor& editor, ValueIndex value) {
  const NodeIndex producer = editor.producer(value);
  if (producer == kNoNode || editor.node(producer).kind != OperatorKind::kDequantize) return std::nullopt;
  const Node& node = editor.node(producer);
  const Value& codes = editor.value(node.inputs[0]);
  if (codes.is_constant() || codes.type != DataType::kUint8) return std::nullopt;
  return Quantized{.codes = node.inputs[0],
                   .scale = node.attributes.real("scale"),
                   .zero_point = node.attributes.integer("zero_point")};
}

std::optional<QuantizedProduct> read_quantized_product(const GraphEditor& editor, NodeIndex index) {
  const Node& node = editor.node(index);
  const auto axis = editor.is_removed(index) ? std::nullopt : weights_channel_axis(editor, node);
  if (!axis) return std::nullopt;
  const auto x = read_quantized(editor, node.inputs[0]);
  auto weights = read_weights(editor, node.inputs[1], *axis);
  if (!x || !weights) return std::nullopt;
  QuantizedProduct result{.node = index,
                          .codes = x->codes,
                          .weights = std::move(weights->codes),
                          .scales = std::move(weights->scales),
                          .bias = {},
                          .padding = is_padded(node) ? x->zero_point : 0};
  const double alpha = node.kind == OperatorKind::kMatMul ? node.attributes.real("alpha") : 1;
  if (!(alpha > 0)) return std::nullopt;
  for (double& scale : result.scales) scale *= x->scale * alpha;
  result.bias.resize(result.scales.size());
  if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
    if (!editor.value(node.inputs[2]).is_constant()) return std::nullopt;
    const std::vector<double> bias = to_doubles(editor.constant(node.inputs[2]));
    for (size_t c = 0; c < bias.size(); ++c) result.bias[c] = bias[c] / result.scales[c];
  }
  if (x->zero_point != 0) {
    const std::vector<int64_t> sum = sums(result.weights, *axis);
    for (size_t c = 0; c < sum.size(); ++c) result.bias[c] -= static_cast<double>(x->zero_point * sum[c]);
  }
  return result;
}

}  // namespace foliot
