#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/compiler/passes.h"

namespace foliot {
namespace {

constexpr size_t kPostOperationsMax = 8;

// Not kConvolutionTranspose: oneDNN has no fast kernel that does more.
bool takes_binary(OperatorKind kind) { return kind == OperatorKind::kConvolution || kind == OperatorKind::kMatMul; }

bool takes_activation(OperatorKind kind) {
  return takes_binary(kind) || kind == OperatorKind::kBinary || kind == OperatorKind::kAffine;
}

// Whether `before` may take in what `user` does to its result.
bool can_take(const GraphEditor& editor, const Node& before, const Node& user) {
  const Value& result = editor.value(before.outputs[0]);
  const Value& fused = editor.value(user.outputs[0]);
  return before.post_operations.size() < kPostOperationsMax && user.post_operations.empty() &&
         result.type == DataType::kFloat32 && fused.type == DataType::kFloat32 && fused.shape == result.shape;
}

void fuse(GraphEditor& editor, NodeIndex before, NodeIndex user, Node fused) {
  fused.outputs = editor.node(user).outputs;
  editor.remove(user);
  editor.replace(before, std::move(fused));
}

bool fuse_activation(GraphEditor& editor, NodeIndex before, NodeIndex user) {
  const Node& activation = editor.node(user);
  if (activation.kind != OperatorKind::kUnary || !takes_activation(editor.node(before).kind)) return false;
  PostOperation operation;
  operation.kind = PostOperation::Kind::kActivation;
  operation.function = activation.attributes.function();
  if (activation.attributes.has("alpha")) operation.alpha = activation.attributes.real("alpha");
  if (activation.attributes.has("beta")) operation.beta = activation.attributes.real("beta");
  Node fused = editor.node(before);
  fused.post_operations.push_back(operation);
  fuse(editor, before, user, std::move(fused));
  return true;
}

// Operands of post-operations stand behind the operator's own: two and a bias,
// which holds its place where it is left out.
constexpr size_t kOwnInputs = 3;

bool fuse_binary(GraphEditor& editor, NodeIndex before, NodeIndex user) {
  static constexpr std::array<Function, 6> kFunctions{Function::kAdd, Function::kMul, Function::kMax,
                                                      Function::kMin, Function::kSub, Function::kDiv};
  const Node& binary = editor.node(user);
  if (binary.kind != OperatorKind::kBinary || !takes_binary(editor.node(before).kind)) return false;
  const Function function = binary.attributes.function();
  if (std::ranges::find(kFunctions, function) == kFunctions.end()) return false;
  const bool first = binary.inputs[0] == editor.node(before).outputs[0];
  if (!first && (function == Function::kSub || function == Function::kDiv)) return false;
  const ValueIndex other = binary.inputs[first ? 1 : 0];
  // The other operand must be there when `before` runs; kNoNode: it always is.
  const NodeIndex producer = editor.producer(other);
  if (producer != kNoNode && producer >= before) return false;
  Node fused = editor.node(before);
  if (fused.inputs.size() < kOwnInputs) fused.inputs.resize(kOwnInputs, kNoValue);
  PostOperation operation;
  operation.kind = PostOperation::Kind::kBinary;
  operation.function = function;
  operation.input = static_cast<uint32_t>(fused.inputs.size());
  fused.inputs.push_back(other);
  fused.post_operations.push_back(operation);
  fuse(editor, before, user, std::move(fused));
  return true;
}

// From the end, so that of two operands of an addition the one that is computed
// last takes it in.
void fuse_into(GraphEditor& editor, bool (*takes)(OperatorKind)) {
  for (NodeIndex i = editor.node_count(); i-- > 0;) {
    while (!editor.is_removed(i) && takes(editor.node(i).kind)) {
      const NodeIndex user = editor.sole_user(editor.node(i).outputs[0]);
      if (user == kNoNode || !can_take(editor, editor.node(i), editor.node(user))) break;
      if (!fuse_activation(editor, i, user) && !fuse_binary(editor, i, user)) break;
    }
  }
}

}  // namespace

// Convolutions and products first: an addition that took its activation could
// not be taken in any more.
void fuse_post_operations(GraphEditor& editor) {
  fuse_into(editor, takes_binary);
  fuse_into(editor, takes_activation);
}

}  // namespace foliot
