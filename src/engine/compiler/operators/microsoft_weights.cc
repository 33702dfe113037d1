// What onnxruntime's weight-only quantizers write: weights of few bits, with a scale for each block of them. Where a
// device multiplies with such weights they stay packed, else they become float32 weights when compiling. Source:
// docs/ContribOperators.md of onnxruntime 1.23: MatMulNBits, MatMulBnb4, GatherBlockQuantized.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/compiler/pack_block_weights.h"

namespace foliot {
namespace {

// Codes of `bits` bits, one after another from the lowest bit on; each row of `per_row` begins with a byte.
struct Codes {
  std::span<const std::byte> bytes;
  int64_t bits;
  int64_t per_row;

  int64_t row_bytes() const { return (per_row * bits + 7) / 8; }
  int64_t at(int64_t row, int64_t i) const {
    const int64_t bit = i * bits;
    const auto byte = static_cast<size_t>(row * row_bytes() + bit / 8);
    return (std::to_integer<int64_t>(bytes[byte]) >> (bit % 8)) & ((int64_t{1} << bits) - 1);
  }
};

std::vector<float> to_floats(const Constant& constant) {
  const std::vector<double> values = to_doubles(constant);
  return {values.begin(), values.end()};
}

// Weights [rows, columns], blocks of which along the columns have one scale and one zero point.
struct FewBitsForm {
  int64_t rows, columns, block, bits;

  int64_t blocks() const { return (columns + block - 1) / block; }
  double middle() const { return static_cast<double>(int64_t{1} << (bits - 1)); }
};

// The zero points, as they are or packed like the weights; empty: all are in the middle.
Result<std::vector<float>> zero_points_of(const NodeTranslation& node, size_t input, const FewBitsForm& weights) {
  if (!node.has_input(input)) return std::vector<float>();
  FOLIOT_ASSIGN_OR_RETURN(const Constant given, node.constant(input, "the zero points"));
  const uint64_t count = element_count(given.shape);
  if (given.type != DataType::kUint8) {
    if (count == static_cast<uint64_t>(weights.rows * weights.blocks())) return to_floats(given);
  } else {
    const Codes codes{.bytes = *given.bytes, .bits = weights.bits, .per_row = weights.blocks()};
    if (count == static_cast<uint64_t>(weights.rows * codes.row_bytes())) {
      std::vector<float> result;
      for (int64_t row = 0; row < weights.rows; ++row)
        for (int64_t i = 0; i < weights.blocks(); ++i) result.push_back(static_cast<float>(codes.at(row, i)));
      return result;
    }
  }
  return Status::invalid_argument(fmt::format("zero points {} do not fit {} rows of {} blocks of {} bits",
                                              to_string(given.shape), weights.rows, weights.blocks(), weights.bits));
}

// Whether all are codes.
bool are_codes(const std::vector<float>& zero_points, int64_t bits) {
  return std::ranges::all_of(zero_points, [limit = static_cast<float>(int64_t{1} << bits)](float zero) {
    return zero >= 0 && zero < limit && zero == std::floor(zero);
  });
}

struct FewBits {
  Codes codes;  // in blocks each of which begins with a byte
  std::vector<float> scales, zero_points;
};

// The operands of kBlockMatMul; nullopt: it has no such weights.
std::optional<PackedBlocks> packed(const FewBits& given, const FewBitsForm& weights) {
  LooseBlocks loose{.form = {.depth = weights.columns,
                             .columns = weights.rows,
                             .block = weights.block,
                             .bits = std::max<int64_t>(weights.bits, 4)},
                    .codes = {},
                    .scales = given.scales,
                    .zero_points = {}};
  if (!loose.form.is_possible() || !are_codes(given.zero_points, weights.bits)) return std::nullopt;
  // Codes of 2 bits around the middle of those of 4.
  const auto shift = static_cast<int64_t>(loose.form.middle()) - static_cast<int64_t>(weights.middle());
  loose.codes.reserve(static_cast<size_t>(weights.rows * weights.columns));
  for (int64_t row = 0; row < weights.rows; ++row) {
    for (int64_t i = 0; i < weights.columns; ++i) {
      const int64_t code = given.codes.at(row * weights.blocks() + i / weights.block, i % weights.block);
      loose.codes.push_back(static_cast<uint8_t>(code + shift));
    }
  }
  for (const float zero : given.zero_points)
    loose.zero_points.push_back(static_cast<uint8_t>(zero + static_cast<float>(shift)));
  return pack(loose);
}

// Input 1 has the codes.
Result<FewBits> read_weights(const NodeTranslation& node, const FewBitsForm& weights, const Constant& packed) {
  FOLIOT_ASSIGN_OR_RETURN(const Constant given, node.constant(2, "the scales"));
  const int64_t cells = weights.rows * weights.blocks();
  const Codes codes{.bytes = *packed.bytes, .bits = weights.bits, .per_row = weights.block};
  if (packed.type != DataType::kUint8 ||
      element_count(packed.shape) != static_cast<uint64_t>(cells * codes.row_bytes()) ||
      element_count(given.shape) != static_cast<uint64_t>(cells)) {
    return Status::invalid_argument(fmt::format(
        "weights {} and scales {} do not fit N = {}, K = {}, 'block_size' = {} and 'bits' = {}",
        to_string(packed.shape), to_string(given.shape), weights.rows, weights.columns, weights.block, weights.bits));
  }
  FOLIOT_ASSIGN_OR_RETURN(std::vector<float> zero_points, zero_points_of(node, 3, weights));
  return FewBits{codes, to_floats(given), std::move(zero_points)};
}

// [rows, columns] in float32.
Constant widened(const FewBits& given, const FewBitsForm& weights) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(weights.rows * weights.columns));
  for (int64_t row = 0; row < weights.rows; ++row) {
    for (int64_t i = 0; i < weights.columns; ++i) {
      const int64_t cell = row * weights.blocks() + i / weights.block;
      const auto at = static_cast<size_t>(cell);
      const float zero = given.zero_points.empty() ? static_cast<float>(weights.middle()) : given.zero_points[at];
      values.push_back((static_cast<float>(given.codes.at(cell, i % weights.block)) - zero) * given.scales[at]);
    }
  }
  return make_constant({weights.rows, weights.columns}, std::span<const float>(values));
}

// x times the transposed weights, in float32, and a bias. `multiply`: of a matrix in float32.
template <typename Multiply>
Status product(NodeTranslation& node, int64_t rows, int64_t columns, size_t bias, const Multiply& multiply) {
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  c.require(c.rank(x) >= 1 && c.shape(x).back() == columns, "the input's last dimension is not K");
  const bool is_vector = c.rank(x) == 1;
  ValueIndex y = multiply(c, c.cast(is_vector ? c.reshape(x, {1, columns}) : x, DataType::kFloat32));
  if (is_vector) y = c.reshape(y, {rows});
  if (node.has_input(bias)) y = c.add(y, c.cast(node.input(bias), DataType::kFloat32));
  return c.finish(node, c.cast(y, c.type(x)));
}

Status product(NodeTranslation& node, Constant weights, size_t bias) {
  const int64_t rows = weights.shape[0], columns = weights.shape[1];
  return product(node, rows, columns, bias,
                 [&](Composer& c, ValueIndex x) { return c.matmul(x, c.constant(std::move(weights)), false, true); });
}

Status product(NodeTranslation& node, const PackedBlocks& packed, const FewBitsForm& weights, bool rounds) {
  return product(node, weights.rows, weights.columns, 5, [&](Composer& c, ValueIndex x) {
    Attributes attributes;
    attributes.set("bits", std::max<int64_t>(weights.bits, 4));
    attributes.set("block", weights.block);
    attributes.set("rounds", int64_t{rounds ? 1 : 0});
    std::vector<ValueIndex> inputs{x, c.constant(packed.codes), c.constant(packed.scales)};
    if (packed.zero_points) inputs.push_back(c.constant(*packed.zero_points));
    Shape shape = c.shape(x);
    shape.back() = weights.rows;
    return c.emit(OperatorKind::kBlockMatMul, std::move(inputs), std::move(attributes),
                  ValueType{DataType::kFloat32, std::move(shape)});
  });
}

Status few_bits_product(NodeTranslation& node) {
  const FewBitsForm weights{.rows = node.integer("N", 0),
                            .columns = node.integer("K", 0),
                            .block = node.integer("block_size", 0),
                            .bits = node.integer("bits", 4)};
  // What the input may be rounded to: at 4 to int8, else to nothing that pays.
  const bool rounds = node.integer("accuracy_level", 0) == 4;
  FOLIOT_RETURN_IF_ERROR(node.require("weight_prepacked", 0));
  constexpr int64_t kExtentMax = int64_t{1} << 24;
  const bool fits = weights.rows >= 1 && weights.rows <= kExtentMax && weights.columns >= 1 &&
                    weights.columns <= kExtentMax && weights.block >= 1 && weights.block <= kExtentMax &&
                    (weights.bits == 2 || weights.bits == 4 || weights.bits == 8);
  if (!fits) {
    return Status::invalid_argument(
        fmt::format("attributes N = {}, K = {}, 'block_size' = {}, 'bits' = {} are not possible together; 'bits' may "
                    "be 2, 4 or 8",
                    weights.rows, weights.columns, weights.block, weights.bits));
  }
  if (node.has_input(4)) return Status::unimplemented("input 4, 'g_idx', the order of the blocks, is not supported");
  FOLIOT_ASSIGN_OR_RETURN(const Constant codes, node.constant(1, "the weights"));
  FOLIOT_ASSIGN_OR_RETURN(const FewBits given, read_weights(node, weights, codes));
  if (const std::optional<PackedBlocks> blocks = packed(given, weights)) return product(node, *blocks, weights, rounds);
  return product(node, widened(given, weights), 5);
}

// The values of the codes of bitsandbytes: FP4, NF4.
constexpr std::array<std::array<float, 16>, 2> kBitsAndBytes{{
    {0.0F, 5.208333333e-03F, 0.66666667F, 1.0F, 0.33333333F, 0.5F, 0.16666667F, 0.25F, -0.0F, -5.208333333e-03F,
     -0.66666667F, -1.0F, -0.33333333F, -0.5F, -0.16666667F, -0.25F},
    {-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
     -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
     0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1.0F},
}};

// One block after another, across rows; the first of two codes in the upper half of a byte.
Status bits_and_bytes_product(NodeTranslation& node) {
  const int64_t rows = node.integer("N", 0), columns = node.integer("K", 0), block = node.integer("block_size", 0);
  const int64_t kind = node.integer("quant_type", -1);
  node.integer("training_mode", 0);
  FOLIOT_RETURN_IF_ERROR(node.require("transB", 1));
  constexpr int64_t kExtentMax = int64_t{1} << 24;
  if (rows < 1 || rows > kExtentMax || columns < 1 || columns > kExtentMax || block < 1 || kind < 0 || kind > 1) {
    return Status::invalid_argument(
        fmt::format("attributes N = {}, K = {}, 'block_size' = {}, 'quant_type' = {} are not possible together", rows,
                    columns, block, kind));
  }
  FOLIOT_ASSIGN_OR_RETURN(const Constant packed, node.constant(1, "the weights"));
  FOLIOT_ASSIGN_OR_RETURN(const Constant given, node.constant(2, "the scales"));
  const auto count = static_cast<uint64_t>(rows * columns);
  const auto size = static_cast<uint64_t>(block);
  if (packed.type != DataType::kUint8 || element_count(packed.shape) != (count + 1) / 2 ||
      element_count(given.shape) != (count + size - 1) / size) {
    return Status::invalid_argument(fmt::format("weights {} and scales {} do not fit N = {}, K = {}, 'block_size' = {}",
                                                to_string(packed.shape), to_string(given.shape), rows, columns, block));
  }
  const std::vector<float> scales = to_floats(given);
  const auto& table = kBitsAndBytes[static_cast<size_t>(kind)];
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<uint32_t>((*packed.bytes)[i / 2]);
    values[i] = table[i % 2 == 0 ? byte >> 4 : byte & 15] * scales[i / size];
  }
  return product(node, make_constant({rows, columns}, std::span<const float>(values)), kAnyNumber);
}

constexpr OnnxOperator kMicrosoftWeightOperators[] = {
    {"MatMulNBits", 3, 6, few_bits_product},
    {"MatMulBnb4", 3, 3, bits_and_bytes_product},
};

}  // namespace

std::span<const OnnxOperator> microsoft_weight_operators() { return kMicrosoftWeightOperators; }

}  // namespace foliot
