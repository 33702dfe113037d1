#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "engine/compiler/passes.h"
#include "engine/compiler/pattern.h"

namespace foliot {
namespace {

// A transposition under a product whose innermost dimension moves outward by
// one (keys of attention): the swap of the last two goes into the product and
// what is left moves whole rows, or is nothing at all.
void absorb_transpose(GraphEditor& editor, NodeIndex index, size_t operand) {
  Node product = editor.node(index);
  const NodeIndex before = editor.sole_producer(product.inputs[operand], OperatorKind::kTranspose);
  if (before == kNoNode) return;
  Node transpose = editor.node(before);
  std::vector<int64_t> permutation = transpose.attributes.integers("permutation");
  const size_t rank = permutation.size();
  if (rank < 2 || permutation[rank - 2] + 1 != static_cast<int64_t>(rank)) return;
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  const char* flag = operand == 0 ? "transpose_a" : "transpose_b";
  product.attributes.set(flag, 1 - product.attributes.integer(flag));
  if (std::ranges::is_sorted(permutation)) {
    product.inputs[operand] = transpose.inputs[0];
    editor.replace(index, std::move(product));
    editor.remove(before);
    return;
  }
  Shape shape = editor.value(transpose.outputs[0]).shape;
  std::swap(shape[rank - 1], shape[rank - 2]);
  editor.set_shape(transpose.outputs[0], std::move(shape));
  transpose.attributes.set("permutation", std::move(permutation));
  editor.replace(before, std::move(transpose));
  editor.replace(index, std::move(product));
}

// (a * scalar) x b and (a / scalar) x b, of two tensors that are no constants.
void absorb_operand_factor(GraphEditor& editor, const Pattern& pattern, NodeIndex index, size_t operand) {
  Node product = editor.node(index);
  const ValueIndex scaled = product.inputs[operand];
  if (editor.value(product.inputs[1 - operand]).is_constant() || editor.value(scaled).type != DataType::kFloat32)
    return;
  const NodeIndex before = editor.sole_producer(scaled, OperatorKind::kBinary);
  if (before == kNoNode || editor.node(before).inputs.size() != 2) return;
  const Node scaling = editor.node(before);
  const Function function = scaling.attributes.function();
  const size_t side = pattern.scalar(scaling.inputs[0]) ? 0 : 1;
  const auto factor = pattern.scalar(scaling.inputs[side]);
  const bool divides = function == Function::kDiv && side == 1 && factor && *factor != 0;
  if (!factor || !(divides || function == Function::kMul)) return;
  const ValueIndex whole = scaling.inputs[1 - side];
  if (editor.value(whole).is_constant() || editor.value(whole).shape != editor.value(scaled).shape) return;
  const double alpha = product.attributes.real("alpha");
  product.attributes.set("alpha", divides ? alpha / *factor : alpha * *factor);
  product.inputs[operand] = whole;
  editor.replace(index, std::move(product));
  editor.remove(before);
}

// product * scalar and product / scalar
void absorb_factor(GraphEditor& editor, const Pattern& pattern, NodeIndex index) {
  Node product = editor.node(index);
  if (product.inputs.size() > 2) return;
  const ValueIndex result = product.outputs[0];
  const NodeIndex user = editor.sole_user(result);
  if (user == kNoNode || editor.node(user).kind != OperatorKind::kBinary) return;
  const Node scaling = editor.node(user);
  const Function function = scaling.attributes.function();
  const ValueIndex other = scaling.inputs[scaling.inputs[0] == result ? 1 : 0];
  const auto factor = pattern.scalar(other);
  const bool divides = function == Function::kDiv && scaling.inputs[0] == result && factor && *factor != 0;
  if (!factor || !(divides || function == Function::kMul)) return;
  if (editor.value(scaling.outputs[0]).shape != editor.value(result).shape) return;
  const double alpha = product.attributes.real("alpha");
  product.attributes.set("alpha", divides ? alpha / *factor : alpha * *factor);
  product.outputs = scaling.outputs;
  editor.remove(user);
  editor.replace(index, std::move(product));
}

}  // namespace

void fuse_matrix_products(GraphEditor& editor) {
  const Pattern pattern(editor);
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i) || editor.node(i).kind != OperatorKind::kMatMul) continue;
    for (const size_t operand : {0, 1}) absorb_operand_factor(editor, pattern, i, operand);
    absorb_transpose(editor, i, 0);
    absorb_transpose(editor, i, 1);
    absorb_factor(editor, pattern, i);
  }
}

}  // namespace foliot
