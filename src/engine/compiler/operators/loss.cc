// Losses, as models that report how well they do compute them.
#include <fmt/format.h>

#include <numeric>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// -log_probabilities[n, label[n, d..], d..] * weight[label], and its sum or mean.
Status negative_log_likelihood(NodeTranslation& node, Composer& c, ValueIndex log_probabilities) {
  Shape labels_shape = node.shape(1);
  if (node.rank(0) < 2 || labels_shape.size() + 1 != node.shape(0).size()) {
    return Status::invalid_argument(
        fmt::format("labels {} do not fit {}", to_string(labels_shape), to_string(node.shape(0))));
  }
  const std::string reduction = node.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return Status::invalid_argument("reduction is '" + reduction + "'");
  }
  const DataType type = node.value(0).type;
  ValueIndex labels = c.cast(node.input(1), DataType::kInt64);
  ValueIndex counts = kNoValue;  // what each sample weighs
  if (node.has_attribute("ignore_index")) {
    const ValueIndex ignored = c.binary(Function::kEqual, labels, c.integers({node.integer("ignore_index", 0)}, {}));
    labels = c.where(ignored, c.scalar(DataType::kInt64, 0), labels);
    counts = c.where(ignored, c.scalar(type, 0), c.scalar(type, 1));
  }
  if (node.has_input(2)) {
    const ValueIndex weights = c.gather(node.input(2), labels, 0);
    counts = counts == kNoValue ? weights : c.mul(counts, weights);
  }
  Shape one = labels_shape;
  one.insert(one.begin() + 1, 1);
  ValueIndex loss = c.reshape(c.gather_elements(log_probabilities, c.reshape(labels, one), 1), labels_shape);
  loss = c.unary(Function::kNeg, loss);
  if (counts != kNoValue) loss = c.mul(loss, counts);
  std::vector<int64_t> all(labels_shape.size());
  std::iota(all.begin(), all.end(), 0);
  if (reduction == "mean" && counts == kNoValue) return c.finish(node, c.reduce(Function::kMean, loss, all, false));
  if (reduction != "none") loss = c.reduce(Function::kSum, loss, all, false);
  if (reduction == "mean") loss = c.div(loss, c.reduce(Function::kSum, counts, all, false));
  return c.finish(node, loss);
}

Status negative_log_likelihood_loss(NodeTranslation& node) {
  Composer c(node.builder());
  return negative_log_likelihood(node, c, node.input(0));
}

Status softmax_cross_entropy_loss(NodeTranslation& node) {
  if (node.rank(0) < 2) return Status::invalid_argument("the scores have no classes");
  Composer c(node.builder());
  const ValueIndex log_probabilities = c.softmax(node.input(0), 1, true);
  FOLIOT_RETURN_IF_ERROR(negative_log_likelihood(node, c, log_probabilities));
  return c.finish(node, log_probabilities, 1);
}

constexpr OnnxOperator kLossOperators[] = {
    {"NegativeLogLikelihoodLoss", 2, 3, negative_log_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", 2, 3, softmax_cross_entropy_loss},
};

}  // namespace

std::span<const OnnxOperator> loss_operators() { return kLossOperators; }

}  // namespace foliot
