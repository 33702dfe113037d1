#include "engine/compiler/passes.h"

#include <algorithm>

namespace foliot {
namespace {

void run(void (*pass)(GraphEditor&), Graph& graph, ConstantPool& pool) {
  GraphEditor editor(graph, pool);
  pass(editor);
  remove_dead_code(graph);
}

}  // namespace

bool is_narrowed(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    const bool multiplies = node.kind == OperatorKind::kConvolution ||
                            node.kind == OperatorKind::kConvolutionTranspose || node.kind == OperatorKind::kMatMul;
    const DataType type = graph.values[node.inputs[0]].type;
    return multiplies && (type == DataType::kBfloat16 || type == DataType::kUint8);
  });
}

void optimize(Graph& graph, ConstantPool& pool, Narrowing narrowing) {
  remove_dead_code(graph);
  for (const auto pass : {pack_block_weights, fold_dequantized_blocks}) run(pass, graph, pool);
  if (!narrowing.quantized) run(fold_dequantized_constants, graph, pool);
  for (const auto pass : {fold_channel_arithmetic, fuse_layer_norm, fuse_group_norm, fuse_activations})
    run(pass, graph, pool);
  // In bfloat16 what follows would go through float32.
  if (!narrowing.bfloat16) split_transposed_convolutions(graph, pool);
  remove_dead_code(graph);
  for (const auto pass : {fuse_matrix_products, fuse_post_operations}) run(pass, graph, pool);
  if (narrowing.quantized) {
    run(fuse_quantized, graph, pool);
    run(fold_dequantized_constants, graph, pool);
  }
  // Products in bfloat16 are left as they are: they are faster than those in float32.
  if (!narrowing.bfloat16) run(fuse_attention, graph, pool);
  if (narrowing.bfloat16) narrow_to_bfloat16(graph, pool);
}

}  // namespace foliot
