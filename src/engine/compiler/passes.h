// Passes: rewriting a graph into one that computes the same with less work. Each
// leaves nodes in an order in which they can run.
#ifndef FOLIOT_ENGINE_COMPILER_PASSES_H_
#define FOLIOT_ENGINE_COMPILER_PASSES_H_

#include "engine/compiler/constant.h"
#include "engine/compiler/graph_editor.h"
#include "engine/device/graph.h"

namespace foliot {

// Products with constants of few bits that are dequantised in blocks become kBlockMatMul; runs before the next.
void pack_block_weights(GraphEditor& editor);
// Constants that are still dequantised in blocks become float32.
void fold_dequantized_blocks(GraphEditor& editor);
// Scaling and shifting by constants per channel (BatchNormalization, biases)
// moves into the weights of the convolution, product or affine before it.
void fold_channel_arithmetic(GraphEditor& editor);
// Means, differences and roots, as exporters write LayerNormalization.
void fuse_layer_norm(GraphEditor& editor);
// Groups of channels that are normalised as instances, and then scaled and shifted by channel, as torch exports them.
void fuse_group_norm(GraphEditor& editor);
// GELU, SiLU and HardSwish written out.
void fuse_activations(GraphEditor& editor);
// Transposed convolutions whose windows neither overlap nor leave gaps become a convolution of 1x1 with a channel for
// each entry of a window, the functions of one operand that follow, and kDepthToSpace.
void split_transposed_convolutions(Graph& graph, ConstantPool& pool);
// Transpositions of the last two dimensions and scalar factors of operands and results move
// into products.
void fuse_matrix_products(GraphEditor& editor);
// Activations and residual additions move into the operator before them.
void fuse_post_operations(GraphEditor& editor);
// A softmax between two products, with a mask added before it or not, of float32. Runs after
// fuse_post_operations().
void fuse_attention(GraphEditor& editor);

// What lies between dequantising and quantising computes with the codes
// themselves: convolutions and products with constant weights, additions and other
// elementwise functions, and what only picks from its operand. Runs after
// fuse_post_operations(). An addition takes in the product before it, which then
// rounds as if it had quantised; so results are those of the model as it is
// written, but for what floating point makes of a tie.
void fuse_quantized(GraphEditor& editor);
// Constants that are still dequantised become float32.
void fold_dequantized_constants(GraphEditor& editor);
// Convolutions and products take bfloat16, and what lies between them hands it on.
// Normalisations, reductions and functions that magnify errors stay in float32, as
// do the graph's inputs and outputs.
void narrow_to_bfloat16(Graph& graph, ConstantPool& pool);

// What a graph may be rewritten to compute in.
struct Narrowing {
  bool quantized = false;  // uint8 by int8, where the model is written so
  bool bfloat16 = false;
};

// Whether some convolution or product is narrow.
bool is_narrowed(const Graph& graph);

// All of them, in the order in which they help each other.
void optimize(Graph& graph, ConstantPool& pool, Narrowing narrowing = {});

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_PASSES_H_
