#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/compiler/passes.h"
#include "engine/compiler/pattern.h"

namespace foliot {
namespace {

struct LayerNorm {
  ValueIndex x = kNoValue;
  int64_t axis = 0;
  double epsilon = 0;
};

// The first of the dimensions that a mean is taken over, if they are the last ones.
std::optional<int64_t> mean_axis(const Pattern& pattern, ValueIndex value, ValueIndex* x) {
  const Node* mean = pattern.function_node(value, OperatorKind::kReduce, Function::kMean);
  if (mean == nullptr || mean->attributes.integer("keep_dims") == 0) return std::nullopt;
  *x = mean->inputs[0];
  const std::vector<int64_t>& axes = mean->attributes.integers("axes");
  const auto rank = static_cast<int64_t>(pattern.value(*x).shape.size());
  if (axes.empty() || axes.front() + static_cast<int64_t>(axes.size()) != rank) return std::nullopt;
  return axes.front();
}

// value = x - mean(x)
std::optional<int64_t> centred(const Pattern& pattern, ValueIndex value, ValueIndex* x) {
  const Node* difference = pattern.function_node(value, OperatorKind::kBinary, Function::kSub);
  if (difference == nullptr) return std::nullopt;
  const auto axis = mean_axis(pattern, difference->inputs[1], x);
  return axis && *x == difference->inputs[0] ? axis : std::nullopt;
}

// value = d ^ 2 or d * d: d
ValueIndex square_root_of(const Pattern& pattern, ValueIndex value) {
  if (const Node* power = pattern.function_node(value, OperatorKind::kBinary, Function::kPow)) {
    return pattern.is_scalar(power->inputs[1], 2) ? power->inputs[0] : kNoValue;
  }
  const Node* product = pattern.function_node(value, OperatorKind::kBinary, Function::kMul);
  return product != nullptr && product->inputs[0] == product->inputs[1] ? product->inputs[0] : kNoValue;
}

// node = (x - mean(x)) / sqrt(mean((x - mean(x)) ^ 2) + epsilon)
std::optional<LayerNorm> match(const Pattern& pattern, const Node& node) {
  LayerNorm result;
  const auto axis = centred(pattern, node.inputs[0], &result.x);
  const Node* root = pattern.function_node(node.inputs[1], OperatorKind::kUnary, Function::kSqrt);
  if (!axis || root == nullptr) return std::nullopt;
  result.axis = *axis;
  const Node* sum = pattern.function_node(root->inputs[0], OperatorKind::kBinary, Function::kAdd);
  if (sum == nullptr) return std::nullopt;
  const auto epsilon = pattern.scalar(sum->inputs[1]);
  ValueIndex squares = kNoValue;
  if (!epsilon || mean_axis(pattern, sum->inputs[0], &squares) != axis) return std::nullopt;
  result.epsilon = *epsilon;
  ValueIndex x = kNoValue;
  const ValueIndex difference = square_root_of(pattern, squares);
  if (difference == kNoValue || centred(pattern, difference, &x) != axis || x != result.x) return std::nullopt;
  return result;
}

// If the one user of `value` is `function` with a constant of the normalised
// shape, that node; `constant` becomes its other operand.
NodeIndex parameter_user(const GraphEditor& editor, ValueIndex value, Function function, const Shape& normalized,
                         ValueIndex* constant) {
  const NodeIndex user = editor.sole_user(value);
  if (user == kNoNode || editor.node(user).kind != OperatorKind::kBinary ||
      editor.node(user).attributes.function() != function) {
    return kNoNode;
  }
  const Node& node = editor.node(user);
  *constant = node.inputs[node.inputs[0] == value ? 1 : 0];
  const Value& parameter = editor.value(*constant);
  return parameter.is_constant() && parameter.shape == normalized ? user : kNoNode;
}

}  // namespace

void fuse_layer_norm(GraphEditor& editor) {
  const Pattern pattern(editor);
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i) || !pattern.is_function(editor.node(i), OperatorKind::kBinary, Function::kDiv)) continue;
    const auto found = match(pattern, editor.node(i));
    if (!found || editor.value(found->x).type != DataType::kFloat32) continue;
    Node fused = editor.node(i);
    fused.kind = OperatorKind::kLayerNorm;
    fused.inputs = {found->x};
    fused.attributes = {};
    fused.attributes.set("axis", found->axis);
    fused.attributes.set("epsilon", found->epsilon);

    const Shape& shape = editor.value(found->x).shape;
    const Shape normalized(shape.begin() + found->axis, shape.end());
    ValueIndex scale = kNoValue, bias = kNoValue;
    const NodeIndex scaling = parameter_user(editor, fused.outputs[0], Function::kMul, normalized, &scale);
    if (scaling != kNoNode) {
      const NodeIndex shifting =
          parameter_user(editor, editor.node(scaling).outputs[0], Function::kAdd, normalized, &bias);
      if (shifting != kNoNode) {
        fused.inputs = {found->x, scale, bias};
        fused.outputs = editor.node(shifting).outputs;
        editor.remove(shifting);
        editor.remove(scaling);
      }
    }
    editor.replace(i, std::move(fused));
  }
}

}  // namespace foliot
