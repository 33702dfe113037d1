// GraphBuilder: makes a device's graph, operator by operator. Operators on
// constants alone are evaluated at once and leave no node behind, so that the
// shape arithmetic of exporters is gone when the graph is finished.
#ifndef FOLIOT_ENGINE_COMPILER_GRAPH_BUILDER_H_
#define FOLIOT_ENGINE_COMPILER_GRAPH_BUILDER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/compiler/value_type.h"
#include "engine/device/graph.h"
#include "foundation/base/status.h"

namespace foliot {

class GraphBuilder {
 public:
  // `pool` must outlive the builder.
  explicit GraphBuilder(ConstantPool& pool) : pool_(pool) {}

  // Of the nodes and values that are made from here on.
  void set_name(std::string name) { name_ = std::move(name); }

  ValueIndex add_input(std::string name, ValueType type);
  ValueIndex add_constant(Constant constant);
  ValueIndex add_scalar(DataType type, double value) { return add_constant(make_scalar(type, value)); }

  // Appends an operator (inputs may be kNoValue) and returns its result. `type`
  // is given for the kinds that infer() does not know, and only for those.
  // Operands of types that the kind does not compute in (compute_type()) are cast
  // before, and the result is cast back; operators that follow one another are
  // not rounded to the narrower type in between.
  Result<ValueIndex> emit(OperatorKind kind, std::vector<ValueIndex> inputs, Attributes attributes,
                          std::optional<ValueType> type = std::nullopt);

  // Short for what occurs all the time. Same shape: returns x itself.
  Result<ValueIndex> reshape(ValueIndex x, Shape shape);
  Result<ValueIndex> transpose(ValueIndex x, std::vector<int64_t> permutation);
  Result<ValueIndex> expand(ValueIndex x, Shape shape);
  Result<ValueIndex> cast(ValueIndex x, DataType type);
  Result<ValueIndex> unary(Function function, ValueIndex x, double alpha = 0, double beta = 0);
  Result<ValueIndex> binary(Function function, ValueIndex a, ValueIndex b);

  // Valid until the next value is added.
  const Value& value(ValueIndex index) const { return graph_.values[index]; }
  // REQUIRES: value(index) is a constant.
  Constant constant(ValueIndex index) const;

  Graph take() { return std::move(graph_); }

 private:
  Result<ValueIndex> emit_computed(OperatorKind kind, std::vector<ValueIndex> inputs, Attributes attributes,
                                   std::optional<ValueType> type);
  Result<ValueIndex> widened(ValueIndex x, DataType wide);
  ValueIndex add_value(ValueType type);
  std::optional<Constant> fold(OperatorKind kind, const std::vector<ValueIndex>& inputs, const Attributes& attributes,
                               const ValueType& type) const;

  ConstantPool& pool_;
  Graph graph_;
  std::string name_;
  std::map<ValueIndex, ValueIndex> wide_;  // of a result that was narrowed: as it was computed
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_GRAPH_BUILDER_H_
