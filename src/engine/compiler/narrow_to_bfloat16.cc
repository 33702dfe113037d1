#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/compiler/passes.h"

namespace foliot {
namespace {

constexpr auto kFloat = DataType::kFloat32;
constexpr auto kBrain = DataType::kBfloat16;

bool multiplies(OperatorKind kind) {
  return kind == OperatorKind::kConvolution || kind == OperatorKind::kConvolutionTranspose ||
         kind == OperatorKind::kMatMul;
}

// Functions that do not magnify the error of their operand.
bool is_tame(const Node& node) {
  static constexpr Function kUnary[]{Function::kRelu,     Function::kClip,        Function::kLeakyRelu,
                                     Function::kSigmoid,  Function::kTanh,        Function::kGelu,
                                     Function::kGeluTanh, Function::kHardSigmoid, Function::kHardSwish,
                                     Function::kElu,      Function::kNeg,         Function::kAbs};
  static constexpr Function kBinary[]{Function::kAdd, Function::kSub, Function::kMul, Function::kMax, Function::kMin};
  const Function function = node.attributes.function();
  if (node.kind == OperatorKind::kUnary) return std::ranges::find(kUnary, function) != std::end(kUnary);
  return std::ranges::find(kBinary, function) != std::end(kBinary);
}

// Whether the node can as well work on bfloat16 where its operand is that already.
bool may_follow(const Node& node) {
  switch (node.kind) {
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool:
    case OperatorKind::kConcat:
    case OperatorKind::kReshape:
    case OperatorKind::kTranspose:
    case OperatorKind::kSlice: return true;
    case OperatorKind::kUnary:
    case OperatorKind::kBinary: return is_tame(node);
    default: return false;
  }
}

class Narrower {
 public:
  Narrower(Graph& graph, ConstantPool& pool) : graph_(graph), pool_(pool) {}

  void run() {
    choose_nodes();
    rewrite();
  }

 private:
  bool is_float(ValueIndex value) const { return value != kNoValue && graph_.values[value].type == kFloat; }

  // Inputs that are read as bfloat16 if the node is narrow: operands of
  // post-operations and biases may be of either type.
  static size_t narrow_inputs(const Node& node) {
    return multiplies(node.kind) || node.kind == OperatorKind::kBinary ? 2 : node.inputs.size();
  }

  // Products are narrow, and followers between them: those that have a narrow
  // operand and a narrow user.
  void choose_nodes() {
    narrow_.assign(graph_.nodes.size(), false);
    std::vector<bool> made_narrow(graph_.values.size(), false), used_narrow(graph_.values.size(), false);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const bool floating =
          std::ranges::all_of(node.inputs, [&](ValueIndex input) { return input == kNoValue || is_float(input); });
      const bool followed =
          std::ranges::any_of(node.inputs, [&](ValueIndex input) { return input != kNoValue && made_narrow[input]; });
      narrow_[i] = floating && is_float(node.outputs[0]) && (multiplies(node.kind) || (may_follow(node) && followed));
      if (narrow_[i]) made_narrow[node.outputs[0]] = true;
    }
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!multiplies(node.kind) && !used_narrow[node.outputs[0]]) narrow_[i] = false;
      for (size_t k = 0; narrow_[i] && k < narrow_inputs(node); ++k) used_narrow[node.inputs[k]] = true;
    }
    becomes_narrow_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ValueIndex result = graph_.nodes[i].outputs[0];
      becomes_narrow_[result] = narrow_[i] && used_narrow[result];
    }
  }

  void rewrite() {
    std::vector<Node> nodes = std::exchange(graph_.nodes, {});
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        const ValueIndex input = node.inputs[k];
        if (input == kNoValue) continue;
        if (narrow_[i] && k < narrow_inputs(node))
          node.inputs[k] = as(kBrain, input);
        else if (!narrow_[i])
          node.inputs[k] = as_it_was(input);
      }
      if (becomes_narrow_[node.outputs[0]]) {
        graph_.values[node.outputs[0]].type = kBrain;
        was_float_.push_back(node.outputs[0]);
      }
      graph_.nodes.push_back(std::move(node));
    }
    for (ValueIndex& output : graph_.outputs) output = as_it_was(output);
  }

  // In the type that it had before this pass.
  ValueIndex as_it_was(ValueIndex value) {
    return std::ranges::find(was_float_, value) == was_float_.end() ? value : as(kFloat, value);
  }

  ValueIndex as(DataType type, ValueIndex value) {
    if (graph_.values[value].type == type) return value;
    const auto [found, is_new] = copies_.emplace(value, kNoValue);
    if (!is_new) return found->second;
    Value copy = graph_.values[value];
    copy.type = type;
    if (copy.is_constant()) {
      copy.constant =
          pool_.intern(from_doubles(type, copy.shape, to_doubles({kFloat, copy.shape, copy.constant}))).bytes;
    }
    graph_.values.push_back(copy);
    found->second = static_cast<ValueIndex>(graph_.values.size() - 1);
    if (!copy.is_constant()) {
      graph_.nodes.push_back({.kind = OperatorKind::kCast,
                              .name = copy.name,
                              .inputs = {value},
                              .outputs = {found->second},
                              .attributes = {},
                              .post_operations = {}});
    }
    return found->second;
  }

  Graph& graph_;
  ConstantPool& pool_;
  std::vector<bool> narrow_;          // by node
  std::vector<bool> becomes_narrow_;  // by value
  std::vector<ValueIndex> was_float_;
  std::map<ValueIndex, ValueIndex> copies_;  // of the other type
};

}  // namespace

void narrow_to_bfloat16(Graph& graph, ConstantPool& pool) { Narrower(graph, pool).run(); }

}  // namespace foliot
