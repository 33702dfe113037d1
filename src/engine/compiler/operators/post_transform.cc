#include "engine/compiler/operators/post_transform.h"

#include <fmt/format.h>

#include <numbers>
#include <numeric>

namespace foliot {
namespace {

// Softmax over what is not zero; zeros stay.
ValueIndex softmax_zero(Composer& c, ValueIndex scores) {
  constexpr double kZero = 1e-7;
  const ValueIndex is_some = c.binary(Function::kGreater, c.unary(Function::kAbs, scores), c.like(scores, kZero));
  const ValueIndex largest = c.reduce(Function::kMax, scores, {1});
  const ValueIndex powers = c.unary(Function::kExp, c.sub(scores, largest));
  const ValueIndex sum = c.reduce(Function::kSum, c.where(is_some, powers, c.like(scores, 0)), {1});
  const ValueIndex small = c.mul(scores, c.unary(Function::kExp, c.unary(Function::kNeg, largest)));
  return c.div(c.where(is_some, powers, small), sum);
}

// The inverse of the normal distribution, by Winitzki's approximation of the inverse of erf, which
// onnxruntime uses.
ValueIndex probit(Composer& c, ValueIndex scores) {
  constexpr double kA = 0.147F;
  const ValueIndex x = c.linear(scores, 2, -1);
  const ValueIndex log = c.unary(Function::kLog, c.mul(c.linear(x, -1, 1), c.linear(x, 1, 1)));
  const ValueIndex v = c.linear(log, 0.5, 2 / (std::numbers::pi * kA));
  const ValueIndex root = c.unary(Function::kSqrt, c.sub(c.mul(v, v), c.linear(log, 1 / kA)));
  const ValueIndex magnitude = c.unary(Function::kSqrt, c.sub(root, v));
  return c.linear(c.mul(c.unary(Function::kSign, x), magnitude), std::numbers::sqrt2);
}

}  // namespace

Result<PostTransform> parse_post_transform(std::string_view name) {
  if (name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  return Status::invalid_argument(
      fmt::format("post_transform is '{}', not NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT", name));
}

ValueIndex post_transformed(Composer& c, ValueIndex scores, PostTransform transform) {
  switch (transform) {
    case PostTransform::kNone: return scores;
    case PostTransform::kSoftmax: return c.softmax(scores, 1);
    case PostTransform::kLogistic: return c.unary(Function::kSigmoid, scores);
    case PostTransform::kSoftmaxZero: return softmax_zero(c, scores);
    case PostTransform::kProbit: return probit(c, scores);
  }
  return scores;
}

Result<std::vector<int64_t>> class_labels(NodeTranslation& node, std::string_view integers) {
  std::vector<int64_t> labels = node.integers(integers);
  if (const size_t names = node.texts("classlabels_strings").size(); names > 0) {
    labels.resize(names);
    std::iota(labels.begin(), labels.end(), 0);
  }
  if (!labels.empty()) return labels;
  return Status::invalid_argument(fmt::format("attributes '{}' and 'classlabels_strings' are missing", integers));
}

ValueIndex labels_at(Composer& c, ValueIndex positions, const std::vector<int64_t>& labels) {
  bool counts = true;
  for (size_t i = 0; i < labels.size(); ++i) counts = counts && labels[i] == static_cast<int64_t>(i);
  if (counts) return positions;
  return c.gather(c.integers(labels, {static_cast<int64_t>(labels.size())}), positions, 0);
}

ValueIndex binary_labels(Composer& c, ValueIndex score, double limit, int64_t negative, int64_t positive) {
  const ValueIndex above = c.binary(Function::kGreater, score, c.like(score, limit));
  const auto label = [&](int64_t value) { return c.integers({value}, {1}); };
  return c.reshape(c.where(above, label(positive), label(negative)), {c.shape(score)[0]});
}

ValueIndex feature_rows(Composer& c, NodeTranslation& node) {
  ValueIndex x = c.cast(node.input(0), DataType::kFloat32);
  if (node.rank(0) == 1) x = c.reshape(x, {1, c.shape(x)[0]});
  c.require(c.rank(x) == 2 && c.shape(x)[1] > 0, "the input is not a matrix of rows and features");
  return x;
}

}  // namespace foliot
