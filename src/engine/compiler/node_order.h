// The order of a graph's nodes: each after those whose results it uses. ONNX asks for it, and some converters do not
// keep it.
#ifndef FOLIOT_ENGINE_COMPILER_NODE_ORDER_H_
#define FOLIOT_ENGINE_COMPILER_NODE_ORDER_H_

#include <set>
#include <string_view>
#include <vector>

#include "engine/compiler/onnx_model.h"

namespace foliot {

// All names that a node uses, those within its bodies among them.
void add_names(const OnnxNode& node, std::set<std::string_view>* names);

// Leaves nodes that stand in order as they are; of several that could be next, the one that stood first is. Nodes that
// wait for one another are left at the end.
void sort_nodes(std::vector<OnnxNode>* nodes);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_NODE_ORDER_H_
