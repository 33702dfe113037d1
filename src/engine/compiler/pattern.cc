#include "engine/compiler/pattern.h"

#include <cmath>

namespace foliot {

bool Pattern::is_function(const Node& node, OperatorKind kind, Function function) const {
  return node.kind == kind && node.post_operations.empty() && node.attributes.function() == function;
}

const Node* Pattern::function_node(ValueIndex value, OperatorKind kind, Function function) const {
  const NodeIndex index = editor_.producer(value);
  if (index == kNoNode || !is_function(editor_.node(index), kind, function)) return nullptr;
  return &editor_.node(index);
}

std::optional<double> Pattern::scalar(ValueIndex value) const {
  if (value == kNoValue || !editor_.value(value).is_constant()) return std::nullopt;
  if (element_count(editor_.value(value).shape) != 1) return std::nullopt;
  return to_doubles(editor_.constant(value))[0];
}

bool Pattern::is_scalar(ValueIndex value, double expected) const {
  const auto known = scalar(value);
  return known && std::fabs(*known - expected) <= 1e-5 * std::fabs(expected);
}

ValueIndex Pattern::with_scalar(ValueIndex value, Function function, double expected) const {
  const Node* node = function_node(value, OperatorKind::kBinary, function);
  if (node == nullptr) return kNoValue;
  if (is_scalar(node->inputs[1], expected)) return node->inputs[0];
  return is_scalar(node->inputs[0], expected) ? node->inputs[1] : kNoValue;
}

}  // namespace foliot
