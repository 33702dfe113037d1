#include "engine/device/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "engine/device/block_weights.h"
#include "engine/device/tree_node.h"
#include "engine/device/word_piece.h"

namespace foliot {
namespace {

Status damaged(std::string_view what) {
  return Status::invalid_argument(fmt::format("damaged plan: {}; compile the model anew", what));
}

enum class AttributeType { kInteger, kReal, kText, kIntegers, kReals, kFunction };

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
      {OperatorKind::kBlockMatMul, 3, {{"bits", kInteger}, {"block", kInteger}, {"rounds", kInteger}}},
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
      {OperatorKind::kUnary, 1, {{"function", kFunction}}},
      {OperatorKind::kBinary, 2, {{"function", kFunction}}},
      {OperatorKind::kSoftmax, 1, {{"axis", kInteger}, {"log", kInteger}}},
      {OperatorKind::kAttention, 3, {{"alpha", kReal}, {"transpose_k", kInteger}}},
      {OperatorKind::kLayerNorm, 1, {{"axis", kInteger}, {"epsilon", kReal}}},
      {OperatorKind::kLrn, 1, {{"size", kInteger}, {"alpha", kReal}, {"beta", kReal}, {"bias", kReal}}},
      {OperatorKind::kReduce, 1, {{"function", kFunction}, {"axes", kIntegers}, {"keep_dims", kInteger}}},
      {OperatorKind::kConcat, 1, {{"axis", kInteger}}},
      {OperatorKind::kSlice, 1, {{"starts", kIntegers}, {"steps", kIntegers}}},
      {OperatorKind::kTranspose, 1, {{"permutation", kIntegers}}},
      {OperatorKind::kReshape, 1, {}},
      {OperatorKind::kGather, 2, {{"axis", kInteger}}},
      {OperatorKind::kGatherElements, 2, {{"axis", kInteger}}},
      {OperatorKind::kScatterElements, 3, {{"axis", kInteger}, {"reduction", kFunction}}},
      {OperatorKind::kTopK, 1, {{"axis", kInteger}, {"largest", kInteger}}},
      {OperatorKind::kCumulative,
       1,
       {{"function", kFunction}, {"axis", kInteger}, {"exclusive", kInteger}, {"reverse", kInteger}}},
      {OperatorKind::kRecurrent, 2, {{"cell", kText}, {"direction", kText}}},
      {OperatorKind::kTreeEnsemble, 3, {{"function", kFunction}, {"trees", kInteger}, {"depth", kInteger}}},
      {OperatorKind::kPairCoupling, 1, {}},
      {OperatorKind::kDecodeJpeg, 1, {{"fit", kText}, {"pad_value", kInteger}, {"pixels_max", kInteger}}},
      {OperatorKind::kWordPiece, 2, {}},
      {OperatorKind::kCast, 1, {}},
      {OperatorKind::kQuantize, 1, {{"scale", kReal}, {"zero_point", kInteger}}},
      {OperatorKind::kDequantize, 1, {{"scale", kReal}, {"zero_point", kInteger}}},
      {OperatorKind::kWhere, 3, {}},
      {OperatorKind::kExpand, 1, {}},
      {OperatorKind::kPad, 1, {{"pads", kIntegers}, {"mode", kText}, {"value", kReal}}},
      {OperatorKind::kArgReduce, 1, {{"axis", kInteger}, {"select_last", kInteger}, {"largest", kInteger}}},
      {OperatorKind::kResize, 1, {{"mode", kText}, {"coordinates", kText}, {"nearest", kText}, {"scales", kReals}}},
      {OperatorKind::kDepthToSpace, 1, {{"rows", kInteger}, {"columns", kInteger}}},
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
  return shape.size() <= kPlanRankMax && elements < kElementsMax;
}

Status check_tensor(const Plan& plan, const Tensor& tensor, uint64_t weights_bytes, const ReadLayout& read_layout) {
  if (tensor.type > DataType::kFloat64 || tensor.place > Place::kOutput) return damaged("unknown type or place");
  if (!is_small_enough(tensor.shape)) return damaged("impossible shape");
  uint64_t needed = byte_size(tensor.type, tensor.shape);
  if (!tensor.layout.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(const LayoutSize layout, read_layout(tensor.type, tensor.layout));
    if (layout.elements != element_count(tensor.shape)) return damaged("layout of another shape");
    needed = layout.bytes;
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

bool broadcasts(const Shape& operand, const Shape& shape) {
  if (operand.size() > shape.size()) return false;
  const size_t skip = shape.size() - operand.size();
  for (size_t d = 0; d < operand.size(); ++d)
    if (operand[d] != 1 && operand[d] != shape[d + skip]) return false;
  return true;
}

bool is_axis(const Operator& operation, const Shape& shape) {
  const int64_t axis = operation.attributes.integer("axis");
  return axis >= 0 && axis < static_cast<int64_t>(shape.size());
}

// The elements of a dense tensor that a strided walk over `shape` reaches lie within it.
bool stays_inside(const Operator& operation, const Shape& source, const Shape& shape) {
  const std::vector<int64_t>& starts = operation.attributes.integers("starts");
  const std::vector<int64_t>& steps = operation.attributes.integers("steps");
  if (starts.size() != source.size() || steps.size() != source.size() || shape.size() != source.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return true;
    const double last =
        static_cast<double>(starts[d]) + static_cast<double>(shape[d] - 1) * static_cast<double>(steps[d]);
    if (starts[d] < 0 || starts[d] >= source[d] || last < 0 || last >= static_cast<double>(source[d])) return false;
  }
  return true;
}

bool is_permuted(const Operator& operation, const Shape& source, const Shape& shape) {
  std::vector<int64_t> permutation = operation.attributes.integers("permutation");
  if (permutation.size() != source.size() || shape.size() != source.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t from = permutation[d];
    if (from < 0 || from >= static_cast<int64_t>(shape.size()) || source[static_cast<size_t>(from)] != shape[d])
      return false;
  }
  std::sort(permutation.begin(), permutation.end());
  return std::adjacent_find(permutation.begin(), permutation.end()) == permutation.end();
}

uint64_t elements_but(const Shape& shape, int64_t axis) {
  Shape rest = shape;
  rest[static_cast<size_t>(axis)] = 1;
  return element_count(rest);
}

// Whether every index of `inner` is one of `outer`, dimension `axis` not looked at.
bool fits_but(const Shape& inner, const Shape& outer, int64_t axis) {
  if (inner.size() != outer.size()) return false;
  for (size_t d = 0; d < inner.size(); ++d)
    if (static_cast<int64_t>(d) != axis && inner[d] > outer[d]) return false;
  return true;
}

bool is_layer_norm(const Operator& operation, const Plan& plan) {
  const auto shape = [&](size_t i) -> const Shape& { return plan.tensors[operation.inputs[i]].shape; };
  const Tensor& result = plan.tensors[operation.outputs[0]];
  if (shape(0) != result.shape || !is_axis(operation, result.shape) || result.type != DataType::kFloat32) return false;
  for (const TensorIndex input : operation.inputs)
    if (input != kNoTensor && plan.tensors[input].type != DataType::kFloat32) return false;
  const bool scaled = operation.inputs.size() > 1 && operation.inputs[1] != kNoTensor;
  const bool shifted = operation.inputs.size() > 2 && operation.inputs[2] != kNoTensor;
  return scaled == shifted && (!scaled || (shape(1) == shape(2) && broadcasts(shape(1), result.shape)));
}

bool is_attention(const Operator& operation, const Plan& plan) {
  const auto shape = [&](size_t i) -> const Shape& { return plan.tensors[operation.inputs[i]].shape; };
  const Shape& result = plan.tensors[operation.outputs[0]].shape;
  if (plan.tensors[operation.outputs[0]].type != DataType::kFloat32 || result.size() < 2) return false;
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    if (i == 3 && operation.inputs[i] == kNoTensor) continue;
    if (i > 3 || plan.tensors[operation.inputs[i]].type != DataType::kFloat32) return false;
    if (i < 3 && shape(i).size() < 2) return false;
  }
  // Of the last two dimensions, and broadcasting in the others.
  const auto is_matrix = [&](const Shape& given, int64_t rows, int64_t columns) {
    Shape whole = result;
    whole[whole.size() - 2] = rows;
    whole.back() = columns;
    return given.size() >= 2 && given[given.size() - 2] == rows && given.back() == columns && broadcasts(given, whole);
  };
  const int64_t queries = result[result.size() - 2], columns = result.back();
  const int64_t depth = shape(0).back(), keys = shape(2)[shape(2).size() - 2];
  const bool transposed = operation.attributes.integer("transpose_k") != 0;
  if (queries < 1 || columns < 1 || depth < 1 || keys < 1 || !is_matrix(shape(0), queries, depth) ||
      !is_matrix(shape(1), transposed ? depth : keys, transposed ? keys : depth) ||
      !is_matrix(shape(2), keys, columns)) {
    return false;
  }
  if (operation.inputs.size() < 4 || operation.inputs[3] == kNoTensor) return true;
  Shape scores = result;
  scores.back() = keys;
  return !shape(3).empty() && shape(3).back() == keys && broadcasts(shape(3), scores);
}

bool is_block_matmul(const Operator& operation, const Plan& plan) {
  const auto tensor = [&](size_t i) -> const Tensor& { return plan.tensors[operation.inputs[i]]; };
  const auto is = [&](size_t i, DataType type, const Shape& shape) {
    return tensor(i).type == type && tensor(i).shape == shape;
  };
  const auto has = [&](size_t i) { return operation.inputs.size() > i && operation.inputs[i] != kNoTensor; };
  const Tensor& result = plan.tensors[operation.outputs[0]];
  Shape expected = tensor(0).shape;
  if (expected.empty() || result.shape.empty()) return false;
  const BlockWeights weights{.depth = expected.back(),
                             .columns = result.shape.back(),
                             .block = operation.attributes.integer("block"),
                             .bits = operation.attributes.integer("bits")};
  expected.back() = weights.columns;
  return weights.is_possible() && result.type == DataType::kFloat32 && result.shape == expected &&
         tensor(0).type == DataType::kFloat32 && is(1, DataType::kUint8, weights.codes_shape()) &&
         is(2, DataType::kFloat32, weights.scales_shape()) &&
         (!has(3) || is(3, DataType::kUint8, weights.scales_shape())) &&
         (!has(4) || is(4, DataType::kFloat32, {weights.columns}));
}

bool is_depth_to_space(const Operator& operation, const Plan& plan) {
  const Tensor& from = plan.tensors[operation.inputs[0]];
  const Tensor& to = plan.tensors[operation.outputs[0]];
  if (from.type != DataType::kFloat32 || to.type != DataType::kFloat32) return false;
  if (from.shape.size() != 4 || to.shape.size() != 4) return false;
  const int64_t rows = operation.attributes.integer("rows"), columns = operation.attributes.integer("columns");
  if (rows < 1 || columns < 1 || rows > to.shape[2] || columns > to.shape[3]) return false;
  return from.shape[0] == to.shape[0] && from.shape[1] == rows * columns * to.shape[1] &&
         from.shape[2] * rows == to.shape[2] && from.shape[3] * columns == to.shape[3];
}

bool is_recurrent(const Operator& operation, const Plan& plan) {
  const auto shape = [&](size_t i) -> const Shape& { return plan.tensors[operation.inputs[i]].shape; };
  const Shape& x = shape(0);
  const Shape& weights = shape(1);
  const Shape& result = plan.tensors[operation.outputs[0]].shape;
  if (x.size() != 3 || weights.size() != 4) return false;
  for (TensorIndex input : operation.inputs)
    if (input != kNoTensor && plan.tensors[input].type != DataType::kFloat32) return false;
  if (plan.tensors[operation.outputs[0]].type != DataType::kFloat32) return false;
  const std::string& cell = operation.attributes.text("cell");
  const int64_t gates = cell == "lstm" ? 4 : cell == "gru" ? 3 : 1, more = cell == "lstm" ? 1 : 0;
  const int64_t directions = operation.attributes.text("direction") == "bidirectional" ? 2 : 1;
  const int64_t hidden = weights[2];
  const Shape state{directions, x[1], hidden};
  const auto fits = [&](size_t i, const Shape& expected) {
    return i >= operation.inputs.size() || operation.inputs[i] == kNoTensor || shape(i) == expected;
  };
  return weights == Shape{directions, gates, hidden, hidden} && x[2] == directions * gates * hidden &&
         result == Shape{x[0] + more, directions, x[1], hidden} && element_count(result) > 0 &&
         fits(2, {directions, hidden}) && fits(3, state) && fits(4, state);
}

bool is_tree_ensemble(const Operator& operation, const Plan& plan) {
  const auto tensor = [&](size_t i) -> const Tensor& { return plan.tensors[operation.inputs[i]]; };
  const Tensor& result = plan.tensors[operation.outputs[0]];
  const Shape& x = tensor(0).shape;
  const Shape& nodes = tensor(1).shape;
  const Shape& values = tensor(2).shape;
  if (x.size() != 2 || nodes.size() != 2 || values.size() != 2 || result.shape.size() != 2) return false;
  if (tensor(0).type != DataType::kFloat32 && tensor(0).type != DataType::kFloat64) return false;
  if (tensor(1).type != DataType::kUint8 || tensor(2).type != DataType::kFloat32) return false;
  if (operation.inputs.size() > 3 && operation.inputs[3] != kNoTensor &&
      (tensor(3).type != DataType::kInt32 || tensor(3).shape != Shape{values[0]})) {
    return false;
  }
  const int64_t trees = operation.attributes.integer("trees"), depth = operation.attributes.integer("depth");
  return x[1] >= 1 && nodes[0] <= kTreeNodesMax && nodes[1] == int64_t{sizeof(TreeNode)} && trees >= 1 &&
         trees <= nodes[0] && depth >= 0 && depth <= kTreeDepthMax && values[0] >= 1 && values[1] >= 1 &&
         values[1] <= result.shape[1] && result.shape[0] == x[0] && result.type == DataType::kFloat32;
}

bool is_decode_jpeg(const Operator& operation, const Plan& plan) {
  const Tensor& x = plan.tensors[operation.inputs[0]];
  const Tensor& result = plan.tensors[operation.outputs[0]];
  if (x.type != DataType::kUint8 || result.type != DataType::kUint8) return false;
  if (x.shape.size() != 2 || result.shape.size() != 4) return false;
  const std::string& fit = operation.attributes.text("fit");
  const int64_t pad_value = operation.attributes.integer("pad_value");
  const int64_t pixels_max = operation.attributes.integer("pixels_max");
  const auto is_extent = [](int64_t extent) { return extent >= 1 && extent <= kImageExtentMax; };
  return (fit == "stretch" || fit == "crop" || fit == "pad") && pad_value >= 0 && pad_value <= 255 && pixels_max >= 1 &&
         pixels_max <= kImagePixelsMax && x.shape[0] == result.shape[0] && is_extent(result.shape[1]) &&
         is_extent(result.shape[2]) && result.shape[3] == 3;
}

bool is_word_piece(const Operator& operation, const Plan& plan) {
  const Tensor& text = plan.tensors[operation.inputs[0]];
  const Tensor& table = plan.tensors[operation.inputs[1]];
  const Tensor& ids = plan.tensors[operation.outputs[0]];
  return text.type == DataType::kUint8 && table.type == DataType::kInt32 && ids.type == DataType::kInt64 &&
         text.shape.size() == 2 && table.shape.size() == 1 && ids.shape.size() == 2 && text.shape[0] == ids.shape[0] &&
         ids.shape[1] >= WordPieceTable::kLengthMin && ids.shape[1] <= WordPieceTable::kLengthMax;
}

// Kernels trust the shapes that they are made for, unless a library checks them. Whether the output's shape follows
// from the inputs', so that no kernel reads or writes beyond a tensor.
bool shapes_agree(const Operator& operation, const Plan& plan) {
  const auto shape = [&](size_t i) -> const Shape& { return plan.tensors[operation.inputs[i]].shape; };
  const auto type = [&](size_t i) { return plan.tensors[operation.inputs[i]].type; };
  const Shape& result = plan.tensors[operation.outputs[0]].shape;
  const DataType result_type = plan.tensors[operation.outputs[0]].type;
  switch (operation.kind) {
    case OperatorKind::kUnary:
    case OperatorKind::kCast:
    case OperatorKind::kQuantize:
    case OperatorKind::kDequantize:
    case OperatorKind::kReorder: return element_count(shape(0)) == element_count(result);
    case OperatorKind::kReshape:
      return element_count(shape(0)) == element_count(result) && size_of(type(0)) == size_of(result_type);
    case OperatorKind::kSoftmax: return shape(0) == result && is_axis(operation, result);
    case OperatorKind::kLayerNorm: return is_layer_norm(operation, plan);
    case OperatorKind::kAttention: return is_attention(operation, plan);
    case OperatorKind::kLrn: return shape(0) == result && result.size() >= 2;
    case OperatorKind::kBinary: return broadcasts(shape(0), result) && broadcasts(shape(1), result);
    case OperatorKind::kWhere:
      return broadcasts(shape(0), result) && broadcasts(shape(1), result) && broadcasts(shape(2), result);
    case OperatorKind::kExpand: return broadcasts(shape(0), result);
    case OperatorKind::kSlice: return stays_inside(operation, shape(0), result);
    case OperatorKind::kTranspose: return is_permuted(operation, shape(0), result);
    case OperatorKind::kConcat: {
      uint64_t elements = 0;
      for (size_t i = 0; i < operation.inputs.size(); ++i) {
        if (!in_range(operation.inputs[i], plan) || shape(i).size() != result.size()) return false;
        elements += element_count(shape(i));
      }
      return is_axis(operation, result) && elements == element_count(result);
    }
    case OperatorKind::kGather:
      return is_axis(operation, shape(0)) &&
             elements_but(shape(0), operation.attributes.integer("axis")) * element_count(shape(1)) ==
                 element_count(result);
    case OperatorKind::kGatherElements:
      return is_axis(operation, result) && type(1) == DataType::kInt64 && type(0) == result_type &&
             shape(1) == result && fits_but(result, shape(0), operation.attributes.integer("axis"));
    case OperatorKind::kScatterElements:
      return is_axis(operation, result) && type(1) == DataType::kInt64 && type(0) == result_type &&
             type(2) == result_type && shape(0) == result && shape(1) == shape(2) &&
             fits_but(shape(1), result, operation.attributes.integer("axis"));
    case OperatorKind::kTopK:
      return is_axis(operation, result) && result_type == DataType::kInt64 &&
             fits_but(shape(0), result, operation.attributes.integer("axis")) && fits_but(result, shape(0), -1);
    case OperatorKind::kCumulative: return is_axis(operation, result) && shape(0) == result && type(0) == result_type;
    case OperatorKind::kRecurrent: return is_recurrent(operation, plan);
    case OperatorKind::kTreeEnsemble: return is_tree_ensemble(operation, plan);
    case OperatorKind::kPairCoupling:
      return type(0) == DataType::kFloat32 && result_type == DataType::kFloat32 && shape(0).size() == 2 &&
             result.size() == 2 && shape(0)[0] == result[0] && result[1] >= 2 && result[1] <= kCoupledClassesMax &&
             shape(0)[1] == result[1] * (result[1] - 1) / 2;
    case OperatorKind::kDecodeJpeg: return is_decode_jpeg(operation, plan);
    case OperatorKind::kWordPiece: return is_word_piece(operation, plan);
    case OperatorKind::kArgReduce:
      return is_axis(operation, shape(0)) &&
             elements_but(shape(0), operation.attributes.integer("axis")) == element_count(result);
    case OperatorKind::kReduce: {
      Shape kept = shape(0);
      for (int64_t axis : operation.attributes.integers("axes")) {
        if (axis < 0 || axis >= static_cast<int64_t>(kept.size())) return false;
        kept[static_cast<size_t>(axis)] = 1;
      }
      return element_count(kept) == element_count(result);
    }
    case OperatorKind::kBlockMatMul: return is_block_matmul(operation, plan);
    case OperatorKind::kDepthToSpace: return is_depth_to_space(operation, plan);
    case OperatorKind::kPad:
      return shape(0).size() == result.size() && operation.attributes.integers("pads").size() == 2 * result.size();
    case OperatorKind::kResize:
      return shape(0).size() == result.size() && !result.empty() && element_count(shape(0)) > 0 &&
             operation.attributes.reals("scales").size() == result.size();
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool: {
      const size_t spatial = operation.attributes.integers("kernel").size();
      return spatial >= 1 && spatial <= 3 && shape(0).size() == spatial + 2 && result.size() == spatial + 2 &&
             shape(0)[0] == result[0] && shape(0)[1] == result[1] &&
             operation.attributes.integers("strides").size() == spatial &&
             operation.attributes.integers("dilations").size() == spatial &&
             operation.attributes.integers("pads").size() == 2 * spatial;
    }
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose: {
      const size_t rank = result.size();
      return rank >= 3 && shape(0).size() == rank && shape(1).size() == rank &&
             operation.attributes.integers("strides").size() == rank - 2 &&
             operation.attributes.integers("dilations").size() == rank - 2 &&
             operation.attributes.integers("pads").size() == 2 * (rank - 2) &&
             operation.attributes.integer("groups") > 0;
    }
    case OperatorKind::kMatMul:
      return result.size() >= 2 && shape(0).size() >= 2 && shape(1).size() >= 2 && shape(0).size() <= result.size() &&
             shape(1).size() <= result.size();
    case OperatorKind::kAffine: break;
  }
  return false;
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
  FOLIOT_RETURN_IF_ERROR(check_post_operations(operation, plan));
  return shapes_agree(operation, plan) ? Status() : damaged("the shapes of an operator's tensors do not agree");
}

Status check_ends(const Plan& plan, const std::vector<TensorIndex>& ends, Place place) {
  for (TensorIndex end : ends)
    if (!in_range(end, plan) || plan.tensors[end].place != place || !plan.tensors[end].layout.empty())
      return damaged("input or output that is none");
  return Status();
}

}  // namespace

Status check_plan(const Plan& plan, uint64_t weights_bytes, const ReadLayout& read_layout) {
  for (const Tensor& tensor : plan.tensors)
    FOLIOT_RETURN_IF_ERROR(
        check_tensor(plan, tensor, weights_bytes, read_layout).with_context(fmt::format("tensor '{}'", tensor.name)));
  for (const Operator& operation : plan.operators)
    FOLIOT_RETURN_IF_ERROR(check_operator(operation, plan).with_context(fmt::format("operator '{}'", operation.name)));
  FOLIOT_RETURN_IF_ERROR(check_ends(plan, plan.inputs, Place::kInput));
  return check_ends(plan, plan.outputs, Place::kOutput);
}

}  // namespace foliot
