// GraphEditor: a graph under rewriting, with the producer and the users of each value.
// Nodes keep their positions, so that the order stays one in which they can run.
#ifndef FOLIOT_ENGINE_COMPILER_GRAPH_EDITOR_H_
#define FOLIOT_ENGINE_COMPILER_GRAPH_EDITOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/device/graph.h"

namespace foliot {

using NodeIndex = uint32_t;
inline constexpr NodeIndex kNoNode = ~NodeIndex{0};

class GraphEditor {
 public:
  // `graph` and `pool` must outlive the editor. Constants that are made are interned in `pool`.
  GraphEditor(Graph& graph, ConstantPool& pool);

  NodeIndex node_count() const { return static_cast<NodeIndex>(graph_.nodes.size()); }
  // A removed node has no outputs.
  const Node& node(NodeIndex index) const { return graph_.nodes[index]; }
  bool is_removed(NodeIndex index) const { return graph_.nodes[index].outputs.empty(); }
  const Value& value(ValueIndex index) const { return graph_.values[index]; }
  // REQUIRES: value(index) is a constant.
  Constant constant(ValueIndex index) const;

  // kNoNode for inputs and constants.
  NodeIndex producer(ValueIndex value) const { return value == kNoValue ? kNoNode : producers_[value]; }
  // The node that makes `value` if it is of this kind and has only one reader, else
  // kNoNode.
  NodeIndex sole_producer(ValueIndex value, OperatorKind kind) const;
  // The one node that reads `value`, once; kNoNode if there are more or it is an output.
  NodeIndex sole_user(ValueIndex value) const;

  // All nodes that read `value`, once per use.
  const std::vector<NodeIndex>& users(ValueIndex value) const { return users_[value]; }
  bool is_output(ValueIndex value) const { return is_output_[value]; }

  // Puts another node in the place of one. It may take over the output of a
  // later node, which must be removed first.
  void replace(NodeIndex index, Node node);
  void remove(NodeIndex index);
  void set_shape(ValueIndex value, Shape shape) { graph_.values[value].shape = std::move(shape); }
  void set_type(ValueIndex value, DataType type) { graph_.values[value].type = type; }
  // Makes a value that no node makes any more a constant of its own type and shape.
  void set_constant(ValueIndex value, Constant constant);
  ValueIndex add_value(Value value);
  ValueIndex add_constant(std::string name, Constant constant);
  // ConstantPool::derive().
  Constant derive(const Constant& from, std::string how, const std::function<Constant()>& make) {
    return pool_.derive(from, std::move(how), make);
  }

 private:
  void register_node(NodeIndex index);
  void unregister_node(NodeIndex index);

  Graph& graph_;
  ConstantPool& pool_;
  std::vector<NodeIndex> producers_;
  std::vector<std::vector<NodeIndex>> users_;  // a node stands there once per use
  std::vector<bool> is_output_;
};

// Removes nodes whose results are unused, and values that nothing names.
void remove_dead_code(Graph& graph);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_GRAPH_EDITOR_H_
