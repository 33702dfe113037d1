// Passes: rewriting a graph into one that computes the same with less work. Each
// leaves nodes in an order in which they can run.
#ifndef FOLIOT_COMPILER_PASSES_H_
#define FOLIOT_COMPILER_PASSES_H_

#include "compiler/constant.h"
#include "compiler/graph_editor.h"
#include "device/graph.h"

namespace foliot {

// Scaling and shifting by constants per channel (BatchNormalization, biases)
// moves into the weights of the convolution, product or affine before it.
void fold_channel_arithmetic(GraphEditor& editor);
// Means, differences and roots, as exporters write LayerNormalization.
void fuse_layer_norm(GraphEditor& editor);
// GELU and HardSwish written out.
void fuse_activations(GraphEditor& editor);
// Transpositions of the last two dimensions and scalar factors move into products.
void fuse_matrix_products(GraphEditor& editor);
// Activations and residual additions move into the operator before them.
void fuse_post_operations(GraphEditor& editor);

// All of them, in the order in which they help each other.
void optimize(Graph& graph, ConstantPool& pool);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_PASSES_H_
