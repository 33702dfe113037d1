#include "device/cpu/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "device/cpu/families.h"
#include "device/cpu/layout.h"

namespace foliot {
namespace {

Status damaged(std::string_view what) {
  return Status::invalid_argument(fmt::format("damaged plan: {}; compile the model anew", what));
}

enum class AttributeType { kInteger, kReal, kText, kIntegers, kReals };

struct AttributeRule {
  std::string_view name;
  AttributeType type;
};

// What an operator's kind demands.
struct KindRule {
  OperatorKind kind;
  size_t inputs_min;
  std::vector<AttributeRule> attributes;
};

const std::vector<KindRule>& kind_rules() {
  using enum AttributeType;
  static const std::vector<KindRule> rules{
      {OperatorKind::kConvolution,
       2,
       {{"strides", kIntegers}, {"dilations", kIntegers}, {"pads", kIntegers}, {"groups", kInteger}}},
      {OperatorKind::kConvolutionTranspose,
       2,
       {{"strides", kIntegers}, {"dilations", kIntegers}, {"pads", kIntegers}, {"groups", kInteger}}},
      {OperatorKind::kMatMul, 2, {{"transpose_a", kInteger}, {"transpose_b", kInteger}, {"alpha", kReal}}},
      {OperatorKind::kMaxPool,
       1,
       {{"kernel", kIntegers}, {"strides", kIntegers}, {"dilations", kIntegers}, {"pads", kIntegers}}},
      {OperatorKind::kAveragePool,
       1,
       {{"kernel", kIntegers},
        {"strides", kIntegers},
        {"dilations", kIntegers},
        {"pads", kIntegers},
        {"count_include_pad", kInteger}}},
      {OperatorKind::kUnary, 1, {{"function", kText}}},
      {OperatorKind::kBinary, 2, {{"function", kText}}},
      {OperatorKind::kSoftmax, 1, {{"axis", kInteger}, {"log", kInteger}}},
      {OperatorKind::kLayerNorm, 1, {{"axis", kInteger}, {"epsilon", kReal}}},
      {OperatorKind::kLrn, 1, {{"size", kInteger}, {"alpha", kReal}, {"beta", kReal}, {"bias", kReal}}},
      {OperatorKind::kReduce, 1, {{"function", kText}, {"axes", kIntegers}, {"keep_dims", kInteger}}},
      {OperatorKind::kConcat, 1, {{"axis", kInteger}}},
      {OperatorKind::kSlice, 1, {{"starts", kIntegers}, {"steps", kIntegers}}},
      {OperatorKind::kTranspose, 1, {{"permutation", kIntegers}}},
      {OperatorKind::kReshape, 1, {}},
      {OperatorKind::kGather, 2, {{"axis", kInteger}}},
      {OperatorKind::kCast, 1, {}},
      {OperatorKind::kWhere, 3, {}},
      {OperatorKind::kExpand, 1, {}},
      {OperatorKind::kPad, 1, {{"pads", kIntegers}, {"mode", kText}, {"value", kReal}}},
      {OperatorKind::kArgReduce, 1, {{"axis", kInteger}, {"select_last", kInteger}, {"largest", kInteger}}},
      {OperatorKind::kResize, 1, {{"mode", kText}, {"coordinates", kText}, {"nearest", kText}, {"scales", kReals}}},
      {OperatorKind::kReorder, 1, {}},
  };
  return rules;
}

bool has_type(const Attribute& attribute, AttributeType type) { return attribute.index() == static_cast<size_t>(type); }

bool in_range(TensorIndex index, const Plan& plan) { return index < plan.tensors.size(); }

uint64_t place_bytes(const Plan& plan, Place place, uint64_t weights_bytes) {
  switch (place) {
    case Place::kWeights: return weights_bytes;
    case Place::kWorkspace: return plan.workspace_bytes;
    case Place::kInput: return plan.input_bytes;
    case Place::kOutput: return plan.output_bytes;
  }
  return 0;
}

bool is_small_enough(const Shape& shape) {
  constexpr double kElementsMax = 1e12;
  double elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return false;
    elements *= static_cast<double>(std::max<int64_t>(extent, 1));
  }
  return shape.size() <= DNNL_MAX_NDIMS && elements < kElementsMax;
}

Status check_tensor(const Plan& plan, const Tensor& tensor, uint64_t weights_bytes) {
  if (tensor.type > DataType::kFloat64 || tensor.place > Place::kOutput) return damaged("unknown type or place");
  if (!is_small_enough(tensor.shape)) return damaged("impossible shape");
  uint64_t needed = byte_size(tensor.type, tensor.shape);
  if (!tensor.layout.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(const Descriptor layout, read_layout(tensor.type, tensor.layout));
    if (element_count(shape_of(layout)) != element_count(tensor.shape)) return damaged("layout of another shape");
    needed = layout.get_size();
  }
  if (tensor.bytes < needed) return damaged("tensor smaller than its layout");
  const uint64_t limit = place_bytes(plan, tensor.place, weights_bytes);
  if (tensor.offset > limit || tensor.bytes > limit - tensor.offset) return damaged("tensor beyond its place");
  if (tensor.alias_of == kNoTensor) return Status();
  if (!in_range(tensor.alias_of, plan)) return damaged("alias of no tensor");
  const Tensor& owner = plan.tensors[tensor.alias_of];
  if (owner.place != tensor.place || owner.offset + tensor.alias_offset != tensor.offset)
    return damaged("alias elsewhere than what it aliases");
  return Status();
}

Status check_post_operations(const Operator& operation, const Plan& plan) {
  for (const PostOperation& post : operation.post_operations) {
    if (post.kind > PostOperation::Kind::kBinary) return damaged("unknown post-operation");
    if (post.kind == PostOperation::Kind::kBinary &&
        (post.input >= operation.inputs.size() || !in_range(operation.inputs[post.input], plan)))
      return damaged("post-operation without its operand");
  }
  return Status();
}

Status check_operator(const Operator& operation, const Plan& plan) {
  const auto rule = std::find_if(kind_rules().begin(), kind_rules().end(),
                                 [&](const KindRule& candidate) { return candidate.kind == operation.kind; });
  if (rule == kind_rules().end()) return damaged("unknown kind of operator");
  if (operation.outputs.size() != 1 || !in_range(operation.outputs[0], plan)) return damaged("operator without output");
  if (operation.inputs.size() < rule->inputs_min) return damaged("operator lacks inputs");
  for (size_t i = 0; i < operation.inputs.size(); ++i)
    if (!in_range(operation.inputs[i], plan) && (i < rule->inputs_min || operation.inputs[i] != kNoTensor))
      return damaged("operator input out of range");
  if (operation.scratchpad != kNoTensor && !in_range(operation.scratchpad, plan)) return damaged("no such scratchpad");
  for (const AttributeRule& attribute : rule->attributes) {
    const auto found = operation.attributes.values().find(attribute.name);
    if (found == operation.attributes.values().end() || !has_type(found->second, attribute.type))
      return damaged(fmt::format("attribute '{}' is missing or of another type", attribute.name));
  }
  return check_post_operations(operation, plan);
}

Status check_ends(const Plan& plan, const std::vector<TensorIndex>& ends, Place place) {
  for (TensorIndex end : ends)
    if (!in_range(end, plan) || plan.tensors[end].place != place || !plan.tensors[end].layout.empty())
      return damaged("input or output that is none");
  return Status();
}

}  // namespace

Status check_plan(const Plan& plan, uint64_t weights_bytes) {
  for (const Tensor& tensor : plan.tensors)
    FOLIOT_RETURN_IF_ERROR(
        check_tensor(plan, tensor, weights_bytes).with_context(fmt::format("tensor '{}'", tensor.name)));
  for (const Operator& operation : plan.operators)
    FOLIOT_RETURN_IF_ERROR(check_operator(operation, plan).with_context(fmt::format("operator '{}'", operation.name)));
  FOLIOT_RETURN_IF_ERROR(check_ends(plan, plan.inputs, Place::kInput));
  return check_ends(plan, plan.outputs, Place::kOutput);
}

}  // namespace foliot
