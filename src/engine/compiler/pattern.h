// Pattern: queries on a graph by which passes find a known sequence of operators.
#ifndef FOLIOT_ENGINE_COMPILER_PATTERN_H_
#define FOLIOT_ENGINE_COMPILER_PATTERN_H_

#include <optional>
#include <string_view>

#include "engine/compiler/graph_editor.h"

namespace foliot {

class Pattern {
 public:
  // `editor` must outlive the pattern.
  explicit Pattern(const GraphEditor& editor) : editor_(editor) {}

  const Value& value(ValueIndex index) const { return editor_.value(index); }
  // Whether it is this function and nothing has been fused into it.
  bool is_function(const Node& node, OperatorKind kind, Function function) const;
  // The node that makes `value` if is_function(), else nullptr.
  const Node* function_node(ValueIndex value, OperatorKind kind, Function function) const;
  // The value of a constant with one element.
  std::optional<double> scalar(ValueIndex value) const;
  // Whether it is a constant with one element near `expected`.
  bool is_scalar(ValueIndex value, double expected) const;
  // The other operand of a commutative `function` of `value`'s producer whose
  // one operand is a scalar near `expected`; kNoValue if it is not that.
  ValueIndex with_scalar(ValueIndex value, Function function, double expected) const;

 private:
  const GraphEditor& editor_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_PATTERN_H_
