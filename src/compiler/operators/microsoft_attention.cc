// Attention as onnxruntime's optimizer writes it, as the products and the softmax that it
// was fused from.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "compiler/operators/attention.h"
#include "compiler/operators/composer.h"
#include "compiler/operators/onnx_operator.h"
#include "compiler/operators/quantization.h"

namespace foliot {
namespace {

// What Attention, QAttention and MultiHeadAttention have in common.
struct AttentionSettings {
  int64_t heads;
  double scale;   // 0: one by the root of the heads' size
  double filter;  // what is added to the scores that a mask hides
  bool causal;
  ValueIndex mask;  // kNoValue: none
  ValueIndex bias;  // of the scores; kNoValue: none
};

Result<AttentionSettings> read_settings(NodeTranslation& node, size_t mask, size_t bias) {
  AttentionSettings settings{.heads = node.integer("num_heads", 0),
                             .scale = node.real("scale", 0),
                             .filter = node.real("mask_filter_value", -10000),
                             .causal = node.integer("unidirectional", 0) != 0,
                             .mask = node.input(mask),
                             .bias = bias == kAnyNumber ? kNoValue : node.input(bias)};
  if (settings.heads < 1) {
    return Status::invalid_argument(fmt::format("attribute 'num_heads' is {}, and must be positive", settings.heads));
  }
  return settings;
}

// [batch, heads, length, size]
struct ProjectedHeads {
  ValueIndex q, k, v;
};

// `filter` where the condition does not hold.
ValueIndex hidden(Composer& c, ValueIndex seen, double filter) {
  return c.where(seen, c.scalar(DataType::kFloat32, 0), c.scalar(DataType::kFloat32, filter));
}

// What the mask adds to scores of [batch, heads, queries, keys]. A mask of a row of the batch
// is the end of what is seen, or its ends and then its starts, or a flag for each key, or for
// each query and key.
Result<ValueIndex> mask_addend(Composer& c, const AttentionSettings& by, int64_t batch, int64_t keys) {
  const Shape shape = c.shape(by.mask);
  if (shape.size() == 1 && (shape[0] == batch || shape[0] == 2 * batch)) {
    const ValueIndex positions = c.cast(c.positions(keys, 3, 4), DataType::kInt32);
    const auto column = [&](int64_t from) {
      return c.cast(c.reshape(c.slice(by.mask, 0, from, batch), {batch, 1, 1, 1}), DataType::kInt32);
    };
    ValueIndex seen = c.binary(Function::kLess, positions, column(0));
    if (shape[0] == 2 * batch) {
      seen = c.binary(Function::kAnd, seen, c.binary(Function::kGreaterOrEqual, positions, column(batch)));
    }
    return hidden(c, seen, by.filter);
  }
  if ((shape.size() == 2 || shape.size() == 3) && shape.back() == keys) {
    const Shape wide = shape.size() == 2 ? Shape{shape[0], 1, 1, keys} : Shape{shape[0], 1, shape[1], keys};
    const ValueIndex flags = c.reshape(by.mask, wide);
    return hidden(c, c.type(flags) == DataType::kBool ? flags : c.binary(Function::kGreater, flags, c.like(flags, 0)),
                  by.filter);
  }
  return Status::unimplemented(
      fmt::format("a mask {} for {} rows and {} keys is not supported", to_string(shape), batch, keys));
}

// Sets output 0. The keys and values include those of the past.
Status attend(NodeTranslation& node, Composer& c, const AttentionSettings& by, const ProjectedHeads& heads) {
  const Shape q = c.shape(heads.q), k = c.shape(heads.k);
  FOLIOT_RETURN_IF_ERROR(c.status());
  const int64_t queries = q[2], keys = k[2];
  const double scale = by.scale == 0 ? 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q[3], 1))) : by.scale;
  ValueIndex scores = c.matmul(heads.q, heads.k, false, true, scale);
  if (by.bias != kNoValue) scores = c.add(scores, by.bias);
  ValueIndex added = kNoValue;
  if (by.mask != kNoValue) {
    FOLIOT_ASSIGN_OR_RETURN(added, mask_addend(c, by, q[0], keys));
  }
  if (by.causal) {
    const ValueIndex last = c.linear(c.positions(queries, 2, 4), 1, static_cast<double>(keys - queries));
    const ValueIndex seen = c.binary(Function::kLessOrEqual, c.positions(keys, 3, 4), last);
    const ValueIndex nothing = c.scalar(DataType::kFloat32, std::numeric_limits<float>::lowest());
    added = c.where(seen, added == kNoValue ? c.scalar(DataType::kFloat32, 0) : added, nothing);
  }
  if (added != kNoValue) scores = c.add(scores, c.cast(added, c.type(scores)));
  return c.finish(node, join_heads(c, c.matmul(c.softmax(scores, 3), heads.v)));
}

// q, k and v of one input: products with the three parts of the weights.
Result<ProjectedHeads> project(Composer& c, int64_t heads, ValueIndex x, ValueIndex weights, ValueIndex bias,
                               std::vector<int64_t> sizes) {
  const Shape shape = c.shape(weights);
  if (c.rank(x) != 3 || shape.size() != 2)
    return Status::invalid_argument("the input or its weights have other dimensions");
  if (sizes.empty()) sizes.assign(3, shape[1] / 3);
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1 || sizes[0] + sizes[1] + sizes[2] != shape[1] ||
      sizes[0] != sizes[1] || sizes[0] % heads != 0 || sizes[2] % heads != 0) {
    return Status::invalid_argument(
        fmt::format("weights {} and attribute 'qkv_hidden_sizes' do not fit {} heads", to_string(shape), heads));
  }
  ValueIndex parts[3];
  int64_t start = 0;
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = c.matmul(x, c.slice(weights, 1, start, sizes[i]));
    if (bias != kNoValue) parts[i] = c.add(parts[i], c.slice(bias, 0, start, sizes[i]));
    parts[i] = split_heads(c, parts[i], heads);
    start += sizes[i];
  }
  FOLIOT_RETURN_IF_ERROR(c.status());
  return ProjectedHeads{.q = parts[0], .k = parts[1], .v = parts[2]};
}

// Keys and values of the past, [2, batch, heads, length, size], before the new ones.
Status add_past(NodeTranslation& node, Composer& c, ValueIndex past, ProjectedHeads& heads) {
  if (past != kNoValue) {
    Shape shape = c.shape(past);
    if (shape.size() != 5 || shape[0] != 2)
      return Status::invalid_argument("past keys and values have other dimensions");
    shape.erase(shape.begin());
    heads.k = c.concat({c.reshape(c.slice(past, 0, 0, 1), shape), heads.k}, 2);
    heads.v = c.concat({c.reshape(c.slice(past, 0, 1, 1), shape), heads.v}, 2);
  }
  if (!node.wants_output(1)) return {};
  const auto alone = [&](ValueIndex x) {
    Shape shape = c.shape(x);
    shape.insert(shape.begin(), 1);
    return c.reshape(x, shape);
  };
  return c.finish(node, c.concat({alone(heads.k), alone(heads.v)}, 0), 1);
}

Status fused_attention(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const AttentionSettings by, read_settings(node, 3, 5));
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) FOLIOT_RETURN_IF_ERROR(node.require(name, 0));
  node.integer("rotary_embedding_dim", 0);  // without do_rotary of no effect
  if (node.has_input(6)) return Status::unimplemented("input 6, 'past_sequence_length', is not supported");
  Composer c(node.builder());
  FOLIOT_ASSIGN_OR_RETURN(ProjectedHeads heads, project(c, by.heads, node.input(0), node.input(1), node.input(2),
                                                        node.integers("qkv_hidden_sizes")));
  FOLIOT_RETURN_IF_ERROR(add_past(node, c, node.input(4), heads));
  return attend(node, c, by, heads);
}

Status quantized_attention(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const AttentionSettings by, read_settings(node, 5, kAnyNumber));
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) FOLIOT_RETURN_IF_ERROR(node.require(name, 0));
  Composer c(node.builder());
  const ValueIndex x =
      dequantize(node, c, {.codes = node.input(0), .scale = node.input(3), .zero_point = node.input(6)});
  const ValueIndex weights =
      dequantize(node, c, {.codes = node.input(1), .scale = node.input(4), .zero_point = node.input(7)}, 1);
  FOLIOT_RETURN_IF_ERROR(c.status());
  FOLIOT_ASSIGN_OR_RETURN(ProjectedHeads heads, project(c, by.heads, x, weights, node.input(2), {}));
  FOLIOT_RETURN_IF_ERROR(add_past(node, c, node.input(8), heads));
  return attend(node, c, by, heads);
}

// One of several that stand side by side in dimension 3, without it.
ValueIndex packed_part(Composer& c, ValueIndex x, int64_t i) {
  const Shape shape = c.shape(x);  // [batch, length, heads, parts, size]
  return c.transpose(c.reshape(c.slice(x, 3, i, 1), {shape[0], shape[1], shape[2], shape[4]}), {0, 2, 1, 3});
}

// Queries, keys and values: apart, or the last two or all three in one operand.
Result<ProjectedHeads> read_operands(NodeTranslation& node, Composer& c, int64_t heads) {
  if (node.rank(0) == 5 && node.shape(0)[3] == 3) {
    const ValueIndex x = node.input(0);
    if (node.has_input(3)) return Status::unimplemented("a bias of queries, keys and values in one is not supported");
    return ProjectedHeads{.q = packed_part(c, x, 0), .k = packed_part(c, x, 1), .v = packed_part(c, x, 2)};
  }
  if (node.rank(0) != 3 || !node.has_input(1)) return Status::invalid_argument("the query has other dimensions");
  const bool paired = node.rank(1) == 5 && node.shape(1)[3] == 2;
  if (paired == node.has_input(2)) return Status::invalid_argument("the values are missing, or there twice");
  int64_t start = 0;
  const auto with_bias = [&](ValueIndex x) {
    const int64_t size = c.shape(x).back();
    if (node.has_input(3)) x = c.add(x, c.slice(node.input(3), 0, start, size));
    start += size;
    return split_heads(c, x, heads);
  };
  ProjectedHeads result{.q = with_bias(node.input(0)), .k = kNoValue, .v = kNoValue};
  if (paired) {
    if (node.has_input(3)) return Status::unimplemented("a bias of keys and values in one is not supported");
    result.k = packed_part(c, node.input(1), 0);
    result.v = packed_part(c, node.input(1), 1);
    return result;
  }
  if (node.rank(1) == 4 && node.rank(2) == 4) {
    // As they are, but for the bias, of which the query's part alone remains.
    result.k = node.input(1);
    result.v = node.input(2);
    return result;
  }
  if (node.rank(1) != 3 || node.rank(2) != 3) return Status::invalid_argument("keys or values have other dimensions");
  result.k = with_bias(node.input(1));
  result.v = with_bias(node.input(2));
  return result;
}

Status multi_head_attention(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const AttentionSettings by, read_settings(node, 4, 5));
  if (node.has_input(8) || node.has_input(9)) {
    return Status::unimplemented("inputs 8 and 9, of a shared past, are not supported");
  }
  if (node.wants_output(3)) return Status::unimplemented("output 3, the scores, is not supported");
  Composer c(node.builder());
  FOLIOT_ASSIGN_OR_RETURN(ProjectedHeads heads, read_operands(node, c, by.heads));
  if (node.has_input(6) != node.has_input(7)) return Status::invalid_argument("past keys and values belong together");
  if (node.has_input(6)) {
    heads.k = c.concat({node.input(6), heads.k}, 2);
    heads.v = c.concat({node.input(7), heads.v}, 2);
  }
  c.require(c.rank(heads.k) == 4 && c.rank(heads.v) == 4, "keys or values have other dimensions");
  FOLIOT_RETURN_IF_ERROR(c.status());
  if (node.wants_output(1)) FOLIOT_RETURN_IF_ERROR(c.finish(node, heads.k, 1));
  if (node.wants_output(2)) FOLIOT_RETURN_IF_ERROR(c.finish(node, heads.v, 2));
  return attend(node, c, by, heads);
}

constexpr OnnxOperator kMicrosoftAttentionOperators[] = {
    {"Attention", 2, 7, fused_attention},
    {"QAttention", 5, 9, quantized_attention},
    {"MultiHeadAttention", 1, 10, multi_head_attention},
};

}  // namespace

std::span<const OnnxOperator> microsoft_attention_operators() { return kMicrosoftAttentionOperators; }

}  // namespace foliot
