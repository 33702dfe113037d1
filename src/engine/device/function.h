// Function: what an element-wise operator, a reduction or a post-operation computes.
// operator.h says which kind of operator takes which; a plan that combines others is
// refused where it is lowered or prepared.
//
// In packages, models of tests and messages a function has a name; everywhere else it
// is this enum.
#ifndef FOLIOT_ENGINE_DEVICE_FUNCTION_H_
#define FOLIOT_ENGINE_DEVICE_FUNCTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace foliot {

enum class Function : uint8_t {
  // Of one operand.
  kRelu,
  kSigmoid,
  kTanh,
  kErf,
  kExp,
  kLog,
  kSqrt,
  kNeg,
  kAbs,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,
  kSign,
  kNot,
  kGelu,      // exact, by erf
  kGeluTanh,  // approximated by tanh
  kSoftplus,
  kHardSwish,
  kSilu,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  // Of one operand, with parameters alpha and beta.
  kClip,         // alpha: the least value, beta: the greatest
  kLeakyRelu,    // alpha
  kElu,          // alpha
  kHardSigmoid,  // clip(alpha * x + beta, 0, 1)
  kLinear,       // alpha * x + beta
  // Of two operands.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMin,
  kMax,
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kAnd,
  kOr,
  kXor,
  kMod,    // the divisor's sign
  kFmod,   // the dividend's sign
  kPrelu,  // a < 0 ? a * b : a
  // Of two integers.
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,   // by b bits, filling with zeros
  kShiftRight,  // by b bits, filling with zeros or the sign
  // Reductions; kMin and kMax are others.
  kMean,
  kSum,
  kProd,
  kL1,
  kL2,
  kSumSquare,
  kLogSumExp,
  // Of an update: it replaces what is there.
  kNone,
};

inline constexpr size_t kFunctionCount = static_cast<size_t>(Function::kNone) + 1;

std::string_view to_string(Function function);  // "relu"
std::optional<Function> parse_function(std::string_view name);

// Takes alpha and beta.
bool has_parameters(Function function);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_FUNCTION_H_
