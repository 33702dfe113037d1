#include "engine/compiler/graph_editor.h"

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {

GraphEditor::GraphEditor(Graph& graph, ConstantPool& pool)
    : graph_(graph),
      pool_(pool),
      producers_(graph.values.size(), kNoNode),
      users_(graph.values.size()),
      is_output_(graph.values.size(), false) {
  for (ValueIndex output : graph.outputs) is_output_[output] = true;
  for (NodeIndex i = 0; i < node_count(); ++i) register_node(i);
}

Constant GraphEditor::constant(ValueIndex index) const {
  FOLIOT_CHECK(value(index).is_constant());
  return {value(index).type, value(index).shape, value(index).constant};
}

NodeIndex GraphEditor::sole_producer(ValueIndex value, OperatorKind kind) const {
  const NodeIndex index = producer(value);
  if (index == kNoNode || node(index).kind != kind || sole_user(value) == kNoNode) return kNoNode;
  return index;
}

NodeIndex GraphEditor::sole_user(ValueIndex value) const {
  return users_[value].size() == 1 && !is_output_[value] ? users_[value][0] : kNoNode;
}

void GraphEditor::register_node(NodeIndex index) {
  for (ValueIndex input : node(index).inputs) {
    if (input != kNoValue) users_[input].push_back(index);
  }
  for (ValueIndex output : node(index).outputs) producers_[output] = index;
}

void GraphEditor::unregister_node(NodeIndex index) {
  for (ValueIndex input : node(index).inputs) {
    if (input == kNoValue) continue;
    users_[input].erase(std::ranges::find(users_[input], index));
  }
  for (ValueIndex output : node(index).outputs) producers_[output] = kNoNode;
}

void GraphEditor::replace(NodeIndex index, Node node) {
  unregister_node(index);
  graph_.nodes[index] = std::move(node);
  register_node(index);
}

void GraphEditor::remove(NodeIndex index) {
  unregister_node(index);
  graph_.nodes[index].inputs.clear();
  graph_.nodes[index].outputs.clear();
}

void GraphEditor::set_constant(ValueIndex value, Constant constant) {
  FOLIOT_CHECK(producers_[value] == kNoNode && constant.type == graph_.values[value].type);
  graph_.values[value].constant = pool_.intern(std::move(constant)).bytes;
}

ValueIndex GraphEditor::add_constant(std::string name, Constant constant) {
  constant = pool_.intern(std::move(constant));
  Value value;
  value.name = std::move(name);
  value.type = constant.type;
  value.shape = std::move(constant.shape);
  value.constant = std::move(constant.bytes);
  return add_value(std::move(value));
}

ValueIndex GraphEditor::add_value(Value value) {
  graph_.values.push_back(std::move(value));
  producers_.push_back(kNoNode);
  users_.emplace_back();
  is_output_.push_back(false);
  return static_cast<ValueIndex>(graph_.values.size() - 1);
}

void remove_dead_code(Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  for (ValueIndex output : graph.outputs) used[output] = true;
  std::vector<Node> nodes;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    if (std::ranges::none_of(node.outputs, [&](ValueIndex output) { return used[output]; })) continue;
    for (ValueIndex input : node.inputs) {
      if (input != kNoValue) used[input] = true;
    }
    nodes.push_back(std::move(node));
  }
  std::ranges::reverse(nodes);
  graph.nodes = std::move(nodes);
  for (ValueIndex input : graph.inputs) used[input] = true;

  std::vector<ValueIndex> renumbered(graph.values.size(), kNoValue);
  std::vector<Value> values;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = static_cast<ValueIndex>(values.size());
    values.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(values);
  const auto renumber = [&](std::vector<ValueIndex>& indices) {
    for (ValueIndex& index : indices) {
      if (index != kNoValue) index = renumbered[index];
    }
  };
  for (Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  renumber(graph.inputs);
  renumber(graph.outputs);
}

}  // namespace foliot
