#include "engine/device/cpu/row_order.h"

#include <algorithm>

namespace foliot {

RowOrder::RowOrder(const Graph& graph) : by_row_(graph.values.size(), false) {
  if (graph.batch_size == 1) {
    by_row_.assign(graph.values.size(), true);
    return;
  }
  for (ValueIndex input : graph.inputs) by_row_[input] = leads(graph, input);
  for (const Node& node : graph.nodes)
    for (ValueIndex output : node.outputs) by_row_[output] = keeps_rows(graph, node);
}

bool RowOrder::leads(const Graph& graph, ValueIndex value) {
  const Shape& shape = graph.values[value].shape;
  return !shape.empty() && shape[0] == int64_t{graph.batch_size};
}

bool RowOrder::keeps_rows(const Graph& graph, const Node& node) const {
  const ValueIndex x = node.inputs.at(0), y = node.outputs.at(0);
  const Attributes& attributes = node.attributes;
  const auto constant = [&](ValueIndex value) { return graph.values[value].is_constant(); };
  const auto rank = [&](ValueIndex value) { return graph.values[value].shape.size(); };
  // Each operand belongs to no row, or to the rows as the result does.
  const auto all_lead = [&] {
    return leads(graph, y) && std::ranges::all_of(node.inputs, [&](ValueIndex input) {
             return input == kNoValue || constant(input) ||
                    (by_row_[input] && leads(graph, input) && rank(input) == rank(y));
           });
  };
  const bool led = by_row_[x] && leads(graph, x) && leads(graph, y);
  switch (node.kind) {
    case OperatorKind::kUnary:
    case OperatorKind::kCast:
    case OperatorKind::kReshape: return by_row_[x];
    case OperatorKind::kBinary:
    case OperatorKind::kWhere:
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose:
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool:
    case OperatorKind::kLrn:
    case OperatorKind::kAffine:
    case OperatorKind::kResize:
    case OperatorKind::kDepthToSpace: return all_lead();
    // Of two matrices, the second's rows are no rows of the batch.
    case OperatorKind::kMatMul: return all_lead() && (rank(y) > 2 || constant(node.inputs.at(1)));
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm: return attributes.integer("axis") > 0 && all_lead();
    case OperatorKind::kPad: return led && attributes.integers("pads")[0] == 0;
    case OperatorKind::kExpand: return led && rank(x) == rank(y);
    case OperatorKind::kSlice:
      return led && attributes.integers("starts")[0] == 0 && attributes.integers("steps")[0] == 1;
    case OperatorKind::kTranspose: return led && attributes.integers("permutation")[0] == 0;
    case OperatorKind::kConcat: return attributes.integer("axis") > 0 && all_lead();
    case OperatorKind::kCumulative:
    case OperatorKind::kTopK:
    case OperatorKind::kArgReduce: return led && attributes.integer("axis") > 0;
    case OperatorKind::kReduce:
      return led && std::ranges::find(attributes.integers("axes"), 0) == attributes.integers("axes").end();
    case OperatorKind::kGather:
      if (attributes.integer("axis") == 0) return constant(x) && by_row_[node.inputs.at(1)];
      return led && constant(node.inputs.at(1));
    default: return false;
  }
}

}  // namespace foliot
