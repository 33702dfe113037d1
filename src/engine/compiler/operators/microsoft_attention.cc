// Attention as onnxruntime's optimizer writes it, as the products and the softmax that it
// was fused from.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "engine/compiler/operators/attention.h"
#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/nowhere.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/compiler/operators/quantization.h"

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

// Positions are a first one, of which all rows' begin there, or one for each word.
Status rotary_embedding(NodeTranslation& node) {
  const bool interleaved = node.integer("interleaved", 0) != 0;
  const double scale = node.real("scale", 1);
  int64_t turned = node.integer("rotary_embedding_dim", 0), heads = node.integer("num_heads", 0);
  FOLIOT_RETURN_IF_ERROR(node.require("is_packed_batching", 0));
  if (node.rank(2) != 2 || node.shape(3) != node.shape(2) || (node.rank(0) != 3 && node.rank(0) != 4)) {
    return Status::invalid_argument(fmt::format("the input {} or the angles {} and {} have other dimensions",
                                                to_string(node.shape(0)), to_string(node.shape(2)),
                                                to_string(node.shape(3))));
  }
  const int64_t half = node.shape(2)[1];
  if (turned == 0) turned = 2 * half;
  const bool packed = node.rank(0) == 3;
  if (packed && heads == 0 && half > 0) heads = node.shape(0)[2] / (2 * half);
  if (packed && heads < 1) return Status::invalid_argument("the input has no heads");
  Composer c(node.builder());
  const ValueIndex x = packed ? split_heads(c, node.input(0), heads) : node.input(0);
  const Shape shape = c.shape(x);
  if (turned != 2 * half || turned < 2 || turned > shape[3]) {
    return Status::invalid_argument(fmt::format(
        "attribute 'rotary_embedding_dim' is {}, angles are for {} of {} entries", turned, 2 * half, shape[3]));
  }
  const Shape at = node.shape(1);
  ValueIndex positions = node.input(1);
  if (element_count(at) == 1) {
    positions = c.add(c.reshape(positions, {1, 1}), c.cast(c.positions(shape[2], 1, 2), c.type(positions)));
  } else if (at != Shape{shape[0], shape[2]}) {
    return Status::invalid_argument(fmt::format("positions {} do not fit the input", to_string(at)));
  }
  const auto angles = [&](size_t i) {
    const ValueIndex found = c.gather(node.input(i), positions, 0);
    return c.reshape(found, {c.shape(found)[0], 1, shape[2], half});
  };
  ValueIndex result = rotate(c, x, angles(2), angles(3), turned, interleaved);
  if (scale != 1) result = c.linear(result, scale);
  return c.finish(node, packed ? join_heads(c, result) : result);
}

// Queries, keys and values, or all three side by side in input 0, keys and values with fewer heads than queries.
Result<ProjectedHeads> read_grouped(NodeTranslation& node, Composer& c, int64_t heads, int64_t groups) {
  if (node.has_input(1) != node.has_input(2)) return Status::invalid_argument("keys and values belong together");
  if (node.rank(0) != 3 || (node.has_input(1) && (node.rank(1) != 3 || node.rank(2) != 3))) {
    return Status::invalid_argument("queries, keys or values have other dimensions");
  }
  if (node.has_input(1)) {
    return ProjectedHeads{.q = split_heads(c, node.input(0), heads),
                          .k = split_heads(c, node.input(1), groups),
                          .v = split_heads(c, node.input(2), groups)};
  }
  const ValueIndex all = split_heads(c, node.input(0), heads + 2 * groups);
  return ProjectedHeads{.q = c.slice(all, 1, 0, heads),
                        .k = c.slice(all, 1, heads, groups),
                        .v = c.slice(all, 1, heads + groups, groups)};
}

// The first `count` positions from `first` on, as turned by the angles of inputs 7 and 8.
ValueIndex turned(NodeTranslation& node, Composer& c, ValueIndex x, int64_t first) {
  const int64_t count = c.shape(x)[2];
  const auto angles = [&](size_t i) {
    const ValueIndex found = c.slice(node.input(i), 0, first, count);
    return c.reshape(found, {1, 1, count, c.shape(found).back()});
  };
  const int64_t size = 2 * c.shape(node.input(7)).back();
  c.require(c.rank(node.input(7)) == 2 && size >= 2 && size <= c.shape(x)[3], "the angles do not fit the heads");
  return rotate(c, x, angles(7), angles(8), size, node.integer("rotary_interleaved", 0) != 0);
}

// Keys and values that are shared by groups of heads. The past is as long as its tensors say: a row whose length (input
// 5) says otherwise, as of a buffer that is not full, brings a position out of range and is refused.
Status grouped_attention(NodeTranslation& node) {
  const int64_t heads = node.integer("num_heads", 0), groups = node.integer("kv_num_heads", 0);
  const double cap = node.real("softcap", 0);
  if (heads < 1 || groups < 1 || heads % groups != 0) {
    return Status::invalid_argument(
        fmt::format("attribute 'num_heads' is {} and 'kv_num_heads' {}: no whole groups", heads, groups));
  }
  FOLIOT_RETURN_IF_ERROR(node.require("local_window_size", -1));
  for (const char* name : {"smooth_softmax", "qk_output", "k_quant_type", "v_quant_type"})
    if (node.has_attribute(name)) FOLIOT_RETURN_IF_ERROR(node.require(name, 0));
  for (size_t i = 9; i < node.input_count(); ++i)
    if (node.has_input(i)) return Status::unimplemented(fmt::format("input {} is not supported", i));
  if (!node.has_input(5) || node.has_input(3) != node.has_input(4)) {
    return Status::invalid_argument("input 5, the lengths, is missing, or one of past keys and values");
  }
  Composer c(node.builder());
  FOLIOT_ASSIGN_OR_RETURN(ProjectedHeads by, read_grouped(node, c, heads, groups));
  c.require(!node.has_input(3) || (node.rank(3) == 4 && node.rank(4) == 4), "the past has other dimensions");
  FOLIOT_RETURN_IF_ERROR(c.status());
  const int64_t past = node.has_input(3) ? node.shape(3)[2] : 0;
  const Shape shape = c.shape(by.q);
  const int64_t batch = shape[0], queries = shape[2], keys = past + queries;
  if (node.integer("do_rotary", 0) != 0) {
    if (!node.has_input(7) || !node.has_input(8)) return Status::invalid_argument("the angles are missing");
    by.q = turned(node, c, by.q, past);
    by.k = turned(node, c, by.k, past);
  }
  if (past > 0) {
    by.k = c.concat({node.input(3), by.k}, 2);
    by.v = c.concat({node.input(4), by.v}, 2);
  }
  FOLIOT_RETURN_IF_ERROR(c.finish(node, by.k, 1));
  FOLIOT_RETURN_IF_ERROR(c.finish(node, by.v, 2));
  const double scale = node.real("scale", 0);
  ValueIndex scores = c.matmul(by.q, repeat_heads(c, by.k, heads / groups), false, true,
                               scale == 0 ? 1 / std::sqrt(static_cast<double>(shape[3])) : scale);
  if (cap > 0) scores = c.linear(c.unary(Function::kTanh, c.linear(scores, 1 / cap)), cap);
  // Input 5 has the last position of each row.
  const ValueIndex last = c.reshape(c.cast(node.input(5), DataType::kInt64), {batch, 1, 1, 1});
  const ValueIndex j = c.positions(keys, 3, 4);
  ValueIndex seen =
      c.binary(Function::kLessOrEqual, j, c.linear(c.positions(queries, 2, 4), 1, static_cast<double>(past)));
  seen = c.binary(Function::kAnd, seen, c.binary(Function::kLessOrEqual, j, last));
  const ValueIndex nothing = c.like(scores, std::numeric_limits<float>::lowest());
  const ValueIndex result =
      join_heads(c, c.matmul(c.softmax(c.where(seen, scores, nothing), 3), repeat_heads(c, by.v, heads / groups)));
  const auto bound = static_cast<double>(keys - 1);
  ValueIndex fits = c.binary(Function::kLessOrEqual, last, c.like(last, bound));
  if (past > 0) fits = c.binary(Function::kEqual, last, c.like(last, bound));
  const ValueIndex at = c.where(fits, c.like(last, 0), c.like(last, static_cast<double>(kNowhere)));
  const ValueIndex one = c.gather(c.reshape(c.like(result, 1), {1}), c.reshape(at, {batch, 1, 1}), 0);
  return c.finish(node, c.mul(result, one));
}

constexpr OnnxOperator kMicrosoftAttentionOperators[] = {
    {"Attention", 2, 7, fused_attention},
    {"QAttention", 5, 9, quantized_attention},
    {"MultiHeadAttention", 1, 10, multi_head_attention},
    {"RotaryEmbedding", 4, 4, rotary_embedding},
    {"GroupQueryAttention", 1, 14, grouped_attention},
};

}  // namespace

std::span<const OnnxOperator> microsoft_attention_operators() { return kMicrosoftAttentionOperators; }

}  // namespace foliot
