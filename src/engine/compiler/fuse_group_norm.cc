#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/compiler/passes.h"
#include "engine/compiler/pattern.h"

namespace foliot {
namespace {

// Whether it is a constant of this number alone.
bool is_filled(const GraphEditor& editor, ValueIndex index, double number) {
  if (index == kNoValue || !editor.value(index).is_constant()) return false;
  const std::vector<double> values = to_doubles(editor.constant(index));
  return std::ranges::all_of(values, [&](double value) { return value == number; });
}

// The nodes of y = reshape(norm(reshape(x))) * scale + bias, where `norm` is of groups of channels, and what is
// scaled by constants has a dimension for the channels.
struct GroupNorm {
  NodeIndex grouping, norm, ungrouping, scaling, shifting;
  ValueIndex scale, bias;
};

// If the one user of `value` is `function` with a constant for each channel, dimension 1 of `shape`, that node;
// `constant` becomes its other operand.
NodeIndex channel_user(const GraphEditor& editor, ValueIndex value, Function function, ValueIndex* constant) {
  const NodeIndex user = editor.sole_user(value);
  if (user == kNoNode || !Pattern(editor).is_function(editor.node(user), OperatorKind::kBinary, function)) {
    return kNoNode;
  }
  const Node& node = editor.node(user);
  *constant = node.inputs[node.inputs[0] == value ? 1 : 0];
  const Value& parameter = editor.value(*constant);
  const Shape& shape = editor.value(value).shape;
  if (!parameter.is_constant() || parameter.type != DataType::kFloat32 || shape.size() < 3) return kNoNode;
  Shape channels(shape.size() - 1, 1);
  channels[0] = shape[1];
  Shape given = parameter.shape;
  if (given.size() == shape.size() && given[0] == 1) given.erase(given.begin());
  return given == channels ? user : kNoNode;
}

std::optional<GroupNorm> match(const GraphEditor& editor, NodeIndex index) {
  const Node& norm = editor.node(index);
  if (norm.kind != OperatorKind::kLayerNorm || norm.inputs.size() != 3) return std::nullopt;
  const Shape& grouped = editor.value(norm.inputs[0]).shape;
  if (grouped.size() != 3 || norm.attributes.integer("axis") != 2) return std::nullopt;
  if (editor.value(norm.inputs[1]).shape != Shape{grouped[1], 1}) return std::nullopt;
  if (!is_filled(editor, norm.inputs[1], 1) || !is_filled(editor, norm.inputs[2], 0)) return std::nullopt;
  GroupNorm result{};
  result.norm = index;
  result.grouping = editor.sole_producer(norm.inputs[0], OperatorKind::kReshape);
  result.ungrouping = editor.sole_user(norm.outputs[0]);
  if (result.grouping == kNoNode || result.ungrouping == kNoNode) return std::nullopt;
  const Node& ungrouping = editor.node(result.ungrouping);
  const Shape& shape = editor.value(ungrouping.outputs.at(0)).shape;
  if (ungrouping.kind != OperatorKind::kReshape || shape.size() < 3 || shape[0] != grouped[0]) return std::nullopt;
  if (grouped[1] < 1 || shape[1] < 1 || shape[1] % grouped[1] != 0 ||
      editor.value(editor.node(result.grouping).inputs[0]).shape != shape) {
    return std::nullopt;
  }
  result.scaling = channel_user(editor, ungrouping.outputs[0], Function::kMul, &result.scale);
  if (result.scaling == kNoNode) return std::nullopt;
  result.shifting = channel_user(editor, editor.node(result.scaling).outputs[0], Function::kAdd, &result.bias);
  return result.shifting == kNoNode ? std::nullopt : std::optional(result);
}

void fuse(GraphEditor& editor, const GroupNorm& found) {
  Node norm = editor.node(found.norm), ungrouping = editor.node(found.ungrouping);
  const Shape grouped = editor.value(norm.inputs[0]).shape;
  const Shape shape = editor.value(ungrouping.outputs[0]).shape;
  const int64_t together = shape[1] / grouped[1];
  for (const ValueIndex value : {norm.inputs[0], norm.outputs[0]})
    editor.set_shape(value, {grouped[0], grouped[1], together, grouped[2] / together});
  const auto parameter = [&](ValueIndex index) {
    Constant constant = editor.constant(index);
    constant.shape = {grouped[1], together, 1};
    return editor.add_constant(editor.value(index).name, std::move(constant));
  };
  norm.inputs[1] = parameter(found.scale);
  norm.inputs[2] = parameter(found.bias);
  ungrouping.outputs = editor.node(found.shifting).outputs;
  editor.remove(found.shifting);
  editor.remove(found.scaling);
  editor.replace(found.norm, std::move(norm));
  editor.replace(found.ungrouping, std::move(ungrouping));
}

}  // namespace

void fuse_group_norm(GraphEditor& editor) {
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i)) continue;
    if (const auto found = match(editor, i)) fuse(editor, *found);
  }
}

}  // namespace foliot
