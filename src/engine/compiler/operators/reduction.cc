// Reductions over dimensions.
#include <array>
#include <numeric>
#include <utility>

#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

constexpr std::array<std::pair<std::string_view, Function>, 10> kFunctions{{{"ReduceMean", Function::kMean},
                                                                            {"ReduceSum", Function::kSum},
                                                                            {"ReduceLogSum", Function::kSum},
                                                                            {"ReduceMax", Function::kMax},
                                                                            {"ReduceMin", Function::kMin},
                                                                            {"ReduceProd", Function::kProd},
                                                                            {"ReduceL1", Function::kL1},
                                                                            {"ReduceL2", Function::kL2},
                                                                            {"ReduceSumSquare", Function::kSumSquare},
                                                                            {"ReduceLogSumExp", Function::kLogSumExp}}};

Function function_of(std::string_view type) {
  for (const auto& [name, function] : kFunctions) {
    if (name == type) return function;
  }
  FOLIOT_CHECK(false);
}

// An attribute in older opsets, an operand in newer ones; all if there are none.
Result<std::vector<int64_t>> read_reduced_axes(NodeTranslation& node) {
  std::vector<int64_t> given = node.integers("axes");
  if (node.has_input(1)) {
    FOLIOT_ASSIGN_OR_RETURN(given, node.integers_of(1, "'axes'"));
  }
  if (given.empty() && node.integer("noop_with_empty_axes", 0) == 0) {
    given.resize(static_cast<size_t>(node.rank(0)));
    std::iota(given.begin(), given.end(), 0);
  }
  return node.axes(given, node.rank(0));
}

Status reduce(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> axes, read_reduced_axes(node));
  if (axes.empty()) {
    node.set_output(0, node.input(0));
    return {};
  }
  Attributes attributes;
  attributes.set("function", function_of(node.type()));
  attributes.set("axes", std::move(axes));
  attributes.set("keep_dims", int64_t{node.integer("keepdims", 1) != 0});
  FOLIOT_ASSIGN_OR_RETURN(ValueIndex result,
                          builder.emit(OperatorKind::kReduce, {node.input(0)}, std::move(attributes)));
  if (node.type() == "ReduceLogSum") {
    FOLIOT_ASSIGN_OR_RETURN(result, builder.unary(Function::kLog, result));
  }
  node.set_output(0, result);
  return {};
}

Status position_of_extreme(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("keep_dims", int64_t{node.integer("keepdims", 1) != 0});
  attributes.set("select_last", int64_t{node.integer("select_last_index", 0) != 0});
  attributes.set("largest", int64_t{node.type() == "ArgMax"});
  return node.finish(node.builder().emit(OperatorKind::kArgReduce, {node.input(0)}, std::move(attributes)));
}

constexpr OnnxOperator kReductionOperators[] = {
    {"ReduceMean", 1, 2, reduce},
    {"ReduceSum", 1, 2, reduce},
    {"ReduceLogSum", 1, 2, reduce},
    {"ReduceMax", 1, 2, reduce},
    {"ReduceMin", 1, 2, reduce},
    {"ReduceProd", 1, 2, reduce},
    {"ReduceL1", 1, 2, reduce},
    {"ReduceL2", 1, 2, reduce},
    {"ReduceSumSquare", 1, 2, reduce},
    {"ReduceLogSumExp", 1, 2, reduce},
    {"ArgMax", 1, 1, position_of_extreme},
    {"ArgMin", 1, 1, position_of_extreme},
};

}  // namespace

std::span<const OnnxOperator> reduction_operators() { return kReductionOperators; }

}  // namespace foliot
