#include "engine/device/cpu/primitive.h"

#include <fmt/format.h>

#include <cstring>
#include <map>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// A flat description of a tensor's bytes. Primitives take layouts from their own
// descriptors; a memory object with a padded layout would have its padding
// zeroed, that is written, whenever its address is set, which constants must not.
Descriptor flat_descriptor(const Descriptor& descriptor) {
  return Descriptor({static_cast<int64_t>(descriptor.get_size())}, dnnl::memory::data_type::u8,
                    dnnl::memory::format_tag::a);
}

class PrimitiveKernel : public Kernel {
 public:
  PrimitiveKernel(std::string name, const dnnl::primitive_desc_base& descriptor, const dnnl::stream& stream)
      : name_(std::move(name)), primitive_(descriptor.get()), stream_(stream.get()) {}

  void add(const PrimitiveArgument& argument, const Descriptor& descriptor, const dnnl::engine& engine) {
    bindings_.push_back({dnnl::memory(descriptor, engine, nullptr), argument.tensor, nullptr});
    arguments_.push_back({argument.argument, bindings_.back().memory.get()});
  }

  Status run(Addresses addresses) override {
    for (Binding& binding : bindings_) {
      std::byte* address = addresses[binding.tensor];
      if (address == binding.address) continue;
      // Zeroes the padding of an output, which this operator is about to write.
      if (dnnl_memory_set_data_handle_v2(binding.memory.get(), address, stream_) != dnnl_success) return failed();
      binding.address = address;
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream_, static_cast<int>(arguments_.size()), arguments_.data());
    return status == dnnl_success ? Status() : failed();
  }

 private:
  struct Binding {
    dnnl::memory memory;
    TensorIndex tensor;
    std::byte* address;
  };

  Status failed() const { return Status::internal(fmt::format("operator '{}': oneDNN failed to run it", name_)); }

  std::string name_;
  dnnl::primitive primitive_;
  dnnl_stream_t stream_;
  std::vector<Binding> bindings_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

struct EltwiseRow {
  dnnl::algorithm algorithm;
  // How many of alpha and beta the function takes from the operator; the rest
  // are these constants.
  int parameters = 0;
  float alpha = 0;
  float beta = 0;
};

const std::map<Function, EltwiseRow>& eltwise_rows() {
  using enum dnnl::algorithm;
  // Without the logarithm: oneDNN's is not zero at one.
  static const std::map<Function, EltwiseRow> rows{
      {Function::kRelu, {eltwise_relu}},
      {Function::kSigmoid, {eltwise_logistic}},
      {Function::kTanh, {eltwise_tanh}},
      {Function::kExp, {eltwise_exp}},
      {Function::kSqrt, {eltwise_sqrt}},
      {Function::kNeg, {eltwise_linear, 0, -1}},
      {Function::kAbs, {eltwise_abs}},
      {Function::kReciprocal, {eltwise_pow, 0, 1, -1}},
      {Function::kGelu, {eltwise_gelu_erf}},
      {Function::kGeluTanh, {eltwise_gelu_tanh}},
      {Function::kSoftplus, {eltwise_soft_relu}},
      {Function::kHardSwish, {eltwise_hardswish}},
      {Function::kSilu, {eltwise_swish, 0, 1}},
      {Function::kClip, {eltwise_clip, 2}},
      {Function::kLeakyRelu, {eltwise_relu, 1}},
      {Function::kElu, {eltwise_elu, 1}},
      {Function::kLinear, {eltwise_linear, 2}},
      {Function::kRound, {eltwise_round}},
  };
  return rows;
}

// oneDNN 2.6 gives all functions of one kind the parameters of the first.
bool has_other_parameters(const dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha, float beta) {
  for (int i = 0; i < operations.len(); ++i) {
    if (operations.kind(i) != dnnl::primitive::kind::eltwise) continue;
    float scale = 0, its_alpha = 0, its_beta = 0;
    dnnl::algorithm its_algorithm{};
    operations.get_params_eltwise(i, scale, its_algorithm, its_alpha, its_beta);
    if (its_algorithm == algorithm && (its_alpha != alpha || its_beta != beta)) return true;
  }
  return false;
}

bool append_eltwise(dnnl::algorithm algorithm, float alpha, float beta, dnnl::post_ops& operations) {
  if (has_other_parameters(operations, algorithm, alpha, beta)) return false;
  operations.append_eltwise(1.f, algorithm, alpha, beta);
  return true;
}

}  // namespace

bool is_reference(const dnnl::primitive_desc_base& descriptor) {
  return std::string_view(descriptor.impl_info_str()).starts_with("ref");
}

bool loses_nan(Function function) {
  switch (function) {
    case Function::kRelu:
    case Function::kExp:
    case Function::kClip:
    case Function::kHardSigmoid:
    case Function::kMin:
    case Function::kMax: return true;
    default: return false;
  }
}

bool loses_small_results(Function function) { return function == Function::kSoftplus; }

bool append_activation(Function function, double alpha, double beta, dnnl::post_ops& operations) {
  if (function == Function::kHardSigmoid) {
    return append_eltwise(dnnl::algorithm::eltwise_linear, static_cast<float>(alpha), static_cast<float>(beta),
                          operations) &&
           append_eltwise(dnnl::algorithm::eltwise_clip, 0.f, 1.f, operations);
  }
  const auto found = eltwise_rows().find(function);
  if (found == eltwise_rows().end()) return false;
  const EltwiseRow& row = found->second;
  return append_eltwise(row.algorithm, row.parameters > 0 ? static_cast<float>(alpha) : row.alpha,
                        row.parameters > 1 ? static_cast<float>(beta) : row.beta, operations);
}

std::optional<dnnl::algorithm> binary_algorithm(Function function) {
  using enum dnnl::algorithm;
  switch (function) {
    case Function::kAdd: return binary_add;
    case Function::kSub: return binary_sub;
    case Function::kMul: return binary_mul;
    case Function::kDiv: return binary_div;
    case Function::kMax: return binary_max;
    case Function::kMin: return binary_min;
    default: return std::nullopt;
  }
}

bool PrimitiveAttributes::append(const PostOperation& operation, const PostOperand& operand) {
  if (operation.kind == PostOperation::Kind::kActivation)
    return append_activation(operation.function, operation.alpha, operation.beta, operations_);
  if (operand.in_place) {
    operations_.append_sum();
    return true;
  }
  const std::optional<dnnl::algorithm> algorithm = binary_algorithm(operation.function);
  if (!algorithm) return false;
  append_binary(*algorithm, operand.descriptor, operation.input);
  return true;
}

void PrimitiveAttributes::append_binary(dnnl::algorithm algorithm, const Descriptor& operand, uint32_t input) {
  operands_.emplace_back(operations_.len(), input);
  operations_.append_binary(algorithm, operand);
}

void PrimitiveAttributes::append_linear(float alpha) {
  operations_.append_eltwise(1.f, dnnl::algorithm::eltwise_linear, alpha, 0.f);
}

dnnl::primitive_attr PrimitiveAttributes::make() const {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(operations_);
  return attributes;
}

void PrimitiveAttributes::add_arguments(const OperatorView& view, PrimitiveRecipe& recipe) const {
  for (const auto& [position, input] : operands_)
    recipe.inputs.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, view.input_index(input)});
}

std::optional<Shape> operand_shape(const Shape& operand, const Shape& shape, const Shape& result) {
  if (operand.size() > shape.size()) return std::nullopt;
  if (result == shape) return padded_shape(operand, shape.size());
  if (element_count(operand) == element_count(shape)) return result;
  // Dimensions were merged: only operands that vary along the last one, or not at all,
  // can be expressed.
  if (!operand.empty() && element_count(operand) != static_cast<uint64_t>(operand.back())) return std::nullopt;
  if (operand.empty() || operand.back() == 1) return Shape(result.size(), 1);
  if (result.empty() || operand.back() != result.back()) return std::nullopt;
  return padded_shape({operand.back()}, result.size());
}

Result<std::unique_ptr<Kernel>> make_primitive_kernel(const OperatorView& view, const PrimitiveRecipe& recipe,
                                                      const dnnl::stream& stream) {
  const std::string& name = view.operation().name;
  auto kernel = std::make_unique<PrimitiveKernel>(name, recipe.descriptor, stream);
  for (const PrimitiveArgument& input : recipe.inputs)
    kernel->add(input, flat_descriptor(recipe.descriptor.query_md(dnnl::query::exec_arg_md, input.argument)),
                view.engine());
  for (const PrimitiveArgument& output : recipe.outputs)
    kernel->add(output, recipe.descriptor.query_md(dnnl::query::exec_arg_md, output.argument), view.engine());
  const Descriptor scratchpad = recipe.descriptor.scratchpad_desc();
  if (scratchpad.get_size() > 0) {
    const TensorIndex tensor = view.operation().scratchpad;
    if (tensor == kNoTensor || view.tensor(tensor).bytes < scratchpad.get_size())
      return Status::resource_exhausted(
          fmt::format("operator '{}' needs a scratchpad of {} bytes; compile the model "
                      "anew",
                      name, scratchpad.get_size()));
    kernel->add({DNNL_ARG_SCRATCHPAD, tensor}, scratchpad, view.engine());
  }
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace foliot
