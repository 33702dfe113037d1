#include "compiler/passes.h"

namespace foliot {

void optimize(Graph& graph, ConstantPool& pool) {
  remove_dead_code(graph);
  for (const auto pass :
       {fold_channel_arithmetic, fuse_layer_norm, fuse_activations, fuse_matrix_products, fuse_post_operations}) {
    GraphEditor editor(graph, pool);
    pass(editor);
    remove_dead_code(graph);
  }
}

}  // namespace foliot
