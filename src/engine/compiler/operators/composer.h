// Composer: writes the graph of an ONNX operator that is made up of simpler ones, like
// its formula:
//
//   Composer c(node.builder());
//   const ValueIndex gate = c.unary(Function::kSigmoid, x);
//   return c.finish(node, c.mul(x, gate));
//
// Operands may have any shape: what does not fit is an error, not a bug.
//
// The first call that fails is kept for status(); it and all later ones return
// kNoValue, which later calls accept.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_COMPOSER_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_COMPOSER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/compiler/operators/node_translation.h"

namespace foliot {

class Composer {
 public:
  // `builder` must outlive it.
  explicit Composer(GraphBuilder& builder) : builder_(builder) {}

  const Status& status() const { return status_; }
  // An error unless the condition holds.
  void require(bool condition, const char* otherwise);
  // Sets the node's output, unless a call failed.
  Status finish(NodeTranslation& node, ValueIndex result, size_t output = 0);

  // After an error: a shape of sixteen ones, so that any of its dimensions can be looked at.
  Shape shape(ValueIndex x) const;
  DataType type(ValueIndex x) const;
  int64_t rank(ValueIndex x) const { return static_cast<int64_t>(shape(x).size()); }

  ValueIndex constant(Constant constant);
  ValueIndex integers(const std::vector<int64_t>& values, Shape shape);
  ValueIndex scalar(DataType type, double value) { return constant(make_scalar(type, value)); }
  // A scalar of x's type.
  ValueIndex like(ValueIndex x, double value) { return scalar(type(x), value); }
  // 0, 1, ..., count - 1 along dimension `axis` of `rank`; the others are 1.
  ValueIndex positions(int64_t count, size_t axis = 0, size_t rank = 1);

  ValueIndex unary(Function function, ValueIndex x, double alpha = 0, double beta = 0);
  ValueIndex binary(Function function, ValueIndex a, ValueIndex b);
  ValueIndex add(ValueIndex a, ValueIndex b) { return binary(Function::kAdd, a, b); }
  ValueIndex sub(ValueIndex a, ValueIndex b) { return binary(Function::kSub, a, b); }
  ValueIndex mul(ValueIndex a, ValueIndex b) { return binary(Function::kMul, a, b); }
  ValueIndex div(ValueIndex a, ValueIndex b) { return binary(Function::kDiv, a, b); }
  // alpha * x + beta
  ValueIndex linear(ValueIndex x, double alpha, double beta = 0) { return unary(Function::kLinear, x, alpha, beta); }
  ValueIndex where(ValueIndex condition, ValueIndex a, ValueIndex b);
  ValueIndex cast(ValueIndex x, DataType type);
  // The bits of x as another type of the same size.
  ValueIndex reinterpret(ValueIndex x, DataType type);

  ValueIndex reshape(ValueIndex x, Shape shape);
  ValueIndex transpose(ValueIndex x, std::vector<int64_t> permutation);
  ValueIndex expand(ValueIndex x, Shape shape);
  ValueIndex concat(std::vector<ValueIndex> parts, int64_t axis);
  // `count` positions of dimension `axis` from `start` on.
  ValueIndex slice(ValueIndex x, int64_t axis, int64_t start, int64_t count, int64_t step = 1);
  // Begins and ends of every dimension, of zeros or the bits of `value`.
  ValueIndex pad(ValueIndex x, std::vector<int64_t> pads, double value = 0);
  ValueIndex gather(ValueIndex x, ValueIndex indices, int64_t axis);
  ValueIndex gather_elements(ValueIndex x, ValueIndex indices, int64_t axis);
  ValueIndex scatter_elements(ValueIndex x, ValueIndex indices, ValueIndex updates, int64_t axis,
                              Function reduction = Function::kNone);

  // `axes` in any order; kept as dimensions of 1 with `keep`.
  ValueIndex reduce(Function function, ValueIndex x, std::vector<int64_t> axes, bool keep = true);
  ValueIndex arg_max(ValueIndex x, int64_t axis, bool keep = true);
  ValueIndex cumulative(Function function, ValueIndex x, int64_t axis, bool exclusive, bool reverse);
  ValueIndex matmul(ValueIndex a, ValueIndex b, bool transpose_a = false, bool transpose_b = false, double alpha = 1);
  ValueIndex softmax(ValueIndex x, int64_t axis, bool log = false);
  ValueIndex emit(OperatorKind kind, std::vector<ValueIndex> inputs, Attributes attributes,
                  std::optional<ValueType> type = std::nullopt);

 private:
  ValueIndex keep(Result<ValueIndex> result);
  // Whether x has this dimension; if not, that is an error. Models come from
  // outside, so operands may be of any shape.
  bool has_dimension(ValueIndex x, int64_t axis);
  bool failed() const { return !status_.ok(); }

  GraphBuilder& builder_;
  Status status_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_COMPOSER_H_
