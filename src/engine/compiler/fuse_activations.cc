#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/compiler/passes.h"
#include "engine/compiler/pattern.h"

namespace foliot {
namespace {

// The operand that remains when `one` is one of the two operands of a product.
ValueIndex other_operand(const Node& product, ValueIndex one) {
  if (product.inputs[0] == one) return product.inputs[1];
  return product.inputs[1] == one ? product.inputs[0] : kNoValue;
}

// value = 1 + erf(x / sqrt(2)): x
ValueIndex error_gate(const Pattern& pattern, ValueIndex value) {
  const ValueIndex error = pattern.with_scalar(value, Function::kAdd, 1);
  const Node* function = pattern.function_node(error, OperatorKind::kUnary, Function::kErf);
  if (function == nullptr) return kNoValue;
  const ValueIndex scaled = function->inputs[0];
  if (const Node* quotient = pattern.function_node(scaled, OperatorKind::kBinary, Function::kDiv)) {
    return pattern.is_scalar(quotient->inputs[1], std::numbers::sqrt2) ? quotient->inputs[0] : kNoValue;
  }
  return pattern.with_scalar(scaled, Function::kMul, 1 / std::numbers::sqrt2);
}

// value = 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ^ 3)): x
ValueIndex tangent_gate(const Pattern& pattern, ValueIndex value) {
  const Node* function =
      pattern.function_node(pattern.with_scalar(value, Function::kAdd, 1), OperatorKind::kUnary, Function::kTanh);
  if (function == nullptr) return kNoValue;
  const ValueIndex inner = pattern.with_scalar(function->inputs[0], Function::kMul, 0.7978845608);
  const Node* sum = pattern.function_node(inner, OperatorKind::kBinary, Function::kAdd);
  if (sum == nullptr) return kNoValue;
  const Node* cube = pattern.function_node(pattern.with_scalar(sum->inputs[1], Function::kMul, 0.044715),
                                           OperatorKind::kBinary, Function::kPow);
  if (cube == nullptr || !pattern.is_scalar(cube->inputs[1], 3) || cube->inputs[0] != sum->inputs[0]) return kNoValue;
  return sum->inputs[0];
}

// product = gate * rest, where gate is one of the above of x, and rest the x of it or half of it.
struct Gated {
  Function function;
  ValueIndex x;
  bool halved;
};

std::optional<Gated> match_gate(const Pattern& pattern, const Node& product) {
  for (ValueIndex gate : product.inputs) {
    const ValueIndex rest = other_operand(product, gate);
    for (const Function function : {Function::kGelu, Function::kGeluTanh}) {
      const bool exact = function == Function::kGelu;
      const ValueIndex x = exact ? error_gate(pattern, gate) : tangent_gate(pattern, gate);
      if (x == kNoValue) continue;
      if (rest == x) return Gated{function, x, false};
      if (pattern.with_scalar(rest, Function::kMul, 0.5) == x) return Gated{function, x, true};
    }
  }
  return std::nullopt;
}

struct Activation {
  Function function;
  ValueIndex x;
};

// node = x * 0.5 * gate(x), in any order.
std::optional<Activation> match_gelu(const Pattern& pattern, const GraphEditor& editor, const Node& node) {
  if (const auto gated = match_gate(pattern, node); gated && gated->halved) {
    return Activation{gated->function, gated->x};
  }
  for (ValueIndex operand : node.inputs) {
    const NodeIndex before = editor.producer(operand);
    if (before == kNoNode || !pattern.is_function(editor.node(before), OperatorKind::kBinary, Function::kMul)) continue;
    if (!pattern.is_scalar(other_operand(node, operand), 0.5)) continue;
    const auto gated = match_gate(pattern, editor.node(before));
    if (gated && !gated->halved) return Activation{gated->function, gated->x};
  }
  return std::nullopt;
}

// value = clip(x + 3, 0, 6): x
ValueIndex hard_gate(const Pattern& pattern, ValueIndex value) {
  const Node* clip = pattern.function_node(value, OperatorKind::kUnary, Function::kClip);
  if (clip == nullptr || clip->attributes.real("alpha") != 0 || clip->attributes.real("beta") != 6) return kNoValue;
  return pattern.with_scalar(clip->inputs[0], Function::kAdd, 3);
}

// node = x * hard_sigmoid(x)
std::optional<Activation> match_hard_swish(const Pattern& pattern, const Node& node) {
  for (ValueIndex operand : node.inputs) {
    const Node* gate = pattern.function_node(operand, OperatorKind::kUnary, Function::kHardSigmoid);
    if (gate == nullptr || gate->inputs[0] != other_operand(node, operand)) continue;
    const double alpha = gate->attributes.real("alpha") * 6;
    if (alpha > 0.9999 && alpha < 1.0001 && gate->attributes.real("beta") == 0.5) {
      return Activation{Function::kHardSwish, gate->inputs[0]};
    }
  }
  return std::nullopt;
}

// node = x * sigmoid(x)
std::optional<Activation> match_silu(const Pattern& pattern, const Node& node) {
  for (ValueIndex operand : node.inputs) {
    const Node* gate = pattern.function_node(operand, OperatorKind::kUnary, Function::kSigmoid);
    if (gate != nullptr && gate->inputs[0] == other_operand(node, operand))
      return Activation{Function::kSilu, gate->inputs[0]};
  }
  return std::nullopt;
}

// node = x * clip(x + 3, 0, 6) / 6
std::optional<Activation> match_divided_hard_swish(const Pattern& pattern, const Node& node) {
  if (!pattern.is_scalar(node.inputs[1], 6)) return std::nullopt;
  const Node* product = pattern.function_node(node.inputs[0], OperatorKind::kBinary, Function::kMul);
  if (product == nullptr) return std::nullopt;
  for (ValueIndex operand : product->inputs) {
    const ValueIndex x = hard_gate(pattern, operand);
    if (x != kNoValue && x == other_operand(*product, operand)) return Activation{Function::kHardSwish, x};
  }
  return std::nullopt;
}

std::optional<Activation> match(const Pattern& pattern, const GraphEditor& editor, const Node& node) {
  if (pattern.is_function(node, OperatorKind::kBinary, Function::kDiv)) return match_divided_hard_swish(pattern, node);
  if (!pattern.is_function(node, OperatorKind::kBinary, Function::kMul)) return std::nullopt;
  if (const auto gelu = match_gelu(pattern, editor, node)) return gelu;
  if (const auto silu = match_silu(pattern, node)) return silu;
  return match_hard_swish(pattern, node);
}

}  // namespace

void fuse_activations(GraphEditor& editor) {
  const Pattern pattern(editor);
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i) || editor.node(i).kind != OperatorKind::kBinary) continue;
    const auto found = match(pattern, editor, editor.node(i));
    if (!found || editor.value(found->x).type != DataType::kFloat32) continue;
    Node fused = editor.node(i);
    fused.kind = OperatorKind::kUnary;
    fused.inputs = {found->x};
    fused.attributes = {};
    fused.attributes.set("function", found->function);
    editor.replace(i, std::move(fused));
  }
}

}  // namespace foliot
