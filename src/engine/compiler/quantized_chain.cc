#include "engine/compiler/quantized_chain.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foliot {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kCodeMax = 255;

// Two operands and a bias; operands of post-operations stand behind them.
constexpr size_t kQuantizedInputs = 3;

}  // namespace

QuantizedChain::QuantizedChain(GraphEditor& editor, Node node, Meaning meaning)
    : editor_(editor), node_(std::move(node)), meaning_(meaning) {
  node_.inputs.resize(std::max(node_.inputs.size(), kQuantizedInputs), kNoValue);
}

void QuantizedChain::append(Function function, double alpha, double beta) {
  has_linear_ = has_linear_ || function == Function::kLinear;
  node_.post_operations.push_back(
      {.kind = PostOperation::Kind::kActivation, .function = function, .alpha = alpha, .beta = beta, .input = 0});
}

void QuantizedChain::append_binary(Function function, ValueIndex operand) {
  node_.post_operations.push_back({.kind = PostOperation::Kind::kBinary,
                                   .function = function,
                                   .alpha = 0,
                                   .beta = 0,
                                   .input = static_cast<uint32_t>(node_.inputs.size())});
  node_.inputs.push_back(operand);
}

void QuantizedChain::append_scalar(Function function, double scalar) {
  const float value = static_cast<float>(scalar);
  append_binary(function, editor_.add_constant(node_.name, make_constant({1}, std::span(&value, 1))));
}

void QuantizedChain::express(Meaning meaning) {
  const double factor = meaning_.scale / meaning.scale;
  const double shift = (meaning_.offset - meaning.offset) / meaning.scale;
  meaning_ = meaning;
  if (factor == 1 && shift == 0) return;
  if (shift != 0 && !has_linear_) return append(Function::kLinear, factor, shift);
  if (factor != 1) append_scalar(Function::kMul, factor);
  if (shift != 0) append_scalar(Function::kAdd, shift);
}

void QuantizedChain::settle_bounds() {
  if (low_ > -kUnbounded) {
    if (in_hand(low_) == 0)
      append(Function::kRelu);
    else
      append_scalar(Function::kMax, in_hand(low_));
  }
  if (high_ < kUnbounded) append_scalar(Function::kMin, in_hand(high_));
  low_ = -kUnbounded;
  high_ = kUnbounded;
}

void QuantizedChain::forget_bounds_of_codes() {
  // Half a code does not matter: it is rounded.
  if (in_hand(low_) < 0.5) low_ = -kUnbounded;
  if (in_hand(high_) > kCodeMax - 0.5) high_ = kUnbounded;
}

void QuantizedChain::activate(const PostOperation& activation) {
  if (activation.function == Function::kRelu || activation.function == Function::kClip) {
    const bool relu = activation.function == Function::kRelu;
    const double low = relu ? 0 : activation.alpha, high = relu ? kUnbounded : activation.beta;
    low_ = std::min(std::max(low_, low), high);
    high_ = std::min(std::max(high_, low), high);
    return;
  }
  settle_bounds();
  express({});
  append(activation.function, activation.alpha, activation.beta);
}

void QuantizedChain::combine(Function function, ValueIndex operand) {
  settle_bounds();
  express({});
  append_binary(function, operand);
}

void QuantizedChain::add(const Quantized& addend) {
  settle_bounds();
  express({.scale = addend.scale, .offset = meaning_.offset});
  append_binary(Function::kAdd, addend.codes);
  meaning_.offset -= addend.scale * static_cast<double>(addend.zero_point);
}

void QuantizedChain::round(double scale, int64_t zero_point) {
  express(of_codes(scale, zero_point));
  forget_bounds_of_codes();
  settle_bounds();
  append(Function::kClip, 0, kCodeMax);
  append(Function::kRound);
}

void QuantizedChain::round_before_shift(double scale, int64_t zero_point) {
  express({.scale = scale, .offset = 0});
  const auto shift = static_cast<double>(zero_point);
  if (in_hand(low_) < 0.5 - shift) low_ = -kUnbounded;
  if (in_hand(high_) > kCodeMax - 0.5 - shift) high_ = kUnbounded;
  settle_bounds();
  append(Function::kRound);
  express(of_codes(scale, zero_point));
}

Node QuantizedChain::finish(double scale, int64_t zero_point) && {
  // A tie is rounded to the even quotient; behind an odd zero point that is an odd code. Elementwise functions of codes
  // meet ties often, sums of products hardly ever.
  if (node_.kind == OperatorKind::kBinary && zero_point % 2 != 0) round_before_shift(scale, zero_point);
  express(of_codes(scale, zero_point));
  forget_bounds_of_codes();
  settle_bounds();
  return std::move(node_);
}

Node QuantizedChain::finish() && {
  express({});
  settle_bounds();
  return std::move(node_);
}

}  // namespace foliot
