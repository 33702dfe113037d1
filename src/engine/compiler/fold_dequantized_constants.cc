#include <vector>

#include "engine/compiler/passes.h"

namespace foliot {
namespace {

// (codes - zero point) * scale, each entry of a dimension with its own.
Constant dequantized(const Constant& codes, const Attributes& attributes) {
  const std::vector<double>& scales = attributes.reals("scales");
  const std::vector<int64_t>& zero_points = attributes.integers("zero_points");
  const auto axis = static_cast<size_t>(attributes.integer("axis"));
  size_t run = 1;
  for (size_t d = axis + 1; d < codes.shape.size(); ++d) run *= static_cast<size_t>(codes.shape[d]);
  const std::vector<int64_t> values = to_integers(codes);
  std::vector<float> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t entry = i / run % scales.size();
    result[i] = static_cast<float>(values[i] - zero_points[entry]) * static_cast<float>(scales[entry]);
  }
  return make_constant(codes.shape, result);
}

}  // namespace

void fold_dequantized_constants(GraphEditor& editor) {
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i) || editor.node(i).kind != OperatorKind::kDequantize) continue;
    const Node node = editor.node(i);
    if (!editor.value(node.inputs[0]).is_constant()) continue;
    editor.remove(i);
    editor.set_constant(node.outputs[0], dequantized(editor.constant(node.inputs[0]), node.attributes));
  }
}

}  // namespace foliot
