#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/compiler/passes.h"
#include "engine/compiler/quantized_chain.h"
#include "engine/compiler/quantized_product.h"

namespace foliot {
namespace {

using Meaning = QuantizedChain::Meaning;

// Scale and zero point of a kQuantize or of a kDequantize of no constant.
struct Scheme {
  double scale = 1;
  int64_t zero_point = 0;
  bool operator==(const Scheme&) const = default;
};

Scheme scheme_of(const Node& node) {
  return {.scale = node.attributes.real("scale"), .zero_point = node.attributes.integer("zero_point")};
}

bool is_quantize(const Node& node) { return node.kind == OperatorKind::kQuantize; }

// Signed codes become unsigned ones of the same meaning: kernels multiply unsigned
// by signed.
void make_unsigned(GraphEditor& editor) {
  constexpr int64_t kShift = 128;
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i) || !is_quantize(editor.node(i))) continue;
    const ValueIndex codes = editor.node(i).outputs[0];
    if (editor.value(codes).type != DataType::kInt8 || editor.is_output(codes)) continue;
    std::vector<NodeIndex> nodes = editor.users(codes);
    const bool only_dequantized =
        std::ranges::all_of(nodes, [&](NodeIndex user) { return editor.node(user).kind == OperatorKind::kDequantize; });
    if (!only_dequantized) continue;
    nodes.push_back(i);
    for (NodeIndex index : nodes) {
      Node node = editor.node(index);
      node.attributes.set("zero_point", node.attributes.integer("zero_point") + kShift);
      editor.replace(index, std::move(node));
    }
    editor.set_type(codes, DataType::kUint8);
  }
}

// Whether a node picks from what it is given, so that it may as well pick codes.
bool picks(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kMaxPool:
    case OperatorKind::kConcat:
    case OperatorKind::kReshape:
    case OperatorKind::kTranspose:
    case OperatorKind::kSlice:
    case OperatorKind::kExpand: return true;
    default: return false;
  }
}

class Fuser {
 public:
  explicit Fuser(GraphEditor& editor) : editor_(editor) {}

  void run() {
    for (NodeIndex i = 0; i < editor_.node_count(); ++i) {
      if (!editor_.is_removed(i) && picks(editor_.node(i).kind)) pick_codes(i);
    }
    // From the end, so that an addition is seen before what is added.
    for (NodeIndex i = editor_.node_count(); i-- > 0;) {
      if (!editor_.is_removed(i) && is_quantize(editor_.node(i))) fuse_before(i);
    }
    for (NodeIndex i = 0; i < editor_.node_count(); ++i) {
      if (!editor_.is_removed(i)) fuse_into_real(i);
    }
  }

 private:
  // The node that makes `value` if only one other reads it; kNoNode: none.
  NodeIndex private_producer(ValueIndex value) const {
    return editor_.sole_user(value) == kNoNode ? kNoNode : editor_.producer(value);
  }

  // quantize(pick(dequantize(codes)..)) is pick(codes..) where all have one scheme;
  // codes of another are translated if no other node needs them dequantised.
  void pick_codes(NodeIndex index) {
    Node pick = editor_.node(index);
    const NodeIndex user = editor_.sole_user(pick.outputs[0]);
    if (user == kNoNode || !is_quantize(editor_.node(user)) || !pick.post_operations.empty()) return;
    const Scheme scheme = scheme_of(editor_.node(user));
    if (editor_.value(editor_.node(user).outputs[0]).type != DataType::kUint8) return;
    for (ValueIndex input : pick.inputs) {
      const auto codes = read_quantized(editor_, input);
      if (!codes) return;
      if (Scheme{codes->scale, codes->zero_point} != scheme && private_producer(input) == kNoNode) return;
    }
    for (ValueIndex& input : pick.inputs) input = codes_in(input, scheme);
    pick.outputs = editor_.node(user).outputs;
    editor_.remove(index);
    editor_.replace(user, std::move(pick));
  }

  ValueIndex codes_in(ValueIndex value, Scheme scheme) {
    const Quantized codes = *read_quantized(editor_, value);
    if (Scheme{codes.scale, codes.zero_point} == scheme) return codes.codes;
    const NodeIndex producer = editor_.producer(value);
    const std::string name = editor_.node(producer).name;
    Node translation = chain_of(codes, scheme.scale, name).finish(scheme.scale, scheme.zero_point);
    translation.outputs = {value};
    editor_.set_type(value, DataType::kUint8);
    editor_.replace(producer, std::move(translation));
    return value;
  }

  // A chain that begins with codes alone, t having this scale.
  QuantizedChain chain_of(const Quantized& codes, double scale, const std::string& name) {
    const auto value = static_cast<float>(codes.scale / scale);
    Node node{.kind = OperatorKind::kBinary,
              .name = name,
              .inputs = {codes.codes, editor_.add_constant(name, make_constant({1}, std::span(&value, 1)))},
              .outputs = {},
              .attributes = {},
              .post_operations = {}};
    node.attributes.set("function", Function::kMul);
    const double offset = QuantizedChain::of_codes(codes.scale, codes.zero_point).offset;
    return QuantizedChain(editor_, std::move(node), {.scale = scale, .offset = offset});
  }

  // The convolution or product itself, its result meaning `meaning`.
  QuantizedChain chain_of(const QuantizedProduct& product, Meaning meaning, NodeIndex room_for_pads) {
    Node node = editor_.node(product.node);
    const auto channels = static_cast<int64_t>(product.scales.size());
    std::vector<float> factor, bias;
    for (size_t c = 0; c < product.scales.size(); ++c) {
      factor.push_back(static_cast<float>(product.scales[c] / meaning.scale));
      bias.push_back(static_cast<float>(product.bias[c] - meaning.offset / product.scales[c]));
    }
    Shape shape{channels};
    if (node.kind == OperatorKind::kConvolution) shape.resize(editor_.value(node.outputs[0]).shape.size() - 1, 1);
    const bool biased = std::ranges::any_of(bias, [](float b) { return b != 0; });
    node.inputs = {product.padding == 0 ? product.codes : padded(product, node, room_for_pads),
                   editor_.add_constant(node.name, product.weights),
                   biased ? editor_.add_constant(node.name, make_constant({channels}, bias)) : kNoValue};
    node.inputs.push_back(editor_.add_constant(node.name, make_constant(shape, factor)));
    node.post_operations = {
        {.kind = PostOperation::Kind::kBinary, .function = Function::kMul, .alpha = 0, .beta = 0, .input = 3}};
    if (node.kind == OperatorKind::kMatMul) node.attributes.set("alpha", 1.0);
    return QuantizedChain(editor_, std::move(node), meaning);
  }

  // The codes with what stands for zero around them; `node` pads no more.
  ValueIndex padded(const QuantizedProduct& product, Node& node, NodeIndex room) {
    const std::vector<int64_t> pads = node.attributes.integers("pads");
    const size_t spatial = pads.size() / 2;
    std::vector<int64_t> all(2 * (spatial + 2), 0);
    Value value = editor_.value(product.codes);
    for (size_t d = 0; d < spatial; ++d) {
      all[2 + d] = pads[d];
      all[spatial + 4 + d] = pads[spatial + d];
      value.shape[2 + d] += pads[d] + pads[spatial + d];
    }
    node.attributes.set("pads", std::vector<int64_t>(pads.size(), 0));
    Node pad{.kind = OperatorKind::kPad,
             .name = node.name,
             .inputs = {product.codes},
             .outputs = {editor_.add_value(std::move(value))},
             .attributes = {},
             .post_operations = {}};
    pad.attributes.set("pads", std::move(all));
    pad.attributes.set("mode", std::string("constant"));
    pad.attributes.set("value", static_cast<double>(product.padding));
    const ValueIndex result = pad.outputs[0];
    editor_.replace(room, std::move(pad));
    return result;
  }

  bool is_whole(ValueIndex operand, const Node& node) const {
    return editor_.value(operand).shape == editor_.value(node.outputs[0]).shape;
  }

  // Applies the node's own post-operations.
  void apply(const Node& node, QuantizedChain& chain) const {
    for (const PostOperation& operation : node.post_operations) {
      if (operation.kind == PostOperation::Kind::kActivation)
        chain.activate(operation);
      else
        combine(operation.function, node.inputs[operation.input], node, chain);
    }
  }

  void combine(Function function, ValueIndex operand, const Node& node, QuantizedChain& chain) const {
    const auto codes = read_quantized(editor_, operand);
    if (function == Function::kAdd && codes && is_whole(operand, node))
      chain.add(*codes);
    else
      chain.combine(function, operand);
  }

  // The best meaning to begin with: that of what comes first.
  Meaning first_meaning(const Node& node, std::optional<Scheme> last) const {
    for (const PostOperation& operation : node.post_operations) {
      if (operation.kind == PostOperation::Kind::kActivation) {
        if (operation.function != Function::kRelu && operation.function != Function::kClip) return {};
        continue;
      }
      const ValueIndex operand = node.inputs[operation.input];
      const auto codes = read_quantized(editor_, operand);
      if (operation.function != Function::kAdd || !codes || !is_whole(operand, node)) return {};
      return {.scale = codes->scale, .offset = 0};
    }
    return last ? QuantizedChain::of_codes(last->scale, last->zero_point) : Meaning{};
  }

  // Lets what comes before a kQuantize make codes itself.
  void fuse_before(NodeIndex quantize) {
    const Node last = editor_.node(quantize);
    const ValueIndex codes = last.outputs[0];
    if (editor_.value(codes).type != DataType::kUint8) return;
    if (const auto same = read_quantized(editor_, last.inputs[0]); same) return;
    const NodeIndex before = private_producer(last.inputs[0]);
    if (before == kNoNode) return;
    const Scheme scheme = scheme_of(last);
    auto chain = chain_before(before, scheme);
    if (!chain) return;
    Node fused = std::move(*chain).finish(scheme.scale, scheme.zero_point);
    fused.outputs = {codes};
    if (editor_.node(before).outputs[0] == last.inputs[0]) editor_.remove(before);
    editor_.replace(quantize, std::move(fused));
  }

  // What node `index` does, as a chain.
  std::optional<QuantizedChain> chain_before(NodeIndex index, Scheme scheme) {
    const Node node = editor_.node(index);
    if (const auto product = read_quantized_product(editor_, index)) {
      if (is_blocked(node)) return std::nullopt;
      QuantizedChain chain = chain_of(*product, first_meaning(node, scheme), index);
      apply(node, chain);
      return chain;
    }
    if (node.kind == OperatorKind::kBinary) return binary_chain(node);
    if (node.kind == OperatorKind::kUnary && node.post_operations.empty()) return unary_chain(node);
    return std::nullopt;
  }

  // Whether the operands of post-operations are such that no chain takes them.
  bool is_blocked(const Node& node) const {
    return std::ranges::any_of(node.post_operations, [&](const PostOperation& operation) {
      return operation.kind == PostOperation::Kind::kBinary &&
             editor_.value(node.inputs[operation.input]).type != DataType::kFloat32;
    });
  }

  std::optional<QuantizedChain> unary_chain(const Node& node) {
    const auto x = read_quantized(editor_, node.inputs[0]);
    if (!x) return std::nullopt;
    QuantizedChain chain = chain_of(*x, 1, node.name);
    PostOperation activation{.kind = PostOperation::Kind::kActivation,
                             .function = node.attributes.function(),
                             .alpha = 0,
                             .beta = 0,
                             .input = 0};
    if (node.attributes.has("alpha")) activation.alpha = node.attributes.real("alpha");
    if (node.attributes.has("beta")) activation.beta = node.attributes.real("beta");
    chain.activate(activation);
    return chain;
  }

  std::optional<QuantizedChain> binary_chain(const Node& node) {
    static constexpr Function kFunctions[]{Function::kAdd, Function::kSub, Function::kMul,
                                           Function::kDiv, Function::kMax, Function::kMin};
    const Function function = node.attributes.function();
    if (std::ranges::find(kFunctions, function) == std::end(kFunctions) || is_blocked(node)) return std::nullopt;
    const bool commutes = function != Function::kSub && function != Function::kDiv;
    for (const size_t first : {size_t{1}, size_t{0}}) {
      if (function != Function::kAdd || !is_whole(node.inputs[first], node)) continue;
      if (auto chain = sum_chain(node, node.inputs[first], node.inputs[1 - first])) return chain;
    }
    for (const size_t first : {size_t{0}, size_t{1}}) {
      if (first == 1 && !commutes) break;
      const auto x = read_quantized(editor_, node.inputs[first]);
      const ValueIndex other = node.inputs[1 - first];
      if (!x || !is_whole(node.inputs[first], node)) continue;
      const auto other_codes = read_quantized(editor_, other);
      const bool adds_codes = function == Function::kAdd && other_codes && is_whole(other, node);
      QuantizedChain chain = chain_of(*x, adds_codes ? other_codes->scale : 1, node.name);
      combine(function, other, node, chain);
      apply(node, chain);
      return chain;
    }
    return std::nullopt;
  }

  // product -> quantize -> dequantize -> add: the product adds, having rounded as if
  // it had quantised.
  std::optional<QuantizedChain> sum_chain(const Node& sum, ValueIndex addend, ValueIndex other) {
    const NodeIndex dequantize = private_producer(addend);
    if (dequantize == kNoNode || !read_quantized(editor_, addend)) return std::nullopt;
    const NodeIndex quantize = private_producer(editor_.node(dequantize).inputs[0]);
    if (quantize == kNoNode || !is_quantize(editor_.node(quantize))) return std::nullopt;
    const Scheme scheme = scheme_of(editor_.node(quantize));
    const NodeIndex index = private_producer(editor_.node(quantize).inputs[0]);
    if (index == kNoNode) return std::nullopt;
    const auto product = read_quantized_product(editor_, index);
    const Node node = editor_.node(index);
    if (!product || is_blocked(node)) return std::nullopt;
    QuantizedChain chain = chain_of(*product, first_meaning(node, scheme), index);
    apply(node, chain);
    chain.round(scheme.scale, scheme.zero_point);
    combine(Function::kAdd, other, sum, chain);
    apply(sum, chain);
    editor_.remove(dequantize);
    editor_.remove(quantize);
    if (editor_.node(index).outputs == node.outputs) editor_.remove(index);
    return chain;
  }

  // A product of codes whose result is not quantised.
  void fuse_into_real(NodeIndex index) {
    const auto product = read_quantized_product(editor_, index);
    const Node node = editor_.node(index);
    if (!product || is_blocked(node)) return;
    const NodeIndex room = product->padding == 0 ? kNoNode : private_producer(node.inputs[0]);
    if (product->padding != 0 && room == kNoNode) return;
    QuantizedChain chain = chain_of(*product, first_meaning(node, std::nullopt), room);
    apply(node, chain);
    Node fused = std::move(chain).finish();
    fused.outputs = node.outputs;
    editor_.replace(index, std::move(fused));
  }

  GraphEditor& editor_;
};

}  // namespace

void fuse_quantized(GraphEditor& editor) {
  make_unsigned(editor);
  Fuser(editor).run();
}

}  // namespace foliot
