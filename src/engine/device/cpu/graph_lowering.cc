#include "engine/device/cpu/graph_lowering.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/index_check.h"
#include "engine/device/cpu/instruction_set.h"
#include "engine/device/cpu/nan_watch.h"
#include "engine/device/cpu/thread_limit.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// How many leading inputs a kind always has; post-operations' inputs come after
// these and after an optional bias.
size_t primary_inputs(OperatorKind kind) { return kind == OperatorKind::kAffine ? 3 : 2; }

bool multiplies(OperatorKind kind) {
  return kind == OperatorKind::kConvolution || kind == OperatorKind::kConvolutionTranspose ||
         kind == OperatorKind::kMatMul;
}

Node activation_node(const Node& node, const PostOperation& operation, ValueIndex input) {
  Node activation{.kind = OperatorKind::kUnary,
                  .name = node.name,
                  .inputs = {input},
                  .outputs = {},
                  .attributes = {},
                  .post_operations = {}};
  activation.attributes.set("function", operation.function);
  activation.attributes.set("alpha", operation.alpha);
  activation.attributes.set("beta", operation.beta);
  return activation;
}

Node binary_node(const Node& node, const PostOperation& operation, ValueIndex input) {
  Node binary{.kind = OperatorKind::kBinary,
              .name = node.name,
              .inputs = {input, node.inputs.at(operation.input)},
              .outputs = {},
              .attributes = {},
              .post_operations = {}};
  binary.attributes.set("function", operation.function);
  return binary;
}

}  // namespace

GraphLowering::GraphLowering(const Graph& graph, ActivationLayout layout, Packing& packing, const dnnl::engine& engine)
    : graph_(graph),
      activation_layout_(layout),
      packing_(packing),
      engine_(engine),
      fewer_threads_(threads_of_fewer_lanes(static_cast<uint32_t>(omp_get_max_threads()))),
      row_order_(graph),
      values_(graph.values),
      tensor_(values_.size(), kNoTensor),
      output_(values_.size()),
      uses_(values_.size()) {
  plan_.batch_size = graph.batch_size;
  plan_.bucket = graph.bucket;
  for (ValueIndex output : graph.outputs) {
    output_.at(output) = true;
    ++uses_[output];
  }
  for (const Node& node : graph.nodes)
    for (ValueIndex input : node.inputs)
      if (input != kNoValue) ++uses_.at(input);
  for (const Value& value : values_)
    FOLIOT_CHECK(!value.is_constant() || value.constant->size() == byte_size(value.type, value.shape));
}

Result<Plan> GraphLowering::lower() {
  for (ValueIndex input : graph_.inputs) {
    const Value& it = value(input);
    tensor_[input] = add_tensor({.name = it.name,
                                 .type = it.type,
                                 .shape = it.shape,
                                 .layout = {},
                                 .bytes = byte_size(it.type, it.shape),
                                 .place = Place::kInput});
    plan_.inputs.push_back(tensor_[input]);
  }
  for (const Node& node : graph_.nodes)
    FOLIOT_RETURN_IF_ERROR(lower_node(node).with_context(
        fmt::format("node '{}' ({}, batch size {})", node.name, to_string(node.kind), graph_.batch_size)));
  FOLIOT_RETURN_IF_ERROR(finish_outputs());
  return std::move(plan_);
}

bool GraphLowering::computes_narrow(const Node& node) const {
  const auto type = [this](ValueIndex value) { return values_[value].type; };
  const DataType first = type(node.inputs.at(0));
  switch (node.kind) {
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose:
    case OperatorKind::kMatMul:
    case OperatorKind::kMaxPool: return first == DataType::kBfloat16 || first == DataType::kUint8;
    case OperatorKind::kAveragePool:
    case OperatorKind::kUnary: return first == DataType::kBfloat16;
    case OperatorKind::kBinary:
      return first == DataType::kBfloat16 || (first == DataType::kUint8 && type(node.inputs[1]) == DataType::kFloat32);
    default: return false;
  }
}

bool GraphLowering::multiplies_inexactly(const Node& node) const {
  return multiplies(node.kind) && values_[node.inputs.at(0)].type == DataType::kUint8 &&
         !supports_products(instruction_set(), DataType::kUint8).ok();
}

Status GraphLowering::lower_node(const Node& node) {
  if (computes_narrow(node)) {
    if (multiplies_inexactly(node)) return lower_widened(node);
    FOLIOT_ASSIGN_OR_RETURN(const bool lowered, lower_fused(node));
    return lowered ? Status() : lower_widened(node);
  }
  for (size_t fused = node.post_operations.size();; --fused) {
    FOLIOT_ASSIGN_OR_RETURN(const bool lowered,
                            fused == node.post_operations.size() ? lower_fused(node) : lower_split(node, fused));
    if (lowered) return Status();
    FOLIOT_CHECK(fused > 0);
  }
}

Result<bool> GraphLowering::lower_split(const Node& node, size_t fused) {
  Node main = node;
  main.post_operations.resize(fused);
  const auto used_by_main = [&](uint32_t input) {
    return input < primary_inputs(node.kind) ||
           std::any_of(main.post_operations.begin(), main.post_operations.end(), [&](const PostOperation& operation) {
             return operation.kind == PostOperation::Kind::kBinary && operation.input == input;
           });
  };
  const std::span<const PostOperation> rest = std::span(node.post_operations).subspan(fused);
  for (const PostOperation& operation : rest)
    if (operation.kind == PostOperation::Kind::kBinary && !used_by_main(operation.input))
      main.inputs.at(operation.input) = kNoValue;

  ValueIndex last = add_value(value(node.outputs.at(0)));
  main.outputs[0] = last;
  FOLIOT_ASSIGN_OR_RETURN(const bool lowered, lower_fused(main));
  if (!lowered) return false;
  for (size_t i = 0; i < rest.size(); ++i) {
    const bool binary = rest[i].kind == PostOperation::Kind::kBinary;
    Node next = binary ? binary_node(node, rest[i], last) : activation_node(node, rest[i], last);
    // A second reader of the same position is a use that was not counted.
    if (binary && main.inputs[rest[i].input] != kNoValue) {
      ++uses_[next.inputs[1]];
      if (tensor_[next.inputs[1]] != kNoTensor) ++storage_uses_[storage(tensor_[next.inputs[1]])];
    }
    if (binary) main.inputs[rest[i].input] = next.inputs[1];
    while (binary && i + 1 < rest.size() && rest[i + 1].kind == PostOperation::Kind::kActivation) {
      next.post_operations.push_back(rest[++i]);
    }
    last = i + 1 < rest.size() ? add_value(value(node.outputs[0])) : node.outputs[0];
    next.outputs = {last};
    FOLIOT_RETURN_IF_ERROR(lower_node(next));
  }
  return true;
}

Result<bool> GraphLowering::lower_fused(const Node& node) {
  const Family* family = find_family(node.kind);
  if (family == nullptr || family->lower == nullptr)
    return Status::unimplemented("the CPU device has no such operator");
  const ThreadLimit limit(is_short(node.kind, shape(node.inputs.at(0)), has(node, 1) ? shape(node.inputs[1]) : Shape(),
                                   shape(node.outputs.at(0))));
  FOLIOT_ASSIGN_OR_RETURN(const bool lowered, family->lower(with_rows(node), *this));
  if (!lowered) return false;
  for (ValueIndex input : node.inputs)
    if (input != kNoValue && tensor_[input] != kNoTensor) --storage_uses_[storage(tensor_[input])];
  return true;
}

Node GraphLowering::with_rows(const Node& node) const {
  Node marked = node;
  const bool divides = (convolves(node.kind) || computes_narrow(node)) && graph_.batch_size <= kBatchSizeMax &&
                       std::ranges::all_of(node.inputs, [&](ValueIndex input) {
                         return input == kNoValue || values_[input].is_constant() || row_order_.is_by_row(input);
                       });
  if (divides) marked.attributes.set(std::string(kNanRows), int64_t{graph_.batch_size});
  return marked;
}

Status GraphLowering::lower_widened(const Node& node) {
  Node wide = node;
  for (ValueIndex& input : wide.inputs)
    if (input != kNoValue && values_[input].type != DataType::kFloat32) input = widened(input);
  const ValueIndex result = node.outputs[0];
  const DataType type = values_[result].type;
  if (type == DataType::kFloat32) return lower_node(wide);
  Value float_result = values_[result];
  float_result.type = DataType::kFloat32;
  wide.outputs = {add_value(float_result)};
  FOLIOT_RETURN_IF_ERROR(lower_node(wide));
  const Descriptor narrow = with_type(layout(wide.outputs[0]), type);
  const TensorIndex from = present(wide.outputs[0]);
  return reorder(from, this->result(result, narrow));
}

ValueIndex GraphLowering::widened(ValueIndex value) {
  Value wide = values_[value];
  wide.type = DataType::kFloat32;
  if (wide.is_constant()) {
    wide.constant = packing_.widened(wide.constant, values_[value].type, wide.shape);
    return add_value(wide);
  }
  const TensorIndex from = present(value);
  const Descriptor descriptor = with_type(layout(value), DataType::kFloat32);
  const TensorIndex to = add_tensor({.name = wide.name,
                                     .type = wide.type,
                                     .shape = wide.shape,
                                     .layout = layout_bytes(descriptor),
                                     .bytes = descriptor.get_size()});
  FOLIOT_CHECK(reorder(from, to).ok());
  --storage_uses_[storage(from)];
  const ValueIndex result = add_value(wide);
  tensor_[result] = to;
  storage_uses_[to] = 1;
  return result;
}

Status GraphLowering::finish_outputs() {
  std::vector<bool> taken(plan_.tensors.size());
  for (ValueIndex output : graph_.outputs) {
    TensorIndex tensor = present(output);
    taken.resize(plan_.tensors.size());
    if (plan_.tensors[tensor].place != Place::kOutput || taken[tensor]) {
      const Value& it = value(output);
      const TensorIndex from = is_dense(output) || !lies_row_major(layout(output)) ? tensor : dense(output);
      tensor = add_tensor({.name = it.name,
                           .type = it.type,
                           .shape = it.shape,
                           .layout = {},
                           .bytes = byte_size(it.type, it.shape),
                           .place = Place::kOutput});
      FOLIOT_RETURN_IF_ERROR(reorder(from, tensor).with_context(fmt::format("output '{}'", it.name)));
      taken.resize(plan_.tensors.size());
    }
    taken[tensor] = true;
    plan_.outputs.push_back(tensor);
  }
  return Status();
}

ValueIndex GraphLowering::add_value(const Value& like) {
  Value value = like;
  values_.push_back(std::move(value));
  tensor_.push_back(kNoTensor);
  output_.push_back(false);
  uses_.push_back(1);
  return static_cast<ValueIndex>(values_.size() - 1);
}

TensorIndex GraphLowering::add_tensor(Tensor tensor) {
  plan_.tensors.push_back(std::move(tensor));
  storage_uses_.push_back(0);
  return static_cast<TensorIndex>(plan_.tensors.size() - 1);
}

TensorIndex GraphLowering::add_view(const Value& value, TensorIndex under, const std::string& layout, uint64_t bytes,
                                    uint64_t offset) {
  const Tensor& it = plan_.tensors.at(under);
  return add_tensor({.name = value.name,
                     .type = value.type,
                     .shape = value.shape,
                     .layout = layout,
                     .bytes = bytes,
                     .place = it.place,
                     .offset = 0,
                     .alias_of = storage(under),
                     .alias_offset = it.alias_offset + offset,
                     .constant = it.constant});
}

TensorIndex GraphLowering::constant_tensor(const Value& value, uint32_t constant, const std::string& layout,
                                           uint64_t bytes) {
  return add_tensor({.name = value.name,
                     .type = value.type,
                     .shape = value.shape,
                     .layout = layout,
                     .bytes = bytes,
                     .place = Place::kWeights,
                     .constant = constant});
}

TensorIndex GraphLowering::storage(TensorIndex tensor) const {
  const TensorIndex owner = plan_.tensors.at(tensor).alias_of;
  return owner == kNoTensor ? tensor : owner;
}

Descriptor GraphLowering::layout(ValueIndex value) const {
  const Value& it = values_.at(value);
  const TensorIndex tensor = tensor_.at(value);
  if (tensor == kNoTensor || plan_.tensors[tensor].layout.empty()) return dense_descriptor(it.type, it.shape);
  return read_layout(it.type, plan_.tensors[tensor].layout).value();
}

bool GraphLowering::is_dense(ValueIndex value) const {
  const TensorIndex tensor = tensor_.at(value);
  return tensor == kNoTensor || plan_.tensors[tensor].layout.empty();
}

TensorIndex GraphLowering::present(ValueIndex value) {
  TensorIndex& tensor = tensor_.at(value);
  if (tensor != kNoTensor) return tensor;
  const Value& it = values_[value];
  FOLIOT_CHECK(it.is_constant());
  tensor = constant_tensor(it, packing_.dense(it.constant), {}, it.constant->size());
  storage_uses_[tensor] = uses_[value];
  return tensor;
}

TensorIndex GraphLowering::dense(ValueIndex value) {
  const TensorIndex tensor = present(value);
  if (plan_.tensors[tensor].layout.empty()) return tensor;
  if (const auto copy = copies_.find({value, {}}); copy != copies_.end()) return copy->second;
  const Value& it = values_[value];
  const uint64_t bytes = byte_size(it.type, it.shape);
  if (lies_row_major(layout(value))) return copies_[{value, {}}] = add_view(it, tensor, {}, bytes);
  const TensorIndex to =
      add_tensor({.name = it.name, .type = it.type, .shape = it.shape, .layout = {}, .bytes = bytes});
  FOLIOT_CHECK(reorder(tensor, to).ok());
  return copies_[{value, {}}] = to;
}

TensorIndex GraphLowering::in_layout(ValueIndex value, const Descriptor& wanted) {
  const Value& it = values_[value];
  return in_layout(value, wanted, dense_descriptor(it.type, it.shape));
}

TensorIndex GraphLowering::in_layout(ValueIndex value, const Descriptor& wanted, const Descriptor& from) {
  const Value& it = values_[value];
  const std::string bytes = layout_bytes(wanted);
  const std::pair<ValueIndex, std::string> key{value, bytes + layout_bytes(from)};
  if (const auto copy = copies_.find(key); copy != copies_.end()) return copy->second;
  if (it.is_constant()) {
    if (bytes.empty() && foliot::is_dense(from)) return present(value);
    const uint32_t constant = packing_.packed(it.constant, from, wanted);
    return copies_[key] = constant_tensor(it, constant, bytes, wanted.get_size());
  }
  TensorIndex tensor = present(value);
  if (plan_.tensors[tensor].layout == bytes && foliot::is_dense(from)) return tensor;
  if (bytes.empty() && foliot::is_dense(from)) return dense(value);
  if (!foliot::is_dense(from)) {
    tensor = dense(value);
    tensor = add_view(it, tensor, layout_bytes(from), plan_.tensors[tensor].bytes);
  } else if (lies_row_major(wanted) && lies_row_major(layout(value))) {
    return copies_[key] = add_view(it, tensor, bytes, wanted.get_size());
  }
  const TensorIndex to =
      add_tensor({.name = it.name, .type = it.type, .shape = it.shape, .layout = bytes, .bytes = wanted.get_size()});
  FOLIOT_CHECK(reorder(tensor, to).ok());
  return copies_[key] = to;
}

std::optional<Descriptor> GraphLowering::packed_layout(ValueIndex value, const Descriptor& from) const {
  const Value& it = values_.at(value);
  return it.is_constant() ? packing_.chosen(it.constant, from) : std::nullopt;
}

TensorIndex GraphLowering::result(ValueIndex value, const Descriptor& layout) {
  if (foliot::is_dense(layout)) return dense_result(value);
  const Value& it = values_[value];
  tensor_[value] = add_tensor({.name = it.name,
                               .type = it.type,
                               .shape = it.shape,
                               .layout = layout_bytes(layout),
                               .bytes = layout.get_size()});
  storage_uses_[tensor_[value]] = uses_[value];
  return tensor_[value];
}

TensorIndex GraphLowering::dense_result(ValueIndex value) {
  const Value& it = values_[value];
  tensor_[value] = add_tensor({.name = it.name,
                               .type = it.type,
                               .shape = it.shape,
                               .layout = {},
                               .bytes = byte_size(it.type, it.shape),
                               .place = is_output(value) ? Place::kOutput : Place::kWorkspace});
  storage_uses_[tensor_[value]] = uses_[value];
  return tensor_[value];
}

TensorIndex GraphLowering::result_over(ValueIndex value, TensorIndex operand, const std::string& layout, uint64_t bytes,
                                       uint64_t offset) {
  FOLIOT_CHECK(may_view(value));
  tensor_[value] = add_view(values_[value], operand, layout, bytes, offset);
  storage_uses_[storage(operand)] += uses_[value];
  return tensor_[value];
}

TensorIndex GraphLowering::result_like(ValueIndex value, TensorIndex operand) {
  const Tensor like = plan_.tensors.at(operand);
  return result_over(value, operand, like.layout, like.bytes);
}

bool GraphLowering::may_overwrite(const Node& node, ValueIndex operand, ValueIndex result) const {
  if (is_output(result) || tensor_.at(operand) == kNoTensor) return false;
  const TensorIndex owner = storage(tensor_[operand]);
  if (plan_.tensors[owner].place != Place::kWorkspace) return false;
  const auto reads = std::count_if(node.inputs.begin(), node.inputs.end(), [&](ValueIndex input) {
    return input != kNoValue && tensor_[input] != kNoTensor && storage(tensor_[input]) == owner;
  });
  return reads == 1 && storage_uses_[owner] == 1;
}

ValueIndex GraphLowering::reshaped(ValueIndex value, const Shape& shape) {
  const ValueIndex view = add_value(
      {.name = values_[value].name, .type = values_[value].type, .shape = shape, .constant = values_[value].constant});
  uses_[view] = 0;
  if (!values_[view].is_constant()) result_over(view, dense(value), {}, byte_size(values_[view].type, shape));
  return view;
}

Status GraphLowering::lower_instead(const Node& node) {
  for (ValueIndex input : node.inputs) {
    if (input == kNoValue) continue;
    ++uses_[input];
    if (tensor_[input] != kNoTensor) ++storage_uses_[storage(tensor_[input])];
  }
  return lower_node(node);
}

Operator GraphLowering::begin(const Node& node, std::string_view kernel) {
  return {.kind = node.kind,
          .name = node.name,
          .inputs = {},
          .outputs = {},
          .attributes = node.attributes,
          .post_operations = node.post_operations,
          .scratchpad = kNoTensor,
          .kernel = std::string(kernel)};
}

void GraphLowering::add_post_inputs(const Node& node, Operator& operation) {
  operation.inputs.resize(node.inputs.size(), kNoTensor);
  for (const PostOperation& post : node.post_operations)
    if (post.kind == PostOperation::Kind::kBinary && operation.inputs.at(post.input) == kNoTensor)
      operation.inputs[post.input] = present(node.inputs.at(post.input));
}

TensorIndex GraphLowering::add_scratchpad(const Operator& operation, uint64_t bytes) {
  if (bytes == 0) return kNoTensor;
  return add_tensor({.name = operation.name + " scratchpad",
                     .type = DataType::kUint8,
                     .shape = {static_cast<int64_t>(bytes)},
                     .layout = {},
                     .bytes = bytes});
}

Status GraphLowering::emit_dense(const Node& node, std::string_view kernel, uint64_t scratchpad_bytes) {
  Operator operation = begin(node, kernel);
  for (ValueIndex input : node.inputs) operation.inputs.push_back(input == kNoValue ? kNoTensor : dense(input));
  operation.outputs = {dense_result(node.outputs.at(0))};
  operation.scratchpad = add_scratchpad(operation, scratchpad_bytes);
  return emit(std::move(operation));
}

Status GraphLowering::emit_indexing(const Node& node, std::string_view kernel) {
  Node checked = node;
  const bool known = row_order_.is_by_row(node.inputs.at(1)) && graph_.batch_size <= kBatchSizeMax;
  checked.attributes.set(std::string(kIndexRows), int64_t{known ? graph_.batch_size : 0});
  return emit_dense(checked, kernel);
}

Status GraphLowering::emit(Operator operation) {
  if (!operation.kernel.starts_with(kOwnKernel)) {
    const Family* family = find_family(operation.kind);
    FOLIOT_CHECK(family != nullptr && family->describe != nullptr);
    FOLIOT_ASSIGN_OR_RETURN(const uint64_t scratchpad_bytes, choose_kernel(*family, operation));
    operation.scratchpad = add_scratchpad(operation, scratchpad_bytes);
  }
  plan_.operators.push_back(std::move(operation));
  return Status();
}

// A kernel may need more for fewer threads: GEMM convolutions lay out more of the image at once.
Result<uint64_t> GraphLowering::choose_kernel(const Family& family, Operator& operation) const {
  const OperatorView view(operation, plan_.tensors, engine_);
  const auto describe = [&](bool alone) {
    const ThreadLimit limit(alone);
    return family.describe(view);
  };
  const bool alone = is_short(view);
  FOLIOT_ASSIGN_OR_RETURN(const PrimitiveRecipe recipe, describe(alone));
  operation.kernel = recipe.descriptor.impl_info_str();
  uint64_t bytes = recipe.descriptor.scratchpad_desc().get_size();
  if (alone) return bytes;
  for (const uint32_t threads : fewer_threads_) {
    const ThreadLimit limit = ThreadLimit::at_most(threads);
    FOLIOT_ASSIGN_OR_RETURN(const PrimitiveRecipe narrow, describe(false));
    bytes = std::max<uint64_t>(bytes, narrow.descriptor.scratchpad_desc().get_size());
  }
  return bytes;
}

Status GraphLowering::reorder(TensorIndex from, TensorIndex to) {
  const Tensor& source = plan_.tensors[from];
  const Tensor& destination = plan_.tensors[to];
  const bool plain = source.layout == destination.layout && source.type == destination.type;
  const bool own = plain || changes_channel_order(source, destination);
  return emit({.kind = OperatorKind::kReorder,
               .name = plan_.tensors[to].name,
               .inputs = {from},
               .outputs = {to},
               .attributes = {},
               .post_operations = {},
               .scratchpad = kNoTensor,
               .kernel = own ? std::string(kOwnKernel) + "copy" : std::string()});
}

}  // namespace foliot
