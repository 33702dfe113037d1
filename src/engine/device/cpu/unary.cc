// Unary functions: oneDNN's where it has them, in whatever layout the operand
// is in; Foliot's own for the others and for other types.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/typed.h"
#include "engine/device/cpu/vector_functions.h"

namespace foliot {
namespace {

struct Parameters {
  double alpha = 0, beta = 0;
};

Parameters parameters_of(const Attributes& attributes) {
  return {attributes.has("alpha") ? attributes.real("alpha") : 0, attributes.has("beta") ? attributes.real("beta") : 0};
}

template <typename T>
using UnaryLoop = void (*)(const T* from, T* to, int64_t count, T alpha, T beta);

template <typename T, typename Function>
void loop(const T* from, T* to, int64_t count, T alpha, T beta) {
  for (int64_t i = 0; i < count; ++i) to[i] = Function::apply(from[i], alpha, beta);
}

// One function of x and its parameters a, b, in the element type T.
#define FOLIOT_UNARY(Name, expression)                                \
  struct Name {                                                       \
    template <typename T>                                             \
    static T apply(T x, [[maybe_unused]] T a, [[maybe_unused]] T b) { \
      return static_cast<T>(expression);                              \
    }                                                                 \
  }

FOLIOT_UNARY(Relu, x < T(0) ? T(0) : x);
FOLIOT_UNARY(Negative, T(0) - x);
FOLIOT_UNARY(Absolute, x < T(0) ? T(0) - x : x);
FOLIOT_UNARY(Sign, x == x ? static_cast<T>(T(x > T(0)) - T(x < T(0))) : x);
FOLIOT_UNARY(Not, x == T(0));
FOLIOT_UNARY(Clip, std::min(std::max(x, a), b));
FOLIOT_UNARY(Linear, a* x + b);
FOLIOT_UNARY(Sigmoid, T(1) / (T(1) + std::exp(-x)));
FOLIOT_UNARY(Tanh, std::tanh(x));
FOLIOT_UNARY(Erf, std::erf(x));
FOLIOT_UNARY(Exp, std::exp(x));
FOLIOT_UNARY(Log, std::log(x));
FOLIOT_UNARY(SquareRoot, std::sqrt(x));
FOLIOT_UNARY(Reciprocal, T(1) / x);
FOLIOT_UNARY(Floor, std::floor(x));
FOLIOT_UNARY(Ceil, std::ceil(x));
FOLIOT_UNARY(Round, std::nearbyint(x));
FOLIOT_UNARY(Gelu, T(0.5) * x * (T(1) + std::erf(x * T(M_SQRT1_2))));
FOLIOT_UNARY(GeluTanh, T(0.5) * x * (T(1) + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x))));
FOLIOT_UNARY(Softplus, std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x))));
FOLIOT_UNARY(HardSwish, x* std::min(std::max(x + T(3), T(0)), T(6)) / T(6));
FOLIOT_UNARY(Silu, x / (T(1) + std::exp(-x)));
FOLIOT_UNARY(Sin, std::sin(x));
FOLIOT_UNARY(Cos, std::cos(x));
FOLIOT_UNARY(Tan, std::tan(x));
FOLIOT_UNARY(ArcSine, std::asin(x));
FOLIOT_UNARY(ArcCosine, std::acos(x));
FOLIOT_UNARY(ArcTangent, std::atan(x));
FOLIOT_UNARY(HyperbolicSine, std::sinh(x));
FOLIOT_UNARY(HyperbolicCosine, std::cosh(x));
FOLIOT_UNARY(AreaSine, std::asinh(x));
FOLIOT_UNARY(AreaCosine, std::acosh(x));
FOLIOT_UNARY(AreaTangent, std::atanh(x));
FOLIOT_UNARY(LeakyRelu, x < T(0) ? a * x : x);
FOLIOT_UNARY(Elu, x < T(0) ? a * std::expm1(x) : x);
FOLIOT_UNARY(HardSigmoid, std::min(std::max(a* x + b, T(0)), T(1)));
#undef FOLIOT_UNARY

template <typename T>
UnaryLoop<T> floating_loop(Function function) {
  switch (function) {
    case Function::kSigmoid: return loop<T, Sigmoid>;
    case Function::kTanh: return loop<T, Tanh>;
    case Function::kErf: return loop<T, Erf>;
    case Function::kExp: return loop<T, Exp>;
    case Function::kLog: return loop<T, Log>;
    case Function::kSqrt: return loop<T, SquareRoot>;
    case Function::kReciprocal: return loop<T, Reciprocal>;
    case Function::kFloor: return loop<T, Floor>;
    case Function::kCeil: return loop<T, Ceil>;
    case Function::kRound: return loop<T, Round>;
    case Function::kGelu: return loop<T, Gelu>;
    case Function::kGeluTanh: return loop<T, GeluTanh>;
    case Function::kSoftplus: return loop<T, Softplus>;
    case Function::kHardSwish: return loop<T, HardSwish>;
    case Function::kSilu: return loop<T, Silu>;
    case Function::kSin: return loop<T, Sin>;
    case Function::kCos: return loop<T, Cos>;
    case Function::kTan: return loop<T, Tan>;
    case Function::kAsin: return loop<T, ArcSine>;
    case Function::kAcos: return loop<T, ArcCosine>;
    case Function::kAtan: return loop<T, ArcTangent>;
    case Function::kSinh: return loop<T, HyperbolicSine>;
    case Function::kCosh: return loop<T, HyperbolicCosine>;
    case Function::kAsinh: return loop<T, AreaSine>;
    case Function::kAcosh: return loop<T, AreaCosine>;
    case Function::kAtanh: return loop<T, AreaTangent>;
    case Function::kLeakyRelu: return loop<T, LeakyRelu>;
    case Function::kElu: return loop<T, Elu>;
    case Function::kHardSigmoid: return loop<T, HardSigmoid>;
    default: return nullptr;
  }
}

// Nullptr: no such function of this type.
template <typename T>
UnaryLoop<T> find_unary_loop(Function function) {
  if (function == Function::kNot) return std::is_same_v<T, bool> ? loop<T, Not> : nullptr;
  if constexpr (!std::is_same_v<T, bool>) {
    if (function == Function::kRelu) return loop<T, Relu>;
    if (function == Function::kNeg) return loop<T, Negative>;
    if (function == Function::kAbs) return loop<T, Absolute>;
    if (function == Function::kSign) return loop<T, Sign>;
    if (function == Function::kClip) return loop<T, Clip>;
    if (function == Function::kLinear) return loop<T, Linear>;
  }
  if constexpr (std::is_floating_point_v<T>) return floating_loop<T>(function);
  return nullptr;
}

// A parameter as the element type: clip's bounds may lie beyond an integer's range.
template <typename T>
T saturated(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

template <typename T>
class UnaryKernel : public Kernel {
 public:
  UnaryKernel(const OperatorView& view, UnaryLoop<T> loop)
      : loop_(loop),
        vector_function_(std::is_same_v<T, float> ? find_vector_function(view.attributes().function()) : nullptr),
        elu_(std::is_same_v<T, float> && view.attributes().function() == Function::kElu ? find_vector_elu() : nullptr),
        source_(view.input_index(0)),
        destination_(view.output_index()),
        count_(static_cast<int64_t>(view.output().bytes / sizeof(T))),
        alpha_(saturated<T>(parameters_of(view.attributes()).alpha)),
        beta_(saturated<T>(parameters_of(view.attributes()).beta)) {}

  Status run(Addresses addresses) override {
    constexpr int64_t kPiece = 4096;
    const T* from = reinterpret_cast<const T*>(addresses[source_]);
    T* to = reinterpret_cast<T*>(addresses[destination_]);
    parallel_for((count_ + kPiece - 1) / kPiece, count_ * 8, [&](int64_t piece) {
      const int64_t begin = piece * kPiece;
      const int64_t count = std::min(kPiece, count_ - begin);
      if constexpr (std::is_same_v<T, float>) {
        if (vector_function_ != nullptr) return vector_function_(from + begin, to + begin, count);
        if (elu_ != nullptr) return elu_(from + begin, alpha_, to + begin, count);
      }
      loop_(from + begin, to + begin, count, alpha_, beta_);
    });
    return Status();
  }

 private:
  UnaryLoop<T> loop_;
  VectorFunction vector_function_;  // in its place, if there is one
  VectorParameter elu_;             // as well
  TensorIndex source_, destination_;
  int64_t count_;
  T alpha_, beta_;
};

std::optional<dnnl::primitive_desc> make_descriptor(const Attributes& attributes, const Descriptor& data,
                                                    const dnnl::engine& engine) {
  const auto [alpha, beta] = parameters_of(attributes);
  dnnl::post_ops activation;
  if (!append_activation(attributes.function(), alpha, beta, activation) || activation.len() != 1) return std::nullopt;
  float scale = 0, a = 0, b = 0;
  dnnl::algorithm algorithm;
  activation.get_params_eltwise(0, scale, algorithm, a, b);
  return attempt([&]() -> dnnl::primitive_desc {
    return dnnl::eltwise_forward::primitive_desc({dnnl::prop_kind::forward_inference, algorithm, data, a, b},
                                                 PrimitiveAttributes().make(), engine);
  });
}

// Whether zeros stay zeros, as which the padding of a layout must be left.
bool keeps_zero(const Attributes& attributes) {
  const auto [alpha, beta] = parameters_of(attributes);
  return attributes.function() == Function::kRelu || attributes.function() == Function::kElu ||
         (attributes.function() == Function::kClip && alpha <= 0 && beta >= 0);
}

Status no_function(const Attributes& attributes, DataType type) {
  return Status::unimplemented(
      fmt::format("the CPU device has no '{}' of {}", to_string(attributes.function()), to_string(type)));
}

}  // namespace

Result<bool> lower_unary(const Node& node, GraphLowering& lowering) {
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const DataType type = lowering.value(source).type;
  const Function function = node.attributes.function();
  // oneDNN makes 0 of Elu's -0.
  const bool own = type == DataType::kFloat32 &&
                   (loses_nan(function) || loses_small_results(function) || function == Function::kElu);
  const bool primitive = !own && (type == DataType::kFloat32 || type == DataType::kBfloat16) &&
                         make_descriptor(node.attributes, lowering.layout(source), lowering.engine()).has_value();
  if (!primitive && lowering.computes_narrow(node)) return false;
  if (!primitive)
    FOLIOT_RETURN_IF_ERROR(visit_type(type, [&]<typename T>(std::type_identity<T>) {
      return find_unary_loop<T>(node.attributes.function()) ? Status() : no_function(node.attributes, type);
    }));
  Operator operation = GraphLowering::begin(node, primitive ? "" : "foliot:unary");
  const bool in_place = primitive || (own && keeps_zero(node.attributes));
  const TensorIndex from = in_place ? lowering.present(source) : lowering.dense(source);
  operation.inputs = {from};
  // No other operator reads the result of a reorder, but only the value's own tensor is
  // counted.
  if (from == lowering.present(source) && lowering.may_overwrite(node, source, destination))
    operation.outputs = {lowering.result_like(destination, from)};
  else
    operation.outputs = {in_place ? lowering.result(destination, lowering.layout(source))
                                  : lowering.dense_result(destination)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_unary(const OperatorView& view) {
  const auto descriptor = make_descriptor(view.attributes(), view.input_descriptor(0), view.engine());
  if (!descriptor) return no_function(view.attributes(), view.input(0).type);
  PrimitiveRecipe recipe;
  recipe.descriptor = *descriptor;
  recipe.inputs = {{DNNL_ARG_SRC, view.input_index(0)}};
  recipe.outputs = {{DNNL_ARG_DST, view.output_index()}};
  return recipe;
}

Result<std::unique_ptr<Kernel>> make_unary(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  const DataType type = view.input(0).type;
  if (view.input(0).bytes != view.output().bytes || view.input(0).layout != view.output().layout)
    return Status::invalid_argument("the operand has another layout than the result");
  FOLIOT_RETURN_IF_ERROR(visit_type(type, [&]<typename T>(std::type_identity<T>) {
    const UnaryLoop<T> found = find_unary_loop<T>(view.attributes().function());
    if (found == nullptr) return no_function(view.attributes(), type);
    kernel = std::make_unique<UnaryKernel<T>>(view, found);
    return Status();
  }));
  return kernel;
}

}  // namespace foliot
