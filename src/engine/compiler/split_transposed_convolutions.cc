#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/compiler/passes.h"

namespace foliot {
namespace {

class Splitter {
 public:
  Splitter(Graph& graph, ConstantPool& pool) : graph_(graph), pool_(pool) {}

  void run() {
    count_uses();
    std::vector<Node> nodes = std::exchange(graph_.nodes, {});
    taken_.assign(nodes.size(), false);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (taken_[i]) continue;
      if (windows_are_apart(nodes[i]))
        split(nodes, i);
      else
        graph_.nodes.push_back(std::move(nodes[i]));
    }
  }

 private:
  void count_uses() {
    uses_.assign(graph_.values.size(), 0);
    for (const Node& node : graph_.nodes)
      for (const ValueIndex input : node.inputs)
        if (input != kNoValue) ++uses_[input];
    for (const ValueIndex output : graph_.outputs) ++uses_[output];
  }

  bool is_constant(ValueIndex value) const {
    return graph_.values[value].is_constant() && graph_.values[value].type == DataType::kFloat32;
  }

  bool windows_are_apart(const Node& node) const {
    if (node.kind != OperatorKind::kConvolutionTranspose || !is_constant(node.inputs[1])) return false;
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue && !is_constant(node.inputs[2])) return false;
    const Shape& source = graph_.values[node.inputs[0]].shape;
    const Shape& weights = graph_.values[node.inputs[1]].shape;
    const Shape& result = graph_.values[node.outputs[0]].shape;
    return result.size() == 4 && node.attributes.integer("groups") == 1 &&
           node.attributes.integers("strides") == Shape{weights[2], weights[3]} &&
           node.attributes.integers("dilations") == Shape{1, 1} &&
           node.attributes.integers("pads") == Shape{0, 0, 0, 0} && result[2] == source[2] * weights[2] &&
           result[3] == source[3] * weights[3];
  }

  ValueIndex add_value(std::string name, Shape shape) {
    graph_.values.push_back(
        {.name = std::move(name), .type = DataType::kFloat32, .shape = std::move(shape), .constant = nullptr});
    return static_cast<ValueIndex>(graph_.values.size() - 1);
  }

  template <typename Make>
  ValueIndex add_derived(ValueIndex from, const std::string& how, const Make& make) {
    const Value value = graph_.values[from];
    const Constant constant{value.type, value.shape, value.constant};
    const Constant made = pool_.derive(constant, how, [&] { return make(constant); });
    const ValueIndex added = add_value(value.name, made.shape);
    graph_.values[added].constant = made.bytes;
    return added;
  }

  // [C,M,rows,columns] -> [rows*columns*M,C,1,1].
  ValueIndex weights_by_entry(ValueIndex weights) {
    const Shape shape = graph_.values[weights].shape;
    const int64_t entries = shape[2] * shape[3];
    return add_derived(weights, "by entry of " + to_string(shape), [&](const Constant& constant) {
      const std::span<const float> from = floats(constant);
      std::vector<float> to(from.size());
      size_t at = 0;
      for (int64_t entry = 0; entry < entries; ++entry)
        for (int64_t m = 0; m < shape[1]; ++m)
          for (int64_t c = 0; c < shape[0]; ++c)
            to[at++] = from[static_cast<size_t>((c * shape[1] + m) * entries + entry)];
      return make_constant({entries * shape[1], shape[0], 1, 1}, to);
    });
  }

  ValueIndex repeated(ValueIndex bias, int64_t entries) {
    return add_derived(bias, "repeated " + std::to_string(entries), [&](const Constant& constant) {
      const std::span<const float> from = floats(constant);
      std::vector<float> to;
      for (int64_t entry = 0; entry < entries; ++entry) to.insert(to.end(), from.begin(), from.end());
      return make_constant({static_cast<int64_t>(to.size())}, to);
    });
  }

  // The unary function that alone reads `value`; nodes.size(): none.
  size_t sole_function(const std::vector<Node>& nodes, size_t after, ValueIndex value) const {
    if (uses_[value] != 1) return nodes.size();
    for (size_t i = after; i < nodes.size(); ++i) {
      const Node& node = nodes[i];
      if (node.kind != OperatorKind::kUnary || node.inputs[0] != value) continue;
      return graph_.values[node.outputs[0]].type == DataType::kFloat32 ? i : nodes.size();
    }
    return nodes.size();
  }

  void split(std::vector<Node>& nodes, size_t index) {
    Node node = std::move(nodes[index]);
    const Shape weights = graph_.values[node.inputs[1]].shape;
    const int64_t rows = weights[2], columns = weights[3];
    Shape deep = graph_.values[node.inputs[0]].shape;
    deep[1] = rows * columns * weights[1];
    ValueIndex result = node.outputs[0];

    Node convolution{.kind = OperatorKind::kConvolution,
                     .name = node.name,
                     .inputs = {node.inputs[0], weights_by_entry(node.inputs[1])},
                     .outputs = {add_value(node.name, deep)},
                     .attributes = {},
                     .post_operations = {}};
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue)
      convolution.inputs.push_back(repeated(node.inputs[2], rows * columns));
    convolution.attributes.set("strides", Shape{1, 1});
    convolution.attributes.set("dilations", Shape{1, 1});
    convolution.attributes.set("pads", Shape{0, 0, 0, 0});
    convolution.attributes.set("groups", int64_t{1});
    ValueIndex last = convolution.outputs[0];
    graph_.nodes.push_back(std::move(convolution));

    for (size_t i = sole_function(nodes, index + 1, result); i < nodes.size();
         i = sole_function(nodes, i + 1, result)) {
      Node function = std::move(nodes[i]);
      taken_[i] = true;
      result = function.outputs[0];
      function.inputs = {last};
      last = add_value(function.name, deep);
      function.outputs = {last};
      graph_.nodes.push_back(std::move(function));
    }

    Node rearrangement{.kind = OperatorKind::kDepthToSpace,
                       .name = std::move(node.name),
                       .inputs = {last},
                       .outputs = {result},
                       .attributes = {},
                       .post_operations = {}};
    rearrangement.attributes.set("rows", rows);
    rearrangement.attributes.set("columns", columns);
    graph_.nodes.push_back(std::move(rearrangement));
  }

  Graph& graph_;
  ConstantPool& pool_;
  std::vector<uint32_t> uses_;  // of the values that the graph had
  std::vector<bool> taken_;     // by node that the graph had
};

}  // namespace

void split_transposed_convolutions(Graph& graph, ConstantPool& pool) { Splitter(graph, pool).run(); }

}  // namespace foliot
