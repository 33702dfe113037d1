// Attention and what belongs to it.
#include "engine/compiler/operators/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/element_type.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {

ValueIndex split_heads(Composer& c, ValueIndex x, int64_t heads) {
  c.require(c.shape(x).size() >= 3 && c.shape(x)[2] % heads == 0, "an operand has no such heads");
  const Shape shape = c.shape(x);
  return c.transpose(c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

ValueIndex join_heads(Composer& c, ValueIndex x) {
  const Shape shape = c.shape(x);
  return c.reshape(c.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

ValueIndex repeat_heads(Composer& c, ValueIndex x, int64_t times) {
  if (times == 1) return x;
  c.require(c.shape(x).size() >= 4, "an operand has no heads");
  const Shape shape = c.shape(x);
  const ValueIndex apart = c.reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  const ValueIndex repeated = c.expand(apart, {shape[0], shape[1], times, shape[2], shape[3]});
  return c.reshape(repeated, {shape[0], shape[1] * times, shape[2], shape[3]});
}

ValueIndex rotate(Composer& c, ValueIndex x, ValueIndex cosine, ValueIndex sine, int64_t turned, bool interleaved) {
  const Shape shape = c.shape(x);
  const int64_t half = turned / 2;
  const int64_t step = interleaved ? 2 : 1;
  const ValueIndex first = c.slice(x, 3, 0, half, step);
  const ValueIndex second = c.slice(x, 3, interleaved ? 1 : half, half, step);
  const ValueIndex real = c.sub(c.mul(cosine, first), c.mul(sine, second));
  const ValueIndex imaginary = c.add(c.mul(sine, first), c.mul(cosine, second));
  ValueIndex result = kNoValue;
  if (interleaved) {
    const Shape pairs{shape[0], shape[1], shape[2], half, 1};
    result = c.reshape(c.concat({c.reshape(real, pairs), c.reshape(imaginary, pairs)}, 4),
                       {shape[0], shape[1], shape[2], turned});
  } else {
    result = c.concat({real, imaginary}, 3);
  }
  if (turned < shape[3]) result = c.concat({result, c.slice(x, 3, turned, shape[3] - turned)}, 3);
  return result;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Heads {
  ValueIndex q, k, v;  // [batch, heads, length, size]
  bool packed;         // the heads stood in one dimension
};

Result<Heads> read_heads(NodeTranslation& node, Composer& c) {
  Heads heads{.q = node.input(0), .k = node.input(1), .v = node.input(2), .packed = node.rank(0) == 3};
  for (size_t i = 0; i < 3; ++i) {
    if (node.rank(i) != node.rank(0) || (node.rank(i) != 3 && node.rank(i) != 4)) {
      return Status::invalid_argument(fmt::format("operand {} has {} dimensions", i, node.rank(i)));
    }
  }
  if (heads.packed) {
    const int64_t q_heads = node.integer("q_num_heads", 0), kv_heads = node.integer("kv_num_heads", 0);
    const bool fits = q_heads > 0 && kv_heads > 0 && node.shape(0)[2] % q_heads == 0 &&
                      node.shape(1)[2] % kv_heads == 0 && node.shape(2)[2] % kv_heads == 0;
    if (!fits) return Status::invalid_argument("the numbers of heads do not divide the operands");
    heads.q = split_heads(c, heads.q, q_heads);
    heads.k = split_heads(c, heads.k, kv_heads);
    heads.v = split_heads(c, heads.v, kv_heads);
  }
  if (c.shape(heads.k)[1] < 1 || c.shape(heads.q)[1] % c.shape(heads.k)[1] != 0) {
    return Status::invalid_argument("the heads of the query are no multiple of the keys'");
  }
  return heads;
}

// What decides which keys a query sees, beside the mask that is given.
struct Sight {
  bool causal;
  int64_t left, right;  // how far; -1: without limit
  int64_t past;         // keys before the first query
  ValueIndex valid;     // [batch]: keys that count; kNoValue: all
};

// Where key j may be seen by query i, broadcast to [batch, heads, queries, keys];
// kNoValue: everywhere.
ValueIndex visible(Composer& c, const Sight& sight, int64_t queries, int64_t keys) {
  const ValueIndex j = c.positions(keys, 3, 4);
  ValueIndex position = c.linear(c.positions(queries, 2, 4), 1, static_cast<double>(sight.past));
  ValueIndex valid = kNoValue;
  if (sight.valid != kNoValue) {
    const Shape shape = c.shape(sight.valid);
    valid = c.reshape(c.cast(sight.valid, DataType::kInt64), {static_cast<int64_t>(element_count(shape)), 1, 1, 1});
    position = c.add(position, c.linear(valid, 1, static_cast<double>(-queries)));
  }
  ValueIndex result = kNoValue;
  const auto also = [&](ValueIndex condition) {
    result = result == kNoValue ? condition : c.binary(Function::kAnd, result, condition);
  };
  if (sight.causal) also(c.binary(Function::kLessOrEqual, j, position));
  if (sight.left >= 0)
    also(c.binary(Function::kLessOrEqual, c.sub(position, j), c.like(j, static_cast<double>(sight.left))));
  if (sight.right >= 0)
    also(c.binary(Function::kLessOrEqual, c.sub(j, position), c.like(j, static_cast<double>(sight.right))));
  if (valid != kNoValue) also(c.binary(Function::kLess, j, valid));
  return result;
}

// The mask as what is added to the scores; a short one does not see the last keys.
ValueIndex mask_bias(Composer& c, ValueIndex mask, int64_t keys) {
  const Shape shape = c.shape(mask);
  std::vector<int64_t> pads(2 * shape.size(), 0);
  const bool is_logical = c.type(mask) == DataType::kBool;
  if (!shape.empty() && shape.back() != 1 && shape.back() < keys) pads.back() = keys - shape.back();
  if (!shape.empty() && shape.back() == 1 && keys > 1) pads.back() = keys - 1;
  if (is_logical) {
    mask = c.where(mask, c.scalar(DataType::kFloat32, 0), c.scalar(DataType::kFloat32, -kInfinity));
  }
  return c.pad(mask, std::move(pads), -kInfinity);
}

// Probabilities, zero for queries that see nothing: there `bias` is -infinity
// throughout, and the scores may be anything.
ValueIndex probabilities(Composer& c, ValueIndex scores, ValueIndex bias) {
  const ValueIndex result = c.softmax(scores, 3);
  if (bias == kNoValue) return result;
  const ValueIndex best = c.reduce(Function::kMax, bias, {c.rank(bias) - 1});
  const ValueIndex blind = c.binary(Function::kEqual, best, c.like(best, -kInfinity));
  return c.where(blind, c.like(result, 0), result);
}

struct Scores {
  ValueIndex raw, capped, biased, probable;
};

Scores score(NodeTranslation& node, Composer& c, const Heads& heads, ValueIndex k, ValueIndex bias) {
  const double size = static_cast<double>(std::max<int64_t>(c.shape(heads.q)[3], 1));
  const double scale = node.real("scale", 1 / std::sqrt(size));
  const double cap = node.real("softcap", 0);
  Scores scores{};
  scores.raw = c.matmul(heads.q, k, false, true, c.type(heads.q) == DataType::kFloat64 ? 1 : scale);
  if (c.type(heads.q) == DataType::kFloat64) scores.raw = c.linear(scores.raw, scale);
  scores.capped = scores.raw;
  if (cap > 0) scores.capped = c.linear(c.unary(Function::kTanh, c.linear(scores.raw, 1 / cap)), cap);
  scores.biased = bias == kNoValue ? scores.capped : c.add(scores.capped, c.cast(bias, c.type(scores.capped)));
  scores.probable = probabilities(c, scores.biased, bias);
  return scores;
}

// The keys or values so far: those of the past before the new ones.
ValueIndex present(Composer& c, ValueIndex past, ValueIndex fresh) {
  return past == kNoValue ? fresh : c.concat({past, fresh}, 2);
}

Status attention(NodeTranslation& node) {
  Composer c(node.builder());
  FOLIOT_ASSIGN_OR_RETURN(const Heads heads, read_heads(node, c));
  if (node.has_input(4) != node.has_input(5)) return Status::invalid_argument("past keys and values belong together");
  if (node.has_input(4) && (node.rank(4) != 4 || node.rank(5) != 4)) {
    return Status::invalid_argument("past keys and values have four dimensions");
  }
  const ValueIndex keys = present(c, node.input(4), heads.k), values = present(c, node.input(5), heads.v);
  const int64_t queries = c.shape(heads.q)[2], length = c.shape(keys)[2];
  const ValueIndex seen = visible(c,
                                  {.causal = node.integer("is_causal", 0) != 0,
                                   .left = node.integer("left_window_size", -1),
                                   .right = node.integer("right_window_size", -1),
                                   .past = node.has_input(4) ? node.shape(4)[2] : 0,
                                   .valid = node.input(6)},
                                  queries, length);
  ValueIndex bias = node.has_input(3) ? mask_bias(c, node.input(3), length) : kNoValue;
  if (seen != kNoValue) {
    const DataType type = bias == kNoValue ? DataType::kFloat32 : c.type(bias);
    bias = c.where(seen, bias == kNoValue ? c.scalar(type, 0) : bias, c.scalar(type, -kInfinity));
  }
  const int64_t times = c.shape(heads.q)[1] / c.shape(keys)[1];
  const Scores scores = score(node, c, heads, repeat_heads(c, keys, times), bias);
  const ValueIndex result = c.matmul(scores.probable, repeat_heads(c, values, times));
  if (node.wants_output(3)) {
    const int64_t mode = node.integer("qk_matmul_output_mode", 0);
    const ValueIndex shown[] = {scores.raw, scores.capped, scores.biased, scores.probable};
    if (mode < 0 || mode > 3) return Status::invalid_argument("qk_matmul_output_mode is impossible");
    FOLIOT_RETURN_IF_ERROR(c.finish(node, shown[mode], 3));
  }
  FOLIOT_RETURN_IF_ERROR(c.finish(node, keys, 1));
  FOLIOT_RETURN_IF_ERROR(c.finish(node, values, 2));
  return c.finish(node, heads.packed ? join_heads(c, result) : result);
}

// Pairs of entries of each head, turned by an angle that depends on the position.
Status rotary_embedding(NodeTranslation& node) {
  Composer c(node.builder());
  const bool packed = node.rank(0) == 3;
  const int64_t heads = node.integer("num_heads", 0);
  if (node.rank(0) != 4 && (!packed || heads < 1 || node.shape(0)[2] % heads != 0)) {
    return Status::invalid_argument("the input has no heads");
  }
  const ValueIndex x = packed ? split_heads(c, node.input(0), heads) : node.input(0);
  const Shape shape = c.shape(x);  // [batch, heads, length, size]
  int64_t turned = node.integer("rotary_embedding_dim", 0);
  if (turned == 0) turned = shape[3];
  if (turned < 2 || turned > shape[3] || turned % 2 != 0) return Status::invalid_argument("rotary_embedding_dim");
  const int64_t half = turned / 2;
  const bool interleaved = node.integer("interleaved", 0) != 0;
  const auto angles = [&](size_t i) {
    ValueIndex cache = node.input(i);
    if (node.has_input(3)) cache = c.gather(cache, node.input(3), 0);
    return c.reshape(cache, {shape[0], 1, shape[2], half});
  };
  const ValueIndex cosine = angles(1), sine = angles(2);
  const ValueIndex result = rotate(c, x, cosine, sine, turned, interleaved);
  return c.finish(node, packed ? join_heads(c, result) : result);
}

// A recurrence over the tokens, written out.
Status linear_attention(NodeTranslation& node) {
  const int64_t q_heads = node.integer("q_num_heads", 0), heads = node.integer("kv_num_heads", 0);
  const std::string rule = node.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") return Status::invalid_argument("update_rule is '" + rule + "'");
  if ((gated && !node.has_input(4)) || (delta && !node.has_input(5))) {
    return Status::invalid_argument("decay or beta is missing");
  }
  for (size_t i = 0; i < 3; ++i) {
    if (node.rank(i) != 3) return Status::invalid_argument("an operand has not three dimensions");
  }
  const Shape q_shape = node.shape(0), k_shape = node.shape(1), v_shape = node.shape(2);
  if (q_heads < 1 || heads < 1 || q_heads % heads != 0 || q_shape[2] % q_heads != 0 || k_shape[2] % heads != 0 ||
      v_shape[2] % heads != 0) {
    return Status::invalid_argument("the numbers of heads do not divide the operands");
  }
  const int64_t batch = q_shape[0], length = q_shape[1];
  const int64_t query_size = q_shape[2] / q_heads, key_size = k_shape[2] / heads, value_size = v_shape[2] / heads;
  double scale = node.real("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(query_size));

  Composer c(node.builder());
  // All in float32, since errors add up along the sequence.
  const auto wide = [&](size_t i) { return c.cast(node.input(i), DataType::kFloat32); };
  const ValueIndex q = split_heads(c, wide(0), q_heads), k = split_heads(c, wide(1), heads),
                   v = split_heads(c, wide(2), heads);
  const auto per_token = [&](size_t i) {  // [batch, heads (or 1), length, size (or 1)]
    const int64_t own = node.shape(i).size() == 3 && node.shape(i)[2] == 1 ? 1 : heads;
    return split_heads(c, wide(i), own);
  };
  const ValueIndex decay = gated ? c.unary(Function::kExp, per_token(4)) : kNoValue;
  const ValueIndex beta = delta ? per_token(5) : kNoValue;
  ValueIndex state =
      node.has_input(3) ? wide(3) : c.expand(c.scalar(DataType::kFloat32, 0), {batch, heads, key_size, value_size});
  std::vector<ValueIndex> results;
  for (int64_t t = 0; t < length; ++t) {
    const ValueIndex key = c.slice(k, 2, t, 1);  // [batch, heads, 1, key size]
    ValueIndex value = c.slice(v, 2, t, 1);
    if (gated) {
      const ValueIndex factor = c.slice(decay, 2, t, 1);
      state = c.mul(state, c.transpose(factor, {0, 1, 3, 2}));
    }
    if (delta) value = c.mul(c.slice(beta, 2, t, 1), c.sub(value, c.matmul(key, state)));
    state = c.add(state, c.matmul(key, value, true, false));
    results.push_back(c.matmul(c.slice(q, 2, t, 1), repeat_heads(c, state, q_heads / heads), false, false, scale));
  }
  if (results.empty()) return Status::invalid_argument("the sequence is empty");
  FOLIOT_RETURN_IF_ERROR(c.finish(node, c.cast(state, node.has_input(3) ? node.value(3).type : node.value(0).type), 1));
  return c.finish(node, c.cast(join_heads(c, c.concat(results, 2)), node.value(0).type));
}

constexpr OnnxOperator kAttentionOperators[] = {
    {"Attention", 3, 7, attention},
    {"RotaryEmbedding", 3, 4, rotary_embedding},
    {"LinearAttention", 3, 6, linear_attention},
};

}  // namespace

std::span<const OnnxOperator> attention_operators() { return kAttentionOperators; }

}  // namespace foliot
