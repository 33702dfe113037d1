// What onnxruntime's optimizer fuses: products, activations, normalisations and embeddings,
// each as the operators that it was fused from.
#include <fmt/format.h>

#include <cmath>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/convolution.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/compiler/operators/quantization.h"

namespace foliot {
namespace {

constexpr double kSkipEpsilon = 1e-12, kEpsilon = 1e-5;

ValueIndex swish_by(Composer& c, ValueIndex x, double alpha) {
  return c.mul(x, c.unary(Function::kSigmoid, alpha == 1 ? x : c.linear(x, alpha)));
}

// The activation by its name in ONNX, "" being none, and its parameters in ONNX's order;
// those that are left out have ONNX's defaults.
Result<ValueIndex> activate(Composer& c, ValueIndex x, const std::string& name, const std::vector<float>& parameters) {
  const auto parameter = [&](size_t i, double otherwise) {
    return i < parameters.size() ? static_cast<double>(parameters[i]) : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return c.unary(Function::kRelu, x);
  if (name == "Tanh") return c.unary(Function::kTanh, x);
  if (name == "Sigmoid") return c.unary(Function::kSigmoid, x);
  if (name == "LeakyRelu") return c.unary(Function::kLeakyRelu, x, parameter(0, 0.01));
  if (name == "HardSigmoid") return c.unary(Function::kHardSigmoid, x, parameter(0, 0.2), parameter(1, 0.5));
  if (name == "HardSwish") return c.unary(Function::kHardSwish, x);
  if (name == "Clip" && parameters.size() == 2) return c.unary(Function::kClip, x, parameters[0], parameters[1]);
  return Status::unimplemented(fmt::format("attribute 'activation' is '{}' with {} parameters, which is not supported",
                                           name, parameters.size()));
}

// A convolution, the sum with input 3, an activation.
Status fused_convolution(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(Attributes attributes, convolution_attributes(node, 0, 1));
  const std::string activation = node.text("activation", "");
  const std::vector<float> parameters = node.reals("activation_params");
  Composer c(node.builder());
  std::vector<ValueIndex> inputs{node.input(0), node.input(1)};
  if (node.has_input(2)) inputs.push_back(node.input(2));
  ValueIndex y = c.emit(OperatorKind::kConvolution, std::move(inputs), std::move(attributes));
  if (node.has_input(3)) y = c.add(y, node.input(3));
  FOLIOT_ASSIGN_OR_RETURN(y, activate(c, y, activation, parameters));
  return c.finish(node, y);
}

Status check_matrices(const NodeTranslation& node) {
  if (node.rank(0) >= 2 && node.rank(1) >= 2) return {};
  return Status::unimplemented(
      fmt::format("{} and {} are not matrices", to_string(node.shape(0)), to_string(node.shape(1))));
}

Status fused_product(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_matrices(node));
  FOLIOT_RETURN_IF_ERROR(node.require("transBatchA", 0));
  FOLIOT_RETURN_IF_ERROR(node.require("transBatchB", 0));
  const bool transpose_a = node.integer("transA", 0) != 0, transpose_b = node.integer("transB", 0) != 0;
  Composer c(node.builder());
  return c.finish(node, c.matmul(node.input(0), node.input(1), transpose_a, transpose_b, node.real("alpha", 1)));
}

// alpha * A' * B' + beta * C, and an activation.
Status fused_general_product(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_matrices(node));
  Composer c(node.builder());
  const bool transpose_a = node.integer("transA", 0) != 0, transpose_b = node.integer("transB", 0) != 0;
  const double beta = node.real("beta", 1);
  ValueIndex y = c.matmul(node.input(0), node.input(1), transpose_a, transpose_b, node.real("alpha", 1));
  if (node.has_input(2) && beta != 0) y = c.add(y, beta == 1 ? node.input(2) : c.linear(node.input(2), beta));
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (node.has_attribute(name)) parameters.push_back(static_cast<float>(node.real(name, 0)));
  }
  FOLIOT_ASSIGN_OR_RETURN(y, activate(c, y, node.text("activation", ""), parameters));
  return c.finish(node, y);
}

// Of x, or x + bias.
ValueIndex biased(NodeTranslation& node, Composer& c) {
  return node.has_input(1) ? c.add(node.input(0), node.input(1)) : node.input(0);
}

Status exact_gelu(NodeTranslation& node) {
  Composer c(node.builder());
  return c.finish(node, c.unary(Function::kGelu, biased(node, c)));
}

Status fast_gelu(NodeTranslation& node) {
  Composer c(node.builder());
  return c.finish(node, c.unary(Function::kGeluTanh, biased(node, c)));
}

Status quick_gelu(NodeTranslation& node) {
  Composer c(node.builder());
  return c.finish(node, swish_by(c, node.input(0), node.real("alpha", 1.702)));
}

ValueIndex last_dimension_norm(Composer& c, ValueIndex x, ValueIndex scale, ValueIndex bias, double epsilon) {
  const int64_t axis = c.rank(x) - 1;
  c.require(axis >= 0 && c.shape(scale) == Shape{c.shape(x).back()}, "the scale does not fit the last dimension");
  if (bias == kNoValue) {
    const std::vector<double> zeros(element_count(c.shape(scale)), 0);
    bias = c.constant(from_doubles(c.type(x), c.shape(scale), zeros));
  }
  c.require(c.shape(bias) == c.shape(scale), "the bias does not fit the last dimension");
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("epsilon", epsilon);
  return c.emit(OperatorKind::kLayerNorm, {x, scale, bias}, std::move(attributes));
}

// x / sqrt(mean(x^2) + epsilon) * scale
ValueIndex root_mean_square_norm(Composer& c, ValueIndex x, ValueIndex scale, double epsilon) {
  const ValueIndex squares = c.reduce(Function::kMean, c.mul(x, x), {c.rank(x) - 1});
  return c.mul(c.div(x, c.unary(Function::kSqrt, c.linear(squares, 1, epsilon))), scale);
}

Status check_no_statistics(const NodeTranslation& node) {
  if (!node.wants_output(1) && !node.wants_output(2)) return {};
  return Status::unimplemented("outputs 1 and 2, the mean and the deviation, are for training");
}

// The norm of input + skip + bias; output 3 is that sum.
Status skip_norm(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_no_statistics(node));
  const bool simplified = node.type() == "SkipSimplifiedLayerNormalization";
  const double epsilon = node.real("epsilon", kSkipEpsilon);
  Composer c(node.builder());
  ValueIndex sum = c.add(node.input(0), node.input(1));
  const size_t bias = simplified ? 3 : 4;
  if (node.has_input(bias)) sum = c.add(sum, node.input(bias));
  c.require(c.rank(sum) >= 1, "a scalar has no dimension");
  if (node.wants_output(3)) FOLIOT_RETURN_IF_ERROR(c.finish(node, sum, 3));
  if (simplified) return c.finish(node, root_mean_square_norm(c, sum, node.input(2), epsilon));
  return c.finish(node, last_dimension_norm(c, sum, node.input(2), node.input(3), epsilon));
}

Status simplified_norm(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_no_statistics(node));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  FOLIOT_RETURN_IF_ERROR(node.require("stash_type", 1));
  if (axis != node.rank(0) - 1) {
    return Status::unimplemented(fmt::format("attribute 'axis' is {}, and only the last dimension is supported", axis));
  }
  Composer c(node.builder());
  return c.finish(node, root_mean_square_norm(c, node.input(0), node.input(1), node.real("epsilon", kEpsilon)));
}

// Tables of words, positions and segments, and what their sum is normalised by.
struct Embedding {
  ValueIndex words, positions, segments, scale, bias;
};

// The sum for each word, normalised. Output 1 counts the words that the mask leaves in,
// output 2 is the sum. `position`: the input of words' positions, which may be left out.
Status embed(NodeTranslation& node, Composer& c, const Embedding& tables, ValueIndex position) {
  const double epsilon = node.real("epsilon", kSkipEpsilon);
  node.integer("mask_index_type", 0);
  FOLIOT_RETURN_IF_ERROR(c.status());
  if (node.rank(0) != 2 || c.rank(tables.positions) != 2) {
    return Status::invalid_argument("words or positions have no two dimensions");
  }
  if (node.has_input(1) != (tables.segments != kNoValue)) {
    return Status::invalid_argument("segments and their embedding belong together");
  }
  const Shape words = node.shape(0);
  ValueIndex sum = c.gather(tables.words, node.input(0), 0);
  sum = c.add(
      sum, position == kNoValue ? c.slice(tables.positions, 0, 0, words[1]) : c.gather(tables.positions, position, 0));
  if (node.has_input(1)) sum = c.add(sum, c.gather(tables.segments, node.input(1), 0));
  if (node.wants_output(1)) {
    ValueIndex count = c.expand(c.scalar(DataType::kInt32, 0), {words[0]});
    if (node.has_input(7)) {
      const ValueIndex left = c.binary(Function::kEqual, node.input(7), c.like(node.input(7), 1));
      count = c.reduce(Function::kSum, c.cast(left, DataType::kInt32), {1}, false);
    }
    FOLIOT_RETURN_IF_ERROR(c.finish(node, count, 1));
  }
  if (node.wants_output(2)) FOLIOT_RETURN_IF_ERROR(c.finish(node, sum, 2));
  return c.finish(node, last_dimension_norm(c, sum, tables.scale, tables.bias, epsilon));
}

Status check_tables(const NodeTranslation& node) {
  for (const size_t i : {2, 3, 5, 6}) {
    if (!node.has_input(i)) return Status::invalid_argument(fmt::format("input {} is missing", i));
  }
  return {};
}

Status embed_layer_norm(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_tables(node));
  Composer c(node.builder());
  const Embedding tables{.words = node.input(2),
                         .positions = node.input(3),
                         .segments = node.input(4),
                         .scale = node.input(5),
                         .bias = node.input(6)};
  return embed(node, c, tables, node.input(8));
}

// The same of codes, whose scales are inputs 8 to 12 and their zero points 13 to 17.
Status quantized_embed_layer_norm(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_tables(node));
  Composer c(node.builder());
  const auto table = [&](size_t i) {
    if (!node.has_input(i)) return kNoValue;
    c.require(node.has_input(i + 6), "the scale of a table is missing");
    return c.status().ok()
               ? dequantize(node, c,
                            {.codes = node.input(i), .scale = node.input(i + 6), .zero_point = node.input(i + 11)})
               : kNoValue;
  };
  const Embedding tables{
      .words = table(2), .positions = table(3), .segments = table(4), .scale = table(5), .bias = table(6)};
  return embed(node, c, tables, kNoValue);
}

constexpr OnnxOperator kMicrosoftOperators[] = {
    {"FusedConv", 2, 4, fused_convolution},
    {"FusedMatMul", 2, 2, fused_product},
    {"TransposeMatMul", 2, 2, fused_product},
    {"FusedGemm", 2, 3, fused_general_product},
    {"Gelu", 1, 1, exact_gelu},
    {"BiasGelu", 2, 2, exact_gelu},
    {"FastGelu", 1, 2, fast_gelu},
    {"QuickGelu", 1, 1, quick_gelu},
    {"SkipLayerNormalization", 3, 5, skip_norm},
    {"SkipSimplifiedLayerNormalization", 3, 4, skip_norm},
    {"SimplifiedLayerNormalization", 2, 2, simplified_norm},
    {"EmbedLayerNormalization", 1, 9, embed_layer_norm},
    {"QEmbedLayerNormalization", 1, 18, quantized_embed_layer_norm},
};

}  // namespace

std::span<const OnnxOperator> microsoft_operators() { return kMicrosoftOperators; }

}  // namespace foliot
