// QuantizedChain: the post-operations of a node that computes with codes of quantised
// values. The node's present value, t, stands for the real number scale * t + offset;
// each step of the model is expressed in terms of t, so that nothing is computed that
// quantising at the end does anyway.
#ifndef FOLIOT_ENGINE_COMPILER_QUANTIZED_CHAIN_H_
#define FOLIOT_ENGINE_COMPILER_QUANTIZED_CHAIN_H_

#include <limits>
#include <string>

#include "engine/compiler/graph_editor.h"
#include "engine/compiler/quantized_product.h"

namespace foliot {

class QuantizedChain {
 public:
  // The meaning of t: the real number scale * t + offset; scale > 0.
  struct Meaning {
    double scale = 1, offset = 0;
  };
  // That of a code.
  static Meaning of_codes(double scale, int64_t zero_point) {
    return {.scale = scale, .offset = -scale * static_cast<double>(zero_point)};
  }

  // `node` makes a t of this meaning. Its inputs are its own; operands come behind
  // them. `editor` must outlive the chain.
  QuantizedChain(GraphEditor& editor, Node node, Meaning meaning);

  // y = function(y)
  void activate(const PostOperation& activation);
  // y = y <function> operand, a float32 value
  void combine(Function function, ValueIndex operand);
  // y = y + addend, which has the result's shape
  void add(const Quantized& addend);
  // y = what is left of it as a code
  void round(double scale, int64_t zero_point);

  // The node with its post-operations; the caller sets its output.
  Node finish(double scale, int64_t zero_point) &&;  // to uint8
  Node finish() &&;                                  // to float32

 private:
  // Lets t be what it is under another meaning.
  void express(Meaning meaning);
  // Puts down the bounds, but for those that a range of codes implies.
  void settle_bounds();
  void forget_bounds_of_codes();
  // Makes quotients whole before the zero point is added.
  void round_before_shift(double scale, int64_t zero_point);
  double in_hand(double real) const { return (real - meaning_.offset) / meaning_.scale; }
  void append(Function function, double alpha = 0, double beta = 0);
  void append_scalar(Function function, double scalar);
  void append_binary(Function function, ValueIndex operand);

  GraphEditor& editor_;
  Node node_;
  Meaning meaning_;
  // The real number is known to be cut to these, which need not be done yet.
  double low_ = -std::numeric_limits<double>::infinity();
  double high_ = std::numeric_limits<double>::infinity();
  // Devices may have one set of parameters for each activation of a node.
  bool has_linear_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_QUANTIZED_CHAIN_H_
