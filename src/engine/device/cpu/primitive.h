// Primitive: an operator as oneDNN runs it.
//
// A recipe says which primitive and which tensor is which of its arguments; it
// is cheap, and lowering makes many. A kernel made from a recipe holds the
// compiled primitive and its memory objects.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_PRIMITIVE_H_
#define FOLIOT_ENGINE_DEVICE_CPU_PRIMITIVE_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/kernel.h"
#include "engine/device/cpu/operator_view.h"

namespace foliot {

struct PrimitiveArgument {
  int argument = 0;  // DNNL_ARG_SRC, ...
  TensorIndex tensor = kNoTensor;
};

struct PrimitiveRecipe {
  dnnl::primitive_desc_base descriptor;
  std::vector<PrimitiveArgument> inputs;
  std::vector<PrimitiveArgument> outputs;
};

// Calls `make`, and gives nullopt if oneDNN says that there is no such
// primitive, or only a reference implementation (correct, and 50 times slower).
template <typename Make>
auto attempt(Make make) -> std::optional<decltype(make())>;

bool is_reference(const dnnl::primitive_desc_base& descriptor);

// The operand of a PostOperation::Kind::kBinary.
struct PostOperand {
  Descriptor descriptor;
  // The result is written over the operand: oneDNN's "sum".
  bool in_place = false;
};

// Whether oneDNN's kernels make a number of a NaN: x86 has a maximum and a minimum that give the second operand
// if the first one is none.
bool loses_nan(Function function);

// Returns whether oneDNN's kernel is off by more than a part in a million where the result is small.
bool loses_small_results(Function function);

// Translates activations; false if oneDNN has no such function.
bool append_activation(Function function, double alpha, double beta, dnnl::post_ops& operations);
std::optional<dnnl::algorithm> binary_algorithm(Function function);

// Attributes made of post-operations. Made afresh for each primitive, since
// copies of oneDNN attributes share their state.
class PrimitiveAttributes {
 public:
  // False: oneDNN cannot do that as a post-operation.
  bool append(const PostOperation& operation, const PostOperand& operand);
  void append_binary(dnnl::algorithm algorithm, const Descriptor& operand, uint32_t input);
  void append_linear(float alpha);
  dnnl::primitive_attr make() const;
  // Adds the arguments that the appended operations read.
  void add_arguments(const OperatorView& view, PrimitiveRecipe& recipe) const;

 private:
  dnnl::post_ops operations_;
  std::vector<std::pair<int, uint32_t>> operands_;  // position in operations_, operator input
};

// The shape under which a primitive that sees its result as `result` (which has as
// many elements as `shape`, perhaps fewer dimensions) sees an operand that
// broadcasts to `shape`. Nullopt: it cannot be expressed.
std::optional<Shape> operand_shape(const Shape& operand, const Shape& shape, const Shape& result);

// Errors: kResourceExhausted if the scratchpad is too small for the primitive.
Result<std::unique_ptr<Kernel>> make_primitive_kernel(const OperatorView& view, const PrimitiveRecipe& recipe,
                                                      const dnnl::stream& stream);

template <typename Make>
auto attempt(Make make) -> std::optional<decltype(make())> {
  try {
    auto descriptor = make();
    if (is_reference(descriptor)) return std::nullopt;
    return descriptor;
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_PRIMITIVE_H_
