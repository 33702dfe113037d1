#include <optional>
#include <utility>
#include <vector>

#include "engine/compiler/passes.h"

namespace foliot {
namespace {

// Fewer queries do not fill the rows that a kernel takes at a time.
constexpr int64_t kQueriesMin = 16;
// Fewer scores of a head stay in the cache between the operators, whose products are as fast.
constexpr int64_t kScoresMin = int64_t{128} * 128;

struct Attention {
  ValueIndex query, key, value;
  ValueIndex mask = kNoValue;
  double alpha;
  bool transpose_k;
};

bool is_plain_product(const Node& node) {
  return node.post_operations.empty() && (node.inputs.size() < 3 || node.inputs[2] == kNoValue);
}

// The operand that is added to the product behind it, if that is all that is done to it.
std::optional<ValueIndex> added_operand(const Node& product) {
  const bool has_bias = product.inputs.size() > 2 && product.inputs[2] != kNoValue;
  if (has_bias || product.post_operations.size() != 1) return std::nullopt;
  const PostOperation& post = product.post_operations[0];
  if (post.kind != PostOperation::Kind::kBinary || post.function != Function::kAdd) return std::nullopt;
  return product.inputs[post.input];
}

// scores = alpha * query x key + mask, as a product or an addition behind one.
std::optional<Attention> match_scores(const GraphEditor& editor, ValueIndex scores) {
  ValueIndex mask = kNoValue;
  NodeIndex product = editor.sole_producer(scores, OperatorKind::kMatMul);
  const NodeIndex sum = editor.sole_producer(scores, OperatorKind::kBinary);
  if (sum != kNoNode) {
    const Node& addition = editor.node(sum);
    if (addition.attributes.function() != Function::kAdd || !addition.post_operations.empty()) return std::nullopt;
    for (size_t i = 0; i < 2 && product == kNoNode; ++i) {
      product = editor.sole_producer(addition.inputs[i], OperatorKind::kMatMul);
      mask = addition.inputs[1 - i];
    }
    if (product == kNoNode || !is_plain_product(editor.node(product))) return std::nullopt;
    if (editor.value(editor.node(product).outputs[0]).shape != editor.value(scores).shape) return std::nullopt;
  }
  if (product == kNoNode) return std::nullopt;
  const Node& node = editor.node(product);
  if (!is_plain_product(node)) {
    const auto added = added_operand(node);
    if (!added) return std::nullopt;
    mask = *added;
  }
  if (node.attributes.integer("transpose_a") != 0) return std::nullopt;
  return Attention{.query = node.inputs[0],
                   .key = node.inputs[1],
                   .value = kNoValue,
                   .mask = mask,
                   .alpha = node.attributes.real("alpha"),
                   .transpose_k = node.attributes.integer("transpose_b") == 0};
}

// node = softmax(scores) x value
std::optional<Attention> match(const GraphEditor& editor, const Node& node) {
  if (!is_plain_product(node) || node.attributes.real("alpha") != 1 || node.attributes.integer("transpose_a") != 0 ||
      node.attributes.integer("transpose_b") != 0) {
    return std::nullopt;
  }
  const NodeIndex before = editor.sole_producer(node.inputs[0], OperatorKind::kSoftmax);
  if (before == kNoNode) return std::nullopt;
  const Node& softmax = editor.node(before);
  const Shape& scores = editor.value(node.inputs[0]).shape;
  const auto rank = static_cast<int64_t>(scores.size());
  if (softmax.attributes.integer("log") != 0 || softmax.attributes.integer("axis") != rank - 1) return std::nullopt;
  auto found = match_scores(editor, softmax.inputs[0]);
  const int64_t queries = scores[scores.size() - 2];
  if (!found || queries < kQueriesMin || queries * scores.back() < kScoresMin) return std::nullopt;
  found->value = node.inputs[1];
  for (const ValueIndex operand : {found->query, found->key, found->value, found->mask})
    if (operand != kNoValue && editor.value(operand).type != DataType::kFloat32) return std::nullopt;
  if (found->mask == kNoValue) return found;
  const Shape& mask = editor.value(found->mask).shape;
  return !mask.empty() && mask.back() == scores.back() ? found : std::nullopt;
}

}  // namespace

void fuse_attention(GraphEditor& editor) {
  for (NodeIndex i = 0; i < editor.node_count(); ++i) {
    if (editor.is_removed(i) || editor.node(i).kind != OperatorKind::kMatMul) continue;
    const auto found = match(editor, editor.node(i));
    if (!found) continue;
    Node fused = editor.node(i);
    fused.kind = OperatorKind::kAttention;
    fused.inputs = {found->query, found->key, found->value};
    if (found->mask != kNoValue) fused.inputs.push_back(found->mask);
    fused.attributes = {};
    fused.attributes.set("alpha", found->alpha);
    fused.attributes.set("transpose_k", int64_t{found->transpose_k});
    editor.replace(i, std::move(fused));
  }
}

}  // namespace foliot
