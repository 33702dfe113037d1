#include "engine/compiler/evaluate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>

namespace foliot {
namespace {

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

// Strides with which `shape` is read as if it had been broadcast to `target`.
std::vector<int64_t> broadcast_strides(const Shape& shape, const Shape& target) {
  const std::vector<int64_t> own = row_major_strides(shape);
  std::vector<int64_t> strides(target.size(), 0);
  const size_t offset = target.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) strides[offset + i] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

// Calls visit(i, position) for each element i of `shape` in order, where
// position = start + sum of index * stride.
template <typename Visit>
void for_each_element(const Shape& shape, const std::vector<int64_t>& strides, int64_t start, Visit visit) {
  const uint64_t count = element_count(shape);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t position = start;
  for (uint64_t i = 0; i < count; ++i) {
    visit(i, position);
    for (size_t axis = shape.size(); axis-- > 0;) {
      position += strides[axis];
      if (++index[axis] < shape[axis]) break;
      position -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// Elements picked from x by strides: transposing, slicing, broadcasting.
Constant pick(const Constant& x, const Shape& shape, const std::vector<int64_t>& strides, int64_t start) {
  const size_t width = size_of(x.type);
  std::vector<std::byte> bytes(byte_size(x.type, shape));
  const std::byte* from = x.bytes->data();
  for_each_element(shape, strides, start, [&](uint64_t i, int64_t position) {
    std::memcpy(bytes.data() + i * width, from + static_cast<size_t>(position) * width, width);
  });
  return make_constant(x.type, shape, std::move(bytes));
}

Constant transpose(const Constant& x, const std::vector<int64_t>& permutation, const Shape& shape) {
  const std::vector<int64_t> own = row_major_strides(x.shape);
  std::vector<int64_t> strides;
  strides.reserve(permutation.size());
  for (int64_t axis : permutation) strides.push_back(own[static_cast<size_t>(axis)]);
  return pick(x, shape, strides, 0);
}

Constant slice(const Constant& x, const Attributes& attributes, const Shape& shape) {
  std::vector<int64_t> strides = row_major_strides(x.shape);
  int64_t start = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    start += attributes.integers("starts")[i] * strides[i];
    strides[i] *= attributes.integers("steps")[i];
  }
  return pick(x, shape, strides, start);
}

Constant concat(std::span<const Constant> inputs, size_t axis, const ValueType& type) {
  std::vector<std::byte> bytes;
  bytes.reserve(byte_size(type.type, type.shape));
  uint64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<uint64_t>(type.shape[i]);
  for (uint64_t i = 0; i < outer; ++i) {
    for (const Constant& input : inputs) {
      const size_t run = input.bytes->size() / outer;
      const auto* from = input.bytes->data() + i * run;
      bytes.insert(bytes.end(), from, from + run);
    }
  }
  return make_constant(type.type, type.shape, std::move(bytes));
}

// Nullopt if an index is out of range.
std::optional<Constant> gather(const Constant& x, const Constant& indices, size_t axis, const ValueType& type) {
  const int64_t extent = x.shape[axis];
  const Shape inner_shape(x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  const uint64_t run = byte_size(x.type, inner_shape);
  const Shape outer_shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  const uint64_t outer = element_count(outer_shape);
  std::vector<std::byte> bytes;
  bytes.reserve(byte_size(type.type, type.shape));
  const std::vector<int64_t> positions = to_integers(indices);
  for (uint64_t i = 0; i < outer; ++i) {
    for (int64_t position : positions) {
      if (position < 0) position += extent;
      if (position < 0 || position >= extent) return std::nullopt;
      const auto* from = x.bytes->data() + (i * static_cast<uint64_t>(extent) + static_cast<uint64_t>(position)) * run;
      bytes.insert(bytes.end(), from, from + run);
    }
  }
  return make_constant(type.type, type.shape, std::move(bytes));
}

Constant cast(const Constant& x, DataType type) {
  if (is_floating(x.type)) return from_doubles(type, x.shape, to_doubles(x));
  return from_integers(type, x.shape, to_integers(x));
}

Constant where(std::span<const Constant> inputs, const ValueType& type) {
  const auto condition = broadcast_strides(inputs[0].shape, type.shape);
  std::vector<bool> chosen(element_count(type.shape));
  for_each_element(type.shape, condition, 0, [&](uint64_t i, int64_t position) {
    chosen[i] = (*inputs[0].bytes)[static_cast<size_t>(position)] != std::byte{0};
  });
  const size_t width = size_of(type.type);
  std::vector<std::byte> bytes(byte_size(type.type, type.shape));
  for (const bool side : {true, false}) {
    const Constant& from = inputs[side ? 1 : 2];
    for_each_element(type.shape, broadcast_strides(from.shape, type.shape), 0, [&](uint64_t i, int64_t position) {
      if (chosen[i] != side) return;
      std::memcpy(bytes.data() + i * width, from.bytes->data() + static_cast<size_t>(position) * width, width);
    });
  }
  return make_constant(type.type, type.shape, std::move(bytes));
}

double round_half_even(double x) { return std::nearbyint(x); }

// Null for a function that takes parameters or is not folded.
double (*unary_function(Function function))(double) {
  switch (function) {
    case Function::kRelu: return [](double x) { return std::max(x, 0.0); };
    case Function::kSigmoid: return [](double x) { return 1 / (1 + std::exp(-x)); };
    case Function::kTanh: return [](double x) { return std::tanh(x); };
    case Function::kErf: return [](double x) { return std::erf(x); };
    case Function::kExp: return [](double x) { return std::exp(x); };
    case Function::kLog: return [](double x) { return std::log(x); };
    case Function::kSqrt: return [](double x) { return std::sqrt(x); };
    case Function::kNeg: return [](double x) { return -x; };
    case Function::kAbs: return [](double x) { return std::fabs(x); };
    case Function::kReciprocal: return [](double x) { return 1 / x; };
    case Function::kFloor: return [](double x) { return std::floor(x); };
    case Function::kCeil: return [](double x) { return std::ceil(x); };
    case Function::kRound: return round_half_even;
    case Function::kSign: return [](double x) { return std::isnan(x) ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; };
    case Function::kNot: return [](double x) { return x == 0 ? 1.0 : 0.0; };
    case Function::kSin: return [](double x) { return std::sin(x); };
    case Function::kTan: return [](double x) { return std::tan(x); };
    case Function::kAsin: return [](double x) { return std::asin(x); };
    case Function::kAcos: return [](double x) { return std::acos(x); };
    case Function::kAtan: return [](double x) { return std::atan(x); };
    case Function::kSinh: return [](double x) { return std::sinh(x); };
    case Function::kCosh: return [](double x) { return std::cosh(x); };
    case Function::kAsinh: return [](double x) { return std::asinh(x); };
    case Function::kAcosh: return [](double x) { return std::acosh(x); };
    case Function::kAtanh: return [](double x) { return std::atanh(x); };
    case Function::kCos: return [](double x) { return std::cos(x); };
    default: return nullptr;
  }
}

// Arithmetic of signed integers wraps, as it does on devices.
int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

// Those that give integers which float64 need not have. Null for others.
std::function<int64_t(int64_t)> integer_unary_function(const Attributes& attributes) {
  switch (attributes.function()) {
    case Function::kRelu: return [](int64_t x) { return std::max<int64_t>(x, 0); };
    case Function::kNeg: return [](int64_t x) { return wrap(-bits(x)); };
    case Function::kAbs: return [](int64_t x) { return x < 0 ? wrap(-bits(x)) : x; };
    case Function::kClip: {
      const double bounds[] = {attributes.real("alpha"), attributes.real("beta")};
      const std::vector<int64_t> ends = to_integers(from_doubles(DataType::kInt64, {2}, bounds));
      return [ends](int64_t x) { return std::min(std::max(x, ends[0]), ends[1]); };
    }
    default: return {};
  }
}

std::optional<Constant> unary(const Constant& x, const Attributes& attributes, const ValueType& type) {
  if (x.type == DataType::kInt64) {
    if (const auto function = integer_unary_function(attributes)) {
      std::vector<int64_t> values = to_integers(x);
      std::ranges::transform(values, values.begin(), function);
      return from_integers(type.type, type.shape, values);
    }
  }
  const Function operation = attributes.function();
  std::function<double(double)> function = unary_function(operation);
  if (operation == Function::kClip || operation == Function::kLinear) {
    const double alpha = attributes.real("alpha");
    const double beta = attributes.real("beta");
    if (operation == Function::kClip) function = [=](double v) { return std::min(std::max(v, alpha), beta); };
    if (operation == Function::kLinear) function = [=](double v) { return alpha * v + beta; };
  }
  if (!function) return std::nullopt;
  std::vector<double> values = to_doubles(x);
  std::ranges::transform(values, values.begin(), function);
  return from_doubles(type.type, type.shape, values);
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  for (uint64_t factor = bits(base); exponent > 0; exponent >>= 1, factor *= factor) {
    if ((exponent & 1) != 0) result *= factor;
  }
  return wrap(result);
}

// The dividend's sign.
int64_t integer_remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

// The divisor's sign.
int64_t integer_modulo(int64_t a, int64_t b) {
  const int64_t remainder = integer_remainder(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double real_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t integer_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrap(-bits(a)) : a / b;
}

std::function<int64_t(int64_t, int64_t)> integer_function(Function function) {
  switch (function) {
    case Function::kAdd: return [](int64_t a, int64_t b) { return wrap(bits(a) + bits(b)); };
    case Function::kSub: return [](int64_t a, int64_t b) { return wrap(bits(a) - bits(b)); };
    case Function::kMul: return [](int64_t a, int64_t b) { return wrap(bits(a) * bits(b)); };
    case Function::kDiv: return integer_quotient;
    case Function::kMod: return integer_modulo;
    case Function::kFmod: return integer_remainder;
    case Function::kPow: return integer_power;
    case Function::kAnd: return [](int64_t a, int64_t b) { return int64_t{a != 0 && b != 0}; };
    case Function::kOr: return [](int64_t a, int64_t b) { return int64_t{a != 0 || b != 0}; };
    case Function::kXor: return [](int64_t a, int64_t b) { return int64_t{(a != 0) != (b != 0)}; };
    default: return {};
  }
}

std::function<double(double, double)> real_function(Function function) {
  switch (function) {
    case Function::kAdd: return [](double a, double b) { return a + b; };
    case Function::kSub: return [](double a, double b) { return a - b; };
    case Function::kMul: return [](double a, double b) { return a * b; };
    case Function::kDiv: return [](double a, double b) { return a / b; };
    case Function::kPow: return [](double a, double b) { return std::pow(a, b); };
    case Function::kMod: return real_modulo;
    case Function::kFmod: return [](double a, double b) { return std::fmod(a, b); };
    case Function::kPrelu: return [](double a, double b) { return a < 0 ? a * b : a; };
    default: return {};
  }
}

// Those that read the same for integers and reals.
template <typename T>
std::function<T(T, T)> ordering_function(Function function) {
  switch (function) {
    case Function::kMin: return [](T a, T b) { return b != b ? b : std::min(a, b); };
    case Function::kMax: return [](T a, T b) { return b != b ? b : std::max(a, b); };
    case Function::kEqual: return [](T a, T b) { return T(a == b); };
    case Function::kLess: return [](T a, T b) { return T(a < b); };
    case Function::kLessOrEqual: return [](T a, T b) { return T(a <= b); };
    case Function::kGreater: return [](T a, T b) { return T(a > b); };
    case Function::kGreaterOrEqual: return [](T a, T b) { return T(a >= b); };
    default: return {};
  }
}

template <typename T>
std::vector<T> combine(const std::vector<T>& a, const Shape& a_shape, const std::vector<T>& b, const Shape& b_shape,
                       const Shape& shape, const std::function<T(T, T)>& function) {
  std::vector<T> result(element_count(shape));
  for_each_element(shape, broadcast_strides(a_shape, shape), 0,
                   [&](uint64_t i, int64_t position) { result[i] = a[static_cast<size_t>(position)]; });
  for_each_element(shape, broadcast_strides(b_shape, shape), 0, [&](uint64_t i, int64_t position) {
    result[i] = function(result[i], b[static_cast<size_t>(position)]);
  });
  return result;
}

std::optional<Constant> binary(const Constant& a, const Constant& b, Function operation, const ValueType& type) {
  if (is_integer(a.type)) {
    auto function = ordering_function<int64_t>(operation);
    if (!function) function = integer_function(operation);
    if (!function) return std::nullopt;
    return from_integers(type.type, type.shape,
                         combine(to_integers(a), a.shape, to_integers(b), b.shape, type.shape, function));
  }
  auto function = ordering_function<double>(operation);
  if (!function) function = real_function(operation);
  if (!function) return std::nullopt;
  return from_doubles(type.type, type.shape,
                      combine(to_doubles(a), a.shape, to_doubles(b), b.shape, type.shape, function));
}

// Sums, products and extremes; the other functions do not occur on constants.
std::optional<Constant> reduce(const Constant& x, const Attributes& attributes, const ValueType& type) {
  const Function operation = attributes.function();
  const bool mean = operation == Function::kMean;
  auto function = ordering_function<double>(operation);
  if (!function && (operation == Function::kSum || mean)) function = real_function(Function::kAdd);
  if (operation == Function::kProd) function = real_function(Function::kMul);
  if (!function || element_count(x.shape) == 0) return std::nullopt;

  Shape kept = x.shape;
  for (int64_t axis : attributes.integers("axes")) kept[static_cast<size_t>(axis)] = 1;
  const uint64_t count = element_count(kept);
  std::vector<double> result(count);
  std::vector<bool> started(count, false);
  const std::vector<double> values = to_doubles(x);
  for_each_element(x.shape, broadcast_strides(kept, x.shape), 0, [&](uint64_t i, int64_t position) {
    const auto at = static_cast<size_t>(position);
    result[at] = started[at] ? function(result[at], values[i]) : values[i];
    started[at] = true;
  });
  if (mean) {
    const uint64_t addends = values.size() / count;  // of each, so nothing is left over
    for (double& value : result) value /= static_cast<double>(addends);
  }
  return from_doubles(type.type, type.shape, result);
}

}  // namespace

std::optional<Constant> evaluate(OperatorKind kind, std::span<const Constant> inputs, const Attributes& attributes,
                                 const ValueType& type) {
  switch (kind) {
    case OperatorKind::kUnary: return unary(inputs[0], attributes, type);
    case OperatorKind::kBinary: return binary(inputs[0], inputs[1], attributes.function(), type);
    case OperatorKind::kReduce: return reduce(inputs[0], attributes, type);
    case OperatorKind::kConcat: return concat(inputs, static_cast<size_t>(attributes.integer("axis")), type);
    case OperatorKind::kSlice: return slice(inputs[0], attributes, type.shape);
    case OperatorKind::kTranspose: return transpose(inputs[0], attributes.integers("permutation"), type.shape);
    case OperatorKind::kReshape: return Constant{type.type, type.shape, inputs[0].bytes};
    case OperatorKind::kGather:
      return gather(inputs[0], inputs[1], static_cast<size_t>(attributes.integer("axis")), type);
    case OperatorKind::kCast: return cast(inputs[0], type.type);
    case OperatorKind::kWhere: return where(inputs, type);
    case OperatorKind::kExpand: return pick(inputs[0], type.shape, broadcast_strides(inputs[0].shape, type.shape), 0);
    default: return std::nullopt;
  }
}

}  // namespace foliot
