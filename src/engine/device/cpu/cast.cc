// Cast between element types, half precision included.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/typed.h"

namespace foliot {
namespace {

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

float to_float(Half half) {
  const uint32_t sign = (half.bits & 0x8000u) << 16;
  const uint32_t exponent = (half.bits >> 10) & 0x1fu, fraction = half.bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float to_float(Brain brain) { return std::bit_cast<float>(uint32_t{brain.bits} << 16); }

// Both round to nearest, ties to even.
Half to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = std::abs(value);
  if (std::isnan(value)) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 65520.f) return {static_cast<uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x1p-14f)  // the addition rounds to units of 2^-24
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(magnitude + 0.5f) - std::bit_cast<uint32_t>(0.5f)))};
  const uint32_t positive = bits & 0x7fffffffu;
  const uint32_t rounded = positive + 0xfffu + (positive >> 13 & 1u);
  return {static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)))};
}

Brain to_brain(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

// Floating point to integer saturates, NaN becomes zero: C++ leaves both open.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, Brain>)
    return convert<To>(to_float(value));
  else if constexpr (std::is_same_v<To, Half>)
    return to_half(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, Brain>)
    return to_brain(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return To(0);
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
    return static_cast<To>(value);
  } else
    return static_cast<To>(value);
}

// All types, the ones that own kernels do not compute in included.
template <typename Visit>
void visit_any_type(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::kBool: return visit(std::type_identity<bool>());
    case DataType::kUint8: return visit(std::type_identity<uint8_t>());
    case DataType::kUint16: return visit(std::type_identity<uint16_t>());
    case DataType::kUint32: return visit(std::type_identity<uint32_t>());
    case DataType::kUint64: return visit(std::type_identity<uint64_t>());
    case DataType::kInt8: return visit(std::type_identity<int8_t>());
    case DataType::kInt16: return visit(std::type_identity<int16_t>());
    case DataType::kInt32: return visit(std::type_identity<int32_t>());
    case DataType::kInt64: return visit(std::type_identity<int64_t>());
    case DataType::kFloat16: return visit(std::type_identity<Half>());
    case DataType::kBfloat16: return visit(std::type_identity<Brain>());
    case DataType::kFloat32: return visit(std::type_identity<float>());
    case DataType::kFloat64: return visit(std::type_identity<double>());
    case DataType::kBytes: break;
  }
  FOLIOT_CHECK(false);
}

template <typename From, typename To>
class CastKernel : public Kernel {
 public:
  explicit CastKernel(const OperatorView& view)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        count_(static_cast<int64_t>(element_count(view.output().shape))) {}

  Status run(Addresses addresses) override {
    constexpr int64_t kPiece = 8192;
    const From* from = reinterpret_cast<const From*>(addresses[from_]);
    To* to = reinterpret_cast<To*>(addresses[to_]);
    parallel_for((count_ + kPiece - 1) / kPiece, count_, [&](int64_t piece) {
      const int64_t end = std::min(count_, (piece + 1) * kPiece);
      for (int64_t i = piece * kPiece; i < end; ++i) to[i] = convert<To>(from[i]);
    });
    return Status();
  }

 private:
  TensorIndex from_, to_;
  int64_t count_;
};

// oneDNN's reorder keeps the layout.
bool is_between_floats(DataType a, DataType b) {
  return (a == DataType::kFloat32 && b == DataType::kBfloat16) || (a == DataType::kBfloat16 && b == DataType::kFloat32);
}

}  // namespace

Result<bool> lower_cast(const Node& node, GraphLowering& lowering) {
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const DataType type = lowering.value(destination).type;
  if (is_between_floats(lowering.value(source).type, type) && element_count(lowering.shape(source)) > 0) {
    Operator operation = GraphLowering::begin(node);
    operation.inputs = {lowering.present(source)};
    operation.outputs = {lowering.result(destination, with_type(lowering.layout(source), type))};
    FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
    return true;
  }
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:cast"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_cast(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  visit_any_type(view.input(0).type, [&]<typename From>(std::type_identity<From>) {
    visit_any_type(view.output().type,
                   [&]<typename To>(std::type_identity<To>) { kernel = std::make_unique<CastKernel<From, To>>(view); });
  });
  return kernel;
}

}  // namespace foliot
