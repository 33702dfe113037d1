// Binary functions with broadcasting, and the affine function per channel.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/strided_loop.h"
#include "engine/device/cpu/typed.h"
#include "engine/device/cpu/vector_functions.h"

namespace foliot {
namespace {

// Over `count` elements; strides in elements, 0 or more.
using Loop = void (*)(const std::byte* a, int64_t a_stride, const std::byte* b, int64_t b_stride, std::byte* to,
                      int64_t count);

// The common strides are written out, so that the compiler can vectorise them.
template <typename T, typename R, typename Function>
void loop(const std::byte* a, int64_t a_stride, const std::byte* b, int64_t b_stride, std::byte* to, int64_t count) {
  const T* left = reinterpret_cast<const T*>(a);
  const T* right = reinterpret_cast<const T*>(b);
  R* result = reinterpret_cast<R*>(to);
  if (a_stride == 1 && b_stride == 1) {
    for (int64_t i = 0; i < count; ++i) result[i] = static_cast<R>(Function::apply(left[i], right[i]));
  } else if (a_stride == 1 && b_stride == 0) {
    const T constant = *right;
    for (int64_t i = 0; i < count; ++i) result[i] = static_cast<R>(Function::apply(left[i], constant));
  } else if (a_stride == 0 && b_stride == 1) {
    const T constant = *left;
    for (int64_t i = 0; i < count; ++i) result[i] = static_cast<R>(Function::apply(constant, right[i]));
  } else {
    for (int64_t i = 0; i < count; ++i)
      result[i] = static_cast<R>(Function::apply(left[i * a_stride], right[i * b_stride]));
  }
}

// Integers wrap around instead of overflowing; dividing by zero gives zero
// instead of ending the process, since operands may come from a client.
template <typename T>
T wrapping(auto compute, T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return compute(x, y);
  else
    return static_cast<T>(compute(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
}

template <typename T>
T quotient(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y == T(0)) return T(0);
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return wrapping<T>(std::minus<>(), T(0), x);
  }
  return static_cast<T>(x / y);
}

// With the sign of the dividend, as in C.
template <typename T>
T remainder(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(x, y);
  } else {
    if (y == T(0) || (std::is_signed_v<T> && y == static_cast<T>(-1))) return T(0);
    return static_cast<T>(x % y);
  }
}

// With the sign of the divisor, as in Python.
template <typename T>
T modulo(T x, T y) {
  const T rest = remainder(x, y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? static_cast<T>(rest + y) : rest;
}

// By more than the type has bits (which a negative number stands for, too),
// nothing but what is filled in is left: zeros, and from the left the sign.
template <typename T>
T shift_left(T x, T bits) {
  using Bits = std::make_unsigned_t<T>;
  const auto count = static_cast<Bits>(bits);
  return count < 8 * sizeof(T) ? static_cast<T>(uint64_t{static_cast<Bits>(x)} << count) : T(0);
}

template <typename T>
T shift_right(T x, T bits) {
  const auto count = static_cast<std::make_unsigned_t<T>>(bits);
  if (count >= 8 * sizeof(T)) return x < T(0) ? static_cast<T>(-1) : T(0);
  return static_cast<T>(x >> count);
}

template <typename T>
T power(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return y == T(2) ? x * x : std::pow(x, y);
  } else {
    // Exact, but for what wraps around.
    if (std::is_signed_v<T> && y < T(0))
      return x == T(1) ? T(1) : x == static_cast<T>(-1) ? static_cast<T>(y % 2 == 0 ? 1 : -1) : T(0);
    uint64_t result = 1, factor = static_cast<uint64_t>(x);
    for (auto exponent = static_cast<uint64_t>(y); exponent > 0; exponent >>= 1, factor *= factor)
      if ((exponent & 1) != 0) result *= factor;
    return static_cast<T>(result);
  }
}

// A product in any case: a branch could not be foreseen.
template <typename T>
T parametric_relu(T x, T slope) {
  return wrapping<T>(std::multiplies<>(), x, x < T(0) ? slope : T(1));
}

#define FOLIOT_BINARY(Name, expression) \
  struct Name {                         \
    template <typename T>               \
    static auto apply(T x, T y) {       \
      return expression;                \
    }                                   \
  }

FOLIOT_BINARY(Add, wrapping<T>(std::plus<>(), x, y));
FOLIOT_BINARY(Subtract, wrapping<T>(std::minus<>(), x, y));
FOLIOT_BINARY(Multiply, wrapping<T>(std::multiplies<>(), x, y));
FOLIOT_BINARY(Divide, quotient(x, y));
FOLIOT_BINARY(Power, power(x, y));
FOLIOT_BINARY(Modulo, modulo(x, y));
FOLIOT_BINARY(Remainder, remainder(x, y));
FOLIOT_BINARY(BitAnd, static_cast<T>(x& y));
FOLIOT_BINARY(BitOr, static_cast<T>(x | y));
FOLIOT_BINARY(BitXor, static_cast<T>(x ^ y));
FOLIOT_BINARY(ShiftLeft, shift_left(x, y));
FOLIOT_BINARY(ShiftRight, shift_right(x, y));
// Either operand's NaN is the result.
FOLIOT_BINARY(Minimum, (y < x) | (y != y) ? y : x);
FOLIOT_BINARY(Maximum, (x < y) | (y != y) ? y : x);
FOLIOT_BINARY(ParametricRelu, parametric_relu(x, y));
FOLIOT_BINARY(Equal, x == y);
FOLIOT_BINARY(Less, x < y);
FOLIOT_BINARY(LessOrEqual, x <= y);
FOLIOT_BINARY(Greater, x > y);
FOLIOT_BINARY(GreaterOrEqual, x >= y);
FOLIOT_BINARY(And, x&& y);
FOLIOT_BINARY(Or, x || y);
FOLIOT_BINARY(Xor, x != y);
#undef FOLIOT_BINARY

// Of float32; most powers have one exponent for all.
void power_loop(const std::byte* a, int64_t a_stride, const std::byte* b, int64_t b_stride, std::byte* to,
                int64_t count) {
  const VectorParameter raise = find_vector_power();
  if (a_stride != 1 || b_stride != 0 || raise == nullptr)
    return loop<float, float, Power>(a, a_stride, b, b_stride, to, count);
  const auto* base = reinterpret_cast<const float*>(a);
  const float exponent = *reinterpret_cast<const float*>(b);
  auto* result = reinterpret_cast<float*>(to);
  if (exponent == 2.f) {
    for (int64_t i = 0; i < count; ++i) result[i] = base[i] * base[i];
  } else if (exponent == 3.f) {
    for (int64_t i = 0; i < count; ++i) result[i] = base[i] * base[i] * base[i];
  } else {
    raise(base, exponent, result, count);
  }
}

// Of float32.
void remainder_loop(const std::byte* a, int64_t a_stride, const std::byte* b, int64_t b_stride, std::byte* to,
                    int64_t count) {
  const VectorRemainder take = find_vector_remainder();
  if (a_stride != 1 || b_stride > 1 || take == nullptr || count == 0)
    return loop<float, float, Remainder>(a, a_stride, b, b_stride, to, count);
  take(reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), b_stride, reinterpret_cast<float*>(to),
       count);
}

// Of float32; a compiler makes a branch of the comparison, which could not be foreseen.
void prelu_loop(const std::byte* a, int64_t a_stride, const std::byte* b, int64_t b_stride, std::byte* to,
                int64_t count) {
  using Quad = float __attribute__((vector_size(4 * sizeof(float))));
  constexpr int64_t kQuad = 4, kBytes = sizeof(float);
  int64_t i = 0;
  if (a_stride == 1 && (b_stride == 0 || b_stride == 1)) {
    const Quad one = Quad{} + 1.F;
    Quad x, slope = Quad{} + *reinterpret_cast<const float*>(b);
    for (; i + kQuad <= count; i += kQuad) {
      std::memcpy(&x, a + i * kBytes, sizeof(x));
      if (b_stride == 1) std::memcpy(&slope, b + i * kBytes, sizeof(slope));
      x *= x < Quad{} ? slope : one;
      std::memcpy(to + i * kBytes, &x, sizeof(x));
    }
  }
  loop<float, float, ParametricRelu>(a + i * a_stride * kBytes, a_stride, b + i * b_stride * kBytes, b_stride,
                                     to + i * kBytes, count - i);
}

template <typename T>
Loop arithmetic_loop(Function function) {
  switch (function) {
    case Function::kAdd: return loop<T, T, Add>;
    case Function::kSub: return loop<T, T, Subtract>;
    case Function::kMul: return loop<T, T, Multiply>;
    case Function::kDiv: return loop<T, T, Divide>;
    case Function::kPow: return std::is_same_v<T, float> ? power_loop : loop<T, T, Power>;
    case Function::kMod: return loop<T, T, Modulo>;
    case Function::kFmod: return std::is_same_v<T, float> ? remainder_loop : loop<T, T, Remainder>;
    case Function::kMin: return loop<T, T, Minimum>;
    case Function::kMax: return loop<T, T, Maximum>;
    case Function::kPrelu: return std::is_same_v<T, float> ? prelu_loop : loop<T, T, ParametricRelu>;
    default: return nullptr;
  }
}

template <typename T>
Loop bitwise_loop(Function function) {
  switch (function) {
    case Function::kBitAnd: return loop<T, T, BitAnd>;
    case Function::kBitOr: return loop<T, T, BitOr>;
    case Function::kBitXor: return loop<T, T, BitXor>;
    case Function::kShiftLeft: return loop<T, T, ShiftLeft>;
    case Function::kShiftRight: return loop<T, T, ShiftRight>;
    default: return nullptr;
  }
}

// Nullptr: no such function of this type.
template <typename T>
Loop find_loop(Function function) {
  if (function == Function::kEqual) return loop<T, bool, Equal>;
  if constexpr (std::is_same_v<T, bool>) {
    if (function == Function::kAnd) return loop<T, bool, And>;
    if (function == Function::kOr) return loop<T, bool, Or>;
    if (function == Function::kXor) return loop<T, bool, Xor>;
  } else {
    if (function == Function::kLess) return loop<T, bool, Less>;
    if (function == Function::kLessOrEqual) return loop<T, bool, LessOrEqual>;
    if (function == Function::kGreater) return loop<T, bool, Greater>;
    if (function == Function::kGreaterOrEqual) return loop<T, bool, GreaterOrEqual>;
    if constexpr (std::is_integral_v<T>) {
      if (const Loop found = bitwise_loop<T>(function)) return found;
    }
    return arithmetic_loop<T>(function);
  }
  return nullptr;
}

Status find_loop(DataType type, Function function, Loop& found) {
  FOLIOT_RETURN_IF_ERROR(visit_type(type, [&]<typename T>(std::type_identity<T>) {
    found = find_loop<T>(function);
    return Status();
  }));
  if (found != nullptr) return Status();
  return Status::unimplemented(fmt::format("the CPU device has no '{}' of {}", to_string(function), to_string(type)));
}

// What comes after a function of float32: y = min(max(y, low), high).
struct ClipBounds {
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

// Nullopt: more than one Relu or Clip.
std::optional<ClipBounds> clip_bounds_of(const std::vector<PostOperation>& operations) {
  if (operations.size() != 1 || operations[0].kind != PostOperation::Kind::kActivation) return std::nullopt;
  const PostOperation& operation = operations[0];
  if (operation.function == Function::kRelu) return ClipBounds{.low = 0};
  if (operation.function != Function::kClip) return std::nullopt;
  return ClipBounds{.low = static_cast<float>(operation.alpha), .high = static_cast<float>(operation.beta)};
}

void clip_values(const ClipBounds& bounds, float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float raised = values[i] < bounds.low ? bounds.low : values[i];
    values[i] = bounds.high < raised ? bounds.high : raised;
  }
}

// Tensors of one layout are walked as they lie.
Shape walked_shape(const OperatorView& view) {
  if (view.output().layout.empty()) return view.output().shape;
  return {static_cast<int64_t>(view.output().bytes / size_of(view.output().type))};
}

Shape walked_strides(const OperatorView& view, size_t i) {
  if (view.output().layout.empty()) return broadcast_strides(view.input(i).shape, view.output().shape);
  return {1};
}

class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const OperatorView& view, Loop function)
      : function_(function),
        bounds_(clip_bounds_of(view.operation().post_operations)),
        a_(view.input_index(0)),
        b_(view.input_index(1)),
        to_(view.output_index()),
        size_(static_cast<int64_t>(size_of(view.input(0).type))),
        result_size_(static_cast<int64_t>(size_of(view.output().type))),
        loop_(walked_shape(view),
              {walked_strides(view, 0), walked_strides(view, 1), dense_strides(walked_shape(view))}) {}

  Status run(Addresses addresses) override {
    const std::byte* a = addresses[a_];
    const std::byte* b = addresses[b_];
    std::byte* to = addresses[to_];
    const auto& strides = loop_.inner_strides();
    const auto apply = [&](const auto& offsets, int64_t count) {
      function_(a + offsets[0] * size_, strides[0], b + offsets[1] * size_, strides[1], to + offsets[2] * result_size_,
                count);
    };
    if (!bounds_) {
      loop_.run(apply);
      return Status();
    }
    loop_.run([&](const auto& offsets, int64_t count) {
      apply(offsets, count);
      clip_values(*bounds_, reinterpret_cast<float*>(to) + offsets[2], count);
    });
    return Status();
  }

 private:
  Loop function_;
  std::optional<ClipBounds> bounds_;
  TensorIndex a_, b_, to_;
  int64_t size_, result_size_;
  StridedLoop<3> loop_;
};

dnnl::primitive_desc make_descriptor(dnnl::algorithm algorithm, const Descriptor& a, const Descriptor& b,
                                     const Descriptor& to, const PrimitiveAttributes& attributes,
                                     const dnnl::engine& engine) {
  return dnnl::binary::primitive_desc({algorithm, a, b, to}, attributes.make(), engine);
}

bool commutes(Function function) {
  return function == Function::kAdd || function == Function::kMul || function == Function::kMin ||
         function == Function::kMax;
}

// How oneDNN would do it.
struct Choice {
  ValueIndex a, b;
  Descriptor a_layout, b_layout, result;
  Fusion fusion;
};

std::optional<Choice> choose(const Node& node, GraphLowering& lowering) {
  const auto type = [&](ValueIndex value) { return lowering.value(value).type; };
  const std::optional<dnnl::algorithm> algorithm = binary_algorithm(node.attributes.function());
  const bool loses = loses_nan(node.attributes.function()) && !lowering.computes_narrow(node);
  if (!algorithm || loses || !(lowering.computes_narrow(node) || require_float32(node, lowering).ok()))
    return std::nullopt;
  Choice choice{.a = node.inputs[0], .b = node.inputs[1], .a_layout = {}, .b_layout = {}, .result = {}, .fusion = {}};
  const Shape& shape = lowering.shape(node.outputs[0]);
  const bool swap =
      lowering.shape(choice.a) != shape || (lowering.shape(choice.b) == shape && lowering.is_dense(choice.a));
  if (swap && commutes(node.attributes.function())) std::swap(choice.a, choice.b);
  if (lowering.shape(choice.a) != shape || element_count(shape) == 0) return std::nullopt;

  choice.a_layout = lowering.layout(choice.a);
  if (lowering.shape(choice.b) == shape) {
    if (lowering.is_dense(choice.a)) choice.a_layout = with_type(lowering.layout(choice.b), type(choice.a));
    choice.b_layout = with_type(choice.a_layout, type(choice.b));
  } else {
    choice.b_layout =
        dense_descriptor(type(choice.b), padded_shape(lowering.shape(choice.b), std::max<size_t>(shape.size(), 1)));
  }
  std::optional<Fusion> fusion = plan_fusion(node, lowering, shape);
  choice.result = with_type(choice.a_layout, type(node.outputs[0]));
  if (!fusion || (fusion->destination && *fusion->destination != choice.result)) return std::nullopt;
  choice.fusion = std::move(*fusion);
  const bool fast = attempt([&] {
                      return make_descriptor(*algorithm, choice.a_layout, choice.b_layout, choice.result,
                                             choice.fusion.attributes, lowering.engine());
                    }).has_value();
  if (!fast) return std::nullopt;
  return choice;
}

// Of so few elements that calling oneDNN would take longer than the work.
bool is_small(const Node& node, const GraphLowering& lowering) {
  constexpr uint64_t kElementsMax = 2048;
  return node.post_operations.empty() && lowering.is_dense(node.inputs[0]) && lowering.is_dense(node.inputs[1]) &&
         element_count(lowering.shape(node.outputs[0])) <= kElementsMax;
}

Status lower_own_binary(const Node& node, GraphLowering& lowering) {
  Loop function = nullptr;
  FOLIOT_RETURN_IF_ERROR(find_loop(lowering.value(node.inputs[0]).type, node.attributes.function(), function));
  Operator operation = GraphLowering::begin(node, "foliot:binary");
  operation.inputs = {lowering.dense(node.inputs[0]), lowering.dense(node.inputs[1])};
  operation.outputs = {lowering.dense_result(node.outputs[0])};
  return lowering.emit(std::move(operation));
}

// Two operands of one layout and a Relu or Clip behind, as after the branches of a residual network: in one pass. The
// padding of a layout stays zero.
Result<bool> lower_bounded(const Node& node, GraphLowering& lowering) {
  const std::optional<ClipBounds> bounds = clip_bounds_of(node.post_operations);
  const ValueIndex a = node.inputs[0], b = node.inputs[1], result = node.outputs[0];
  const auto is_float = [&](ValueIndex value) { return lowering.value(value).type == DataType::kFloat32; };
  if (!bounds || !is_float(a) || !is_float(b) || lowering.shape(a) != lowering.shape(b)) return false;
  const bool dense = lowering.is_dense(a) && lowering.is_dense(b);
  const bool sums = node.attributes.function() == Function::kAdd || node.attributes.function() == Function::kMul;
  if (!dense && (!sums || bounds->low > 0 || bounds->high < 0)) return false;
  Operator operation = GraphLowering::begin(node, "foliot:binary");
  const Descriptor layout = lowering.is_dense(a) ? lowering.layout(b) : lowering.layout(a);
  operation.inputs = {lowering.in_layout(a, layout), lowering.in_layout(b, layout)};
  operation.outputs = {};
  for (ValueIndex operand : {a, b})
    if (operation.outputs.empty() && lowering.layout(operand) == layout &&
        lowering.may_overwrite(node, operand, result))
      operation.outputs = {lowering.result_like(result, lowering.present(operand))};
  if (operation.outputs.empty()) operation.outputs = {lowering.result(result, layout)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

// Where the result goes: over an operand that dies here and has its layout.
TensorIndex binary_result(const Node& node, GraphLowering& lowering, const Choice& choice) {
  const ValueIndex result = node.outputs[0];
  if (choice.fusion.overwritten == kNoValue)
    for (ValueIndex operand : {choice.a, choice.b})
      if (lowering.shape(operand) == lowering.shape(result) && lowering.layout(operand) == choice.result &&
          lowering.may_overwrite(node, operand, result))
        return lowering.result_like(result, lowering.present(operand));
  return fused_result(node, lowering, choice.fusion, choice.result);
}

}  // namespace

Result<bool> lower_binary(const Node& node, GraphLowering& lowering) {
  const bool narrow = lowering.computes_narrow(node);
  if (!narrow && lowering.value(node.inputs[0]).type != lowering.value(node.inputs[1]).type)
    return Status::unimplemented("operands of two types; cast one before");
  const bool own = !narrow && is_small(node, lowering);
  const std::optional<Choice> choice = own ? std::nullopt : choose(node, lowering);
  if (!choice && !narrow && !node.post_operations.empty()) return lower_bounded(node, lowering);
  if (!choice && narrow) return false;
  if (!choice) {
    FOLIOT_RETURN_IF_ERROR(lower_own_binary(node, lowering));
    return true;
  }
  Operator operation = GraphLowering::begin(node);
  operation.inputs = {lowering.in_layout(choice->a, choice->a_layout),
                      lowering.shape(choice->b) == lowering.shape(choice->a)
                          ? lowering.in_layout(choice->b, choice->b_layout)
                          : lowering.dense(choice->b)};
  lowering.add_post_inputs(node, operation);
  operation.outputs = {binary_result(node, lowering, *choice)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_binary(const OperatorView& view) {
  const std::optional<dnnl::algorithm> algorithm = binary_algorithm(view.attributes().function());
  if (!algorithm) return Status::invalid_argument("oneDNN has no such binary function");
  PrimitiveAttributes attributes;
  append_post_operations(view, view.output().shape, attributes);
  const Descriptor b =
      view.input_descriptor(1, padded_shape(view.input(1).shape, std::max<size_t>(view.output().shape.size(), 1)));
  PrimitiveRecipe recipe;
  recipe.descriptor =
      make_descriptor(*algorithm, view.input_descriptor(0), b, view.output_descriptor(), attributes, view.engine());
  recipe.inputs = {{DNNL_ARG_SRC_0, view.input_index(0)}, {DNNL_ARG_SRC_1, view.input_index(1)}};
  recipe.outputs = {{DNNL_ARG_DST, view.output_index()}};
  attributes.add_arguments(view, recipe);
  return recipe;
}

Result<std::unique_ptr<Kernel>> make_binary(const OperatorView& view) {
  if (view.input(0).type != view.input(1).type) return Status::invalid_argument("operands of two types");
  Loop function = nullptr;
  FOLIOT_RETURN_IF_ERROR(find_loop(view.input(0).type, view.attributes().function(), function));
  const bool bounded = !view.operation().post_operations.empty();
  if (bounded && (!clip_bounds_of(view.operation().post_operations) || view.output().type != DataType::kFloat32))
    return Status::invalid_argument("the kernel has no such post-operations");
  const std::string& layout = view.output().layout;
  if (!layout.empty() && (view.input(0).layout != layout || view.input(1).layout != layout ||
                          view.input(0).bytes != view.output().bytes || view.input(1).bytes != view.output().bytes))
    return Status::invalid_argument("the operands have other layouts than the result");
  return std::unique_ptr<Kernel>(std::make_unique<BinaryKernel>(view, function));
}

// X * scale + shift is a product with a post-operation.
Result<bool> lower_affine(const Node& node, GraphLowering& lowering) {
  Shape channels(lowering.shape(node.inputs[0]).size(), 1);
  channels.at(1) = lowering.shape(node.inputs[0])[1];
  Node product = node;
  product.kind = OperatorKind::kBinary;
  product.attributes = {};
  product.attributes.set("function", Function::kMul);
  for (size_t i : {1, 2}) product.inputs[i] = lowering.reshaped(node.inputs[i], channels);
  product.post_operations.insert(
      product.post_operations.begin(),
      {.kind = PostOperation::Kind::kBinary, .function = Function::kAdd, .alpha = 0, .beta = 0, .input = 2});
  FOLIOT_RETURN_IF_ERROR(lowering.lower_instead(product));
  return true;
}

}  // namespace foliot
