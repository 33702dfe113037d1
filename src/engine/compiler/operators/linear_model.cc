// Linear models and support vector machines, of ai.onnx.ml.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/compiler/operators/attribute_check.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/compiler/operators/post_transform.h"

namespace foliot {
namespace {

ValueIndex matrix(Composer& c, int64_t rows, int64_t columns, const std::vector<float>& values) {
  return c.constant(make_constant({rows, columns}, std::span(values)));
}

// rows * coefficients' + intercepts. The coefficients are those of one target after the other.
Result<ValueIndex> linear_scores(NodeTranslation& node, Composer& c, int64_t targets) {
  const ValueIndex x = feature_rows(c, node);
  FOLIOT_RETURN_IF_ERROR(c.status());
  const int64_t features = c.shape(x)[1];
  const std::vector<float> coefficients = node.reals("coefficients"), intercepts = node.reals("intercepts");
  FOLIOT_RETURN_IF_ERROR(check_value_count("coefficients", coefficients.size(), static_cast<size_t>(targets * features),
                                           fmt::format("for {} features and {} scores", features, targets)));
  const ValueIndex product = c.matmul(x, matrix(c, targets, features, coefficients), false, true);
  if (intercepts.empty()) return product;
  FOLIOT_RETURN_IF_ERROR(
      check_value_count("intercepts", intercepts.size(), static_cast<size_t>(targets), "one for each score"));
  return c.add(product, matrix(c, 1, targets, intercepts));
}

Status linear_regressor(NodeTranslation& node) {
  Composer c(node.builder());
  const int64_t targets = node.integer("targets", 1);
  if (targets < 1) return invalid("targets is {}, less than 1", targets);
  FOLIOT_ASSIGN_OR_RETURN(const PostTransform transform, parse_post_transform(node.text("post_transform", "NONE")));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scores, linear_scores(node, c, targets));
  return c.finish(node, post_transformed(c, scores, transform));
}

// One score for two classes is that of the second.
Status linear_classifier(NodeTranslation& node) {
  Composer c(node.builder());
  FOLIOT_ASSIGN_OR_RETURN(const PostTransform transform, parse_post_transform(node.text("post_transform", "NONE")));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, class_labels(node, "classlabels_ints"));
  const bool one_for_two = labels.size() == 2 && node.rank(0) > 0 &&
                           node.reals("coefficients").size() == static_cast<size_t>(node.shape(0).back());
  const auto targets = static_cast<int64_t>(one_for_two ? 1 : labels.size());
  FOLIOT_ASSIGN_OR_RETURN(ValueIndex scores, linear_scores(node, c, targets));
  if (one_for_two || labels.size() == 1) {
    if (transform == PostTransform::kProbit) {
      return Status::unimplemented("post_transform PROBIT of a single score is not supported; use LOGISTIC or NONE");
    }
    const int64_t negative = one_for_two ? labels[0] : 0, positive = one_for_two ? labels[1] : 1;
    FOLIOT_RETURN_IF_ERROR(c.finish(node, binary_labels(c, scores, 0, negative, positive)));
    if (transform == PostTransform::kLogistic) scores = post_transformed(c, scores, transform);
    if (one_for_two) scores = c.concat({c.linear(scores, -1, 1), scores}, 1);
    return c.finish(node, scores, 1);
  }
  FOLIOT_RETURN_IF_ERROR(c.finish(node, labels_at(c, c.arg_max(scores, 1, false), labels)));
  return c.finish(node, post_transformed(c, scores, transform), 1);
}

enum class KernelType : uint8_t { kLinear, kPolynomial, kRadial, kSigmoid };

// How much alike a row and a support vector are.
struct SimilarityKernel {
  KernelType type = KernelType::kLinear;
  double gamma = 0, offset = 0, degree = 0;
};

Result<SimilarityKernel> similarity_kernel(NodeTranslation& node) {
  SimilarityKernel kernel;
  const std::string name = node.text("kernel_type", "LINEAR");
  const std::vector<float> parameters = node.reals("kernel_params");
  if (name == "POLY") kernel.type = KernelType::kPolynomial;
  if (name == "RBF") kernel.type = KernelType::kRadial;
  if (name == "SIGMOID") kernel.type = KernelType::kSigmoid;
  if (kernel.type == KernelType::kLinear && name != "LINEAR") {
    return invalid("kernel_type is '{}', not LINEAR, POLY, RBF or SIGMOID", name);
  }
  if (parameters.size() != 3 && (!parameters.empty() || kernel.type != KernelType::kLinear)) {
    return invalid("attribute 'kernel_params' has {} values instead of 3: gamma, coef0 and degree", parameters.size());
  }
  if (!parameters.empty()) {
    kernel.gamma = parameters[0];
    kernel.offset = parameters[1];
    kernel.degree = parameters[2];
  }
  return kernel;
}

struct SupportVectors {
  int64_t count, features;
  std::vector<float> values;  // [count, features]
};

Result<SupportVectors> support_vectors(NodeTranslation& node, int64_t count, int64_t features) {
  std::vector<float> values = node.reals("support_vectors");
  FOLIOT_RETURN_IF_ERROR(check_value_count("support_vectors", values.size(), static_cast<size_t>(count * features),
                                           fmt::format("for {} vectors of {} features", count, features)));
  return SupportVectors{count, features, std::move(values)};
}

// exp(-gamma |x - v|^2), by the products of what is left of x and v when the vectors' mean is
// taken away: where both are far from zero, their products would lose the difference.
ValueIndex radial_similarities(Composer& c, ValueIndex x, SupportVectors vectors, double gamma) {
  const auto width = static_cast<size_t>(vectors.features);
  std::vector<double> sums(width);
  for (size_t i = 0; i < vectors.values.size(); ++i) sums[i % width] += vectors.values[i];
  std::vector<float> mean(width);
  for (size_t i = 0; i < width; ++i) mean[i] = static_cast<float>(sums[i] / static_cast<double>(vectors.count));
  std::vector<float> squares(static_cast<size_t>(vectors.count));
  for (size_t i = 0; i < vectors.values.size(); ++i) {
    vectors.values[i] -= mean[i % width];
    squares[i / width] += vectors.values[i] * vectors.values[i];
  }
  const ValueIndex centred = c.sub(x, matrix(c, 1, vectors.features, mean));
  const ValueIndex product =
      c.matmul(centred, matrix(c, vectors.count, vectors.features, vectors.values), false, true, -2);
  const ValueIndex own = c.reduce(Function::kSumSquare, centred, {1});
  const ValueIndex distance = c.add(c.add(product, own), matrix(c, 1, vectors.count, squares));
  return c.unary(Function::kExp, c.linear(c.unary(Function::kRelu, distance), -gamma));
}

// Of each row and each vector.
ValueIndex similarities(Composer& c, ValueIndex x, SupportVectors vectors, const SimilarityKernel& kernel) {
  if (kernel.type == KernelType::kRadial) return radial_similarities(c, x, std::move(vectors), kernel.gamma);
  const ValueIndex product = c.matmul(x, matrix(c, vectors.count, vectors.features, vectors.values), false, true);
  if (kernel.type == KernelType::kLinear) return product;
  const ValueIndex scaled = c.linear(product, kernel.gamma, kernel.offset);
  if (kernel.type == KernelType::kSigmoid) return c.unary(Function::kTanh, scaled);
  return c.binary(Function::kPow, scaled, c.like(scaled, kernel.degree));
}

// rows * weights + addends in float64, since many addends may cancel; back to float32.
ValueIndex exact_product(Composer& c, ValueIndex rows, Shape shape, const std::vector<double>& weights,
                         const std::vector<double>& addends) {
  const int64_t columns = shape[1];
  const ValueIndex factor = c.constant(from_doubles(DataType::kFloat64, std::move(shape), weights));
  const ValueIndex product = c.matmul(c.cast(rows, DataType::kFloat64), factor);
  return c.cast(c.add(product, c.constant(from_doubles(DataType::kFloat64, {1, columns}, addends))),
                DataType::kFloat32);
}

Status svm_regressor(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = feature_rows(c, node);
  FOLIOT_RETURN_IF_ERROR(c.status());
  FOLIOT_ASSIGN_OR_RETURN(SimilarityKernel kernel, similarity_kernel(node));
  if (node.text("post_transform", "NONE") != "NONE")
    return Status::unimplemented("only post_transform NONE is supported");
  const std::vector<float> coefficients = node.reals("coefficients"), rho = node.reals("rho");
  FOLIOT_RETURN_IF_ERROR(check_value_count("rho", rho.size(), 1, "for a regression"));
  const int64_t count = node.integer("n_supports", 0);
  ValueIndex rows = x;
  if (count > 0) {
    FOLIOT_ASSIGN_OR_RETURN(SupportVectors vectors, support_vectors(node, count, c.shape(x)[1]));
    rows = similarities(c, x, std::move(vectors), kernel);
  }
  const int64_t width = c.shape(rows)[1];
  FOLIOT_RETURN_IF_ERROR(c.status());
  FOLIOT_RETURN_IF_ERROR(check_value_count("coefficients", coefficients.size(), static_cast<size_t>(width),
                                           count > 0 ? "one for each support vector" : "one for each feature"));
  const std::vector<double> weights(coefficients.begin(), coefficients.end());
  const ValueIndex sum = exact_product(c, rows, {width, 1}, weights, {rho[0]});
  if (node.integer("one_class", 0) == 0) return c.finish(node, sum);
  const ValueIndex inside = c.binary(Function::kGreater, sum, c.like(sum, 0));
  return c.finish(node, c.where(inside, c.like(sum, 1), c.like(sum, -1)));
}

// Every two classes have a classifier of their own.
class PairwiseClassifier {
 public:
  PairwiseClassifier(NodeTranslation& node, Composer& c, std::vector<int64_t> labels)
      : node_(node),
        c_(c),
        labels_(std::move(labels)),
        classes_(static_cast<int64_t>(labels_.size())),
        pairs_(classes_ * (classes_ - 1) / 2) {}

  Status translate(ValueIndex x, const std::vector<int64_t>& vectors_per_class, PostTransform transform) {
    if (classes_ < 2) return invalid("support vectors of {} classes; at least 2 are needed", classes_);
    FOLIOT_RETURN_IF_ERROR(
        check_value_count("vectors_per_class", vectors_per_class.size(), labels_.size(), "one for each class"));
    for (int64_t count : vectors_per_class) {
      if (count < 0 || count > kVectorsMax) return invalid("attribute 'vectors_per_class' has {}", count);
    }
    FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scores, pair_scores(x, vectors_per_class));
    FOLIOT_RETURN_IF_ERROR(c_.finish(node_, labels_at(c_, c_.arg_max(votes(scores), 1, false), labels_)));
    FOLIOT_ASSIGN_OR_RETURN(const ValueIndex result, class_scores(scores, transform));
    return c_.finish(node_, result, 1);
  }

 private:
  static constexpr int64_t kVectorsMax = 10'000'000;

  // Class i against class j, for all i < j. A classifier's vectors are those of its two classes.
  Result<ValueIndex> pair_scores(ValueIndex x, const std::vector<int64_t>& vectors_per_class) {
    const int64_t count = std::accumulate(vectors_per_class.begin(), vectors_per_class.end(), int64_t{0});
    FOLIOT_ASSIGN_OR_RETURN(SupportVectors vectors, support_vectors(node_, count, c_.shape(x)[1]));
    const std::vector<float> coefficients = node_.reals("coefficients"), rho = node_.reals("rho");
    FOLIOT_RETURN_IF_ERROR(check_value_count("coefficients", coefficients.size(),
                                             static_cast<size_t>((classes_ - 1) * count),
                                             fmt::format("for {} classes and {} vectors", classes_, count)));
    FOLIOT_RETURN_IF_ERROR(check_pairs("rho", rho));
    FOLIOT_ASSIGN_OR_RETURN(const SimilarityKernel kernel, similarity_kernel(node_));
    FOLIOT_RETURN_IF_ERROR(check_shape(DataType::kFloat64, {count, pairs_}));
    std::vector<int64_t> starts{0};
    for (int64_t own : vectors_per_class) starts.push_back(starts.back() + own);
    std::vector<double> weights(static_cast<size_t>(count * pairs_));
    int64_t pair = 0;
    const auto put = [&](int64_t of, int64_t row) {
      for (int64_t m = starts[static_cast<size_t>(of)]; m < starts[static_cast<size_t>(of) + 1]; ++m)
        weights[static_cast<size_t>(m * pairs_ + pair)] = coefficients[static_cast<size_t>(row * count + m)];
    };
    for (int64_t i = 0; i < classes_; ++i) {
      for (int64_t j = i + 1; j < classes_; ++j, ++pair) {
        put(i, j - 1);
        put(j, i);
      }
    }
    return exact_product(c_, similarities(c_, x, std::move(vectors), kernel), {count, pairs_}, weights,
                         std::vector<double>(rho.begin(), rho.end()));
  }

  Status check_pairs(std::string_view name, const std::vector<float>& values) const {
    return check_value_count(name, values.size(), static_cast<size_t>(pairs_), fmt::format("for {} classes", classes_));
  }

  // How many of its classifiers each class wins.
  ValueIndex votes(ValueIndex scores) {
    const ValueIndex wins = c_.cast(c_.binary(Function::kGreater, scores, c_.like(scores, 0)), DataType::kFloat32);
    std::vector<float> change(static_cast<size_t>(pairs_ * classes_)), lost(static_cast<size_t>(classes_));
    size_t row = 0;
    for (int64_t i = 0; i < classes_; ++i) {
      for (int64_t j = i + 1; j < classes_; ++j, row += static_cast<size_t>(classes_)) {
        change[row + static_cast<size_t>(i)] = 1;
        change[row + static_cast<size_t>(j)] = -1;
        ++lost[static_cast<size_t>(j)];
      }
    }
    return c_.add(c_.matmul(wins, matrix(c_, pairs_, classes_, change)), matrix(c_, 1, classes_, lost));
  }

  Result<ValueIndex> class_scores(ValueIndex scores, PostTransform transform) {
    const std::vector<float> a = node_.reals("prob_a"), b = node_.reals("prob_b");
    if (!a.empty() || !b.empty()) {
      FOLIOT_RETURN_IF_ERROR(check_pairs("prob_a", a));
      FOLIOT_RETURN_IF_ERROR(check_pairs("prob_b", b));
      return post_transformed(c_, probabilities(scores, a, b), transform);
    }
    if (classes_ > 2) return post_transformed(c_, scores, transform);
    if (transform == PostTransform::kLogistic) scores = c_.unary(Function::kSigmoid, scores);
    const ValueIndex other =
        transform == PostTransform::kNone ? c_.unary(Function::kNeg, scores) : c_.linear(scores, -1, 1);
    return c_.concat({other, scores}, 1);
  }

  // Of each class, from the probabilities that its classifiers give it (Platt's method).
  ValueIndex probabilities(ValueIndex scores, const std::vector<float>& a, const std::vector<float>& b) {
    constexpr double kLeast = 1e-7F;
    const ValueIndex decision = c_.add(c_.mul(scores, matrix(c_, 1, pairs_, a)), matrix(c_, 1, pairs_, b));
    const ValueIndex pairwise = c_.unary(Function::kSigmoid, c_.unary(Function::kNeg, decision));
    return c_.emit(OperatorKind::kPairCoupling, {c_.unary(Function::kClip, pairwise, kLeast, 1 - kLeast)}, {},
                   ValueType{DataType::kFloat32, {c_.shape(scores)[0], classes_}});
  }

  NodeTranslation& node_;
  Composer& c_;
  const std::vector<int64_t> labels_;
  const int64_t classes_, pairs_;
};

// Without support vectors: a linear model with one offset.
Status linear_svm(NodeTranslation& node, Composer& c, ValueIndex x, const std::vector<int64_t>& labels,
                  PostTransform transform) {
  const auto classes = static_cast<int64_t>(labels.size());
  const int64_t features = c.shape(x)[1];
  const std::vector<float> coefficients = node.reals("coefficients"), rho = node.reals("rho");
  FOLIOT_RETURN_IF_ERROR(check_value_count("coefficients", coefficients.size(), static_cast<size_t>(classes * features),
                                           fmt::format("for {} features and {} classes", features, classes)));
  if (rho.empty()) return invalid("attribute 'rho' is missing or empty");
  const ValueIndex scores = c.linear(c.matmul(x, matrix(c, classes, features, coefficients), false, true), 1, rho[0]);
  const ValueIndex best = labels_at(c, c.arg_max(scores, 1, false), labels);
  FOLIOT_RETURN_IF_ERROR(c.finish(node, best));
  return c.finish(node, post_transformed(c, scores, transform), 1);
}

Status svm_classifier(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = feature_rows(c, node);
  FOLIOT_RETURN_IF_ERROR(c.status());
  FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> labels, class_labels(node, "classlabels_ints"));
  FOLIOT_ASSIGN_OR_RETURN(const PostTransform transform, parse_post_transform(node.text("post_transform", "NONE")));
  constexpr size_t kClassesMax = 1000;  // of which every two have a classifier
  if (labels.size() > kClassesMax)
    return invalid("it has {} classes, at most {} are supported", labels.size(), kClassesMax);
  const std::vector<int64_t> vectors_per_class = node.integers("vectors_per_class");
  if (vectors_per_class.empty()) return linear_svm(node, c, x, labels, transform);
  return PairwiseClassifier(node, c, std::move(labels)).translate(x, vectors_per_class, transform);
}

constexpr OnnxOperator kLinearModelOperators[] = {
    {"LinearRegressor", 1, 1, linear_regressor},
    {"LinearClassifier", 1, 1, linear_classifier},
    {"SVMRegressor", 1, 1, svm_regressor},
    {"SVMClassifier", 1, 1, svm_classifier},
};

}  // namespace

std::span<const OnnxOperator> linear_model_operators() { return kLinearModelOperators; }

}  // namespace foliot
