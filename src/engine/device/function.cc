#include "engine/device/function.h"

#include <algorithm>
#include <array>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// In the order of the enum.
constexpr std::array kFunctionNames = std::to_array<std::string_view>({
    "relu",       "sigmoid",     "tanh",         "erf",    "exp",   "log",           "sqrt",    "neg",
    "abs",        "reciprocal",  "floor",        "ceil",   "round", "sign",          "not",     "gelu",
    "gelu_tanh",  "softplus",    "hard_swish",   "silu",   "sin",   "cos",           "tan",     "asin",
    "acos",       "atan",        "sinh",         "cosh",   "asinh", "acosh",         "atanh",   "clip",
    "leaky_relu", "elu",         "hard_sigmoid", "linear", "add",   "sub",           "mul",     "div",
    "pow",        "min",         "max",          "equal",  "less",  "less_or_equal", "greater", "greater_or_equal",
    "and",        "or",          "xor",          "mod",    "fmod",  "prelu",         "bit_and", "bit_or",
    "bit_xor",    "shift_left",  "shift_right",  "mean",   "sum",   "prod",          "l1",      "l2",
    "sum_square", "log_sum_exp", "none",
});
static_assert(kFunctionNames.size() == kFunctionCount);

}  // namespace

std::string_view to_string(Function function) {
  const auto position = static_cast<size_t>(function);
  FOLIOT_CHECK(position < kFunctionCount);
  return kFunctionNames[position];
}

std::optional<Function> parse_function(std::string_view name) {
  const auto found = std::ranges::find(kFunctionNames, name);
  if (found == kFunctionNames.end()) return std::nullopt;
  return static_cast<Function>(found - kFunctionNames.begin());
}

bool has_parameters(Function function) { return function >= Function::kClip && function <= Function::kLinear; }

}  // namespace foliot
