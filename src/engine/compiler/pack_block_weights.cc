#include "engine/compiler/pack_block_weights.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/compiler/passes.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr int64_t kPanel = BlockWeights::kPanelColumns;

std::vector<std::byte> packed_codes(const LooseBlocks& loose) {
  const BlockWeights& form = loose.form;
  std::vector<std::byte> result(element_count(form.codes_shape()));
  for (int64_t column = 0; column < form.columns; ++column) {
    const uint8_t* codes = loose.codes.data() + column * form.depth;
    std::byte* to = result.data() + (column / kPanel * form.words() * kPanel + column % kPanel) * 4;
    for (int64_t k = 0; k < form.depth; ++k) {
      const int64_t bit = form.shift_of(k % form.word_depth());
      to[k / form.word_depth() * kPanel * 4 + bit / 8] |= static_cast<std::byte>(codes[k] << (bit % 8));
    }
  }
  return result;
}

// From [column][block].
template <typename T>
std::vector<T> by_panel(const BlockWeights& form, const std::vector<T>& from) {
  std::vector<T> result(element_count(form.scales_shape()));
  for (int64_t column = 0; column < form.columns; ++column) {
    for (int64_t block = 0; block < form.blocks(); ++block) {
      result[static_cast<size_t>((column / kPanel * form.blocks() + block) * kPanel + column % kPanel)] =
          from[static_cast<size_t>(column * form.blocks() + block)];
    }
  }
  return result;
}

// What a product multiplies with: dequantised constants, as they are or turned.
struct Found {
  Node dequantize;
  bool is_turned;  // codes [columns][depth]
};

std::optional<Found> find_weights(const GraphEditor& editor, const Node& product) {
  bool is_turned = product.attributes.integer("transpose_b") != 0;
  NodeIndex before = editor.producer(product.inputs[1]);
  if (before != kNoNode && editor.node(before).kind == OperatorKind::kTranspose) {
    if (editor.node(before).attributes.integers("permutation") != std::vector<int64_t>{1, 0}) return std::nullopt;
    is_turned = !is_turned;
    before = editor.producer(editor.node(before).inputs[0]);
  }
  if (before == kNoNode || editor.node(before).kind != OperatorKind::kDequantize ||
      !editor.node(before).attributes.has("block")) {
    return std::nullopt;
  }
  return Found{editor.node(before), is_turned};
}

// Codes as numbers from 0 on: what is added to them, and their bits.
struct CodeRange {
  int64_t shift, bits;
};

CodeRange range_of(DataType type, const std::vector<int64_t>& codes, const std::vector<int64_t>& zero_points) {
  const int64_t least = type == DataType::kInt8 ? -8 : 0;
  const auto is_small = [&](int64_t code) { return code >= least && code < least + 16; };
  if (std::ranges::all_of(codes, is_small) && std::ranges::all_of(zero_points, is_small)) return {-least, 4};
  return {-16 * least, 8};
}

std::optional<LooseBlocks> loosen(const GraphEditor& editor, const Found& found, int64_t depth, int64_t columns) {
  const Node& node = found.dequantize;
  if (node.attributes.integer("axis") != (found.is_turned ? 1 : 0)) return std::nullopt;
  const Constant given = editor.constant(node.inputs[0]);
  const std::vector<int64_t> codes = to_integers(given);
  const std::vector<double> scales = to_doubles(editor.constant(node.inputs[1]));
  std::vector<int64_t> zero_points(scales.size(), 0);
  if (node.inputs.size() > 2) zero_points = to_integers(editor.constant(node.inputs[2]));
  const CodeRange range = range_of(given.type, codes, zero_points);
  LooseBlocks loose;
  loose.form = {.depth = depth, .columns = columns, .block = node.attributes.integer("block"), .bits = range.bits};
  const int64_t blocks = loose.form.blocks();
  if (!loose.form.is_possible() || static_cast<int64_t>(codes.size()) != depth * columns ||
      static_cast<int64_t>(scales.size()) != blocks * columns || zero_points.size() != scales.size()) {
    return std::nullopt;
  }
  const auto place = [&](int64_t column, int64_t k, int64_t extent) {
    return static_cast<size_t>(found.is_turned ? column * extent + k : k * columns + column);
  };
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t k = 0; k < depth; ++k)
      loose.codes.push_back(static_cast<uint8_t>(codes[place(column, k, depth)] + range.shift));
    for (int64_t block = 0; block < blocks; ++block) {
      const size_t at = place(column, block, blocks);
      loose.scales.push_back(static_cast<float>(scales[at]));
      loose.zero_points.push_back(static_cast<uint8_t>(zero_points[at] + range.shift));
    }
  }
  return loose;
}

void pack_product(GraphEditor& editor, NodeIndex index) {
  const Node& product = editor.node(index);
  const Value& x = editor.value(product.inputs[0]);
  if (product.attributes.integer("transpose_a") != 0 || product.attributes.real("alpha") != 1 ||
      x.type != DataType::kFloat32) {
    return;
  }
  const std::optional<Found> found = find_weights(editor, product);
  if (!found) return;
  const std::optional<LooseBlocks> loose =
      loosen(editor, *found, x.shape.back(), editor.value(product.outputs[0]).shape.back());
  const std::optional<PackedBlocks> packed = loose ? pack(*loose) : std::nullopt;
  if (!packed) return;
  Node node{.kind = OperatorKind::kBlockMatMul, .name = product.name, .outputs = product.outputs};
  node.inputs = {product.inputs[0], editor.add_constant(product.name, packed->codes),
                 editor.add_constant(product.name, packed->scales),
                 packed->zero_points ? editor.add_constant(product.name, *packed->zero_points) : kNoValue,
                 product.inputs.size() > 2 ? product.inputs[2] : kNoValue};
  node.attributes.set("bits", loose->form.bits);
  node.attributes.set("block", loose->form.block);
  node.attributes.set("rounds", int64_t{0});
  editor.replace(index, std::move(node));
}

// What no product took: float32.
Constant dequantized(const GraphEditor& editor, const Node& node) {
  const Constant codes = editor.constant(node.inputs[0]);
  const std::vector<int64_t> values = to_integers(codes);
  const std::vector<double> scales = to_doubles(editor.constant(node.inputs[1]));
  const std::vector<int64_t> zero_points =
      node.inputs.size() > 2 ? to_integers(editor.constant(node.inputs[2])) : std::vector<int64_t>(scales.size(), 0);
  const bool by_row = node.attributes.integer("axis") == 0;
  const int64_t block = node.attributes.integer("block"), rows = codes.shape[0], columns = codes.shape[1];
  const int64_t width = by_row ? columns : (columns + block - 1) / block;
  std::vector<float> result(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const auto i = static_cast<size_t>(row * columns + column);
      const auto at = static_cast<size_t>((by_row ? row / block : row) * width + (by_row ? column : column / block));
      result[i] = static_cast<float>(values[i] - zero_points[at]) * static_cast<float>(scales[at]);
    }
  }
  return make_constant(codes.shape, result);
}

}  // namespace

std::optional<PackedBlocks> pack(const LooseBlocks& loose) {
  const BlockWeights& form = loose.form;
  FOLIOT_CHECK(form.is_possible());
  if (!std::ranges::all_of(loose.scales, [](float scale) { return std::isfinite(scale); })) return std::nullopt;
  PackedBlocks packed;
  packed.codes = make_constant(DataType::kUint8, form.codes_shape(), packed_codes(loose));
  packed.scales = make_constant(form.scales_shape(), std::span<const float>(by_panel(form, loose.scales)));
  const auto is_middle = [&](uint8_t zero_point) { return zero_point == form.middle(); };
  if (!std::ranges::all_of(loose.zero_points, is_middle)) {
    const std::vector<uint8_t> zero_points = by_panel(form, loose.zero_points);
    const auto bytes = std::as_bytes(std::span(zero_points));
    packed.zero_points = make_constant(DataType::kUint8, form.scales_shape(), {bytes.begin(), bytes.end()});
  }
  return packed;
}

void pack_block_weights(GraphEditor& editor) {
  for (NodeIndex i = 0; i < editor.node_count(); ++i)
    if (!editor.is_removed(i) && editor.node(i).kind == OperatorKind::kMatMul) pack_product(editor, i);
}

void fold_dequantized_blocks(GraphEditor& editor) {
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i) || !editor.node(i).attributes.has("block")) continue;
    if (editor.node(i).kind != OperatorKind::kDequantize) continue;
    const Node node = editor.node(i);
    editor.remove(i);
    editor.set_constant(node.outputs[0], dequantized(editor, node));
  }
}

}  // namespace foliot
