#include "engine/device/conformance/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "engine/device/block_weights.h"
#include "engine/device/tree_node.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

using Arguments = std::vector<const Array*>;

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Calls body(index) for every index of a shape, in row-major order.
template <typename Body>
void for_each(const Shape& shape, const Body& body) {
  Shape index(shape.size(), 0);
  for (uint64_t left = element_count(shape); left > 0; --left) {
    body(index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

// The element at an index of a shape that the array broadcasts to.
double at(const Array& array, const Shape& index) {
  const size_t skip = index.size() - array.shape.size();
  int64_t offset = 0, stride = 1;
  for (size_t d = array.shape.size(); d-- > 0; stride *= array.shape[d])
    if (array.shape[d] != 1) offset += index[d + skip] * stride;
  return array.values.at(static_cast<size_t>(offset));
}

bool is_inside(const Shape& index, const Shape& shape) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (index[d] < 0 || index[d] >= shape[d]) return false;
  return true;
}

void fill(Array& result, const std::function<double(const Shape&)>& element) {
  for_each(result.shape, [&](const Shape& index) { result.values.push_back(element(index)); });
}

double unary(Function function, double x, double alpha, double beta) {
  if (function == Function::kRelu) return std::max(x, 0.0);
  if (function == Function::kSigmoid) return 1 / (1 + std::exp(-x));
  if (function == Function::kTanh) return std::tanh(x);
  if (function == Function::kErf) return std::erf(x);
  if (function == Function::kExp) return std::exp(x);
  if (function == Function::kLog) return std::log(x);
  if (function == Function::kSqrt) return std::sqrt(x);
  if (function == Function::kNeg) return -x;
  if (function == Function::kAbs) return std::abs(x);
  if (function == Function::kReciprocal) return 1 / x;
  if (function == Function::kFloor) return std::floor(x);
  if (function == Function::kCeil) return std::ceil(x);
  if (function == Function::kRound) return std::nearbyint(x);
  if (function == Function::kSign) return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
  if (function == Function::kNot) return x == 0;
  if (function == Function::kGelu) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (function == Function::kGeluTanh)
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (function == Function::kSoftplus) return std::log1p(std::exp(x));
  if (function == Function::kHardSwish) return x * std::clamp(x + 3, 0.0, 6.0) / 6;
  if (function == Function::kSilu) return x / (1 + std::exp(-x));
  if (function == Function::kSin) return std::sin(x);
  if (function == Function::kCos) return std::cos(x);
  if (function == Function::kTan) return std::tan(x);
  if (function == Function::kAsin) return std::asin(x);
  if (function == Function::kAcos) return std::acos(x);
  if (function == Function::kAtan) return std::atan(x);
  if (function == Function::kSinh) return std::sinh(x);
  if (function == Function::kCosh) return std::cosh(x);
  if (function == Function::kAsinh) return std::asinh(x);
  if (function == Function::kAcosh) return std::acosh(x);
  if (function == Function::kAtanh) return std::atanh(x);
  if (function == Function::kClip) return std::min(std::max(x, alpha), beta);
  if (function == Function::kLeakyRelu) return x < 0 ? alpha * x : x;
  if (function == Function::kElu) return x < 0 ? alpha * std::expm1(x) : x;
  if (function == Function::kHardSigmoid) return std::clamp(alpha * x + beta, 0.0, 1.0);
  FOLIOT_CHECK(function == Function::kLinear);
  return alpha * x + beta;
}

bool is_floating(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat64; }

double binary(Function function, double a, double b, bool floating) {
  if (function == Function::kAdd) return a + b;
  if (function == Function::kSub) return a - b;
  if (function == Function::kMul) return a * b;
  if (function == Function::kDiv) return floating ? a / b : b == 0 ? 0 : std::trunc(a / b);
  if (function == Function::kPow) return std::pow(a, b);
  if (function == Function::kMod) return !floating && b == 0 ? 0 : a - b * std::floor(a / b);
  if (function == Function::kFmod) return !floating && b == 0 ? 0 : std::fmod(a, b);
  if (function == Function::kShiftLeft) return a * std::exp2(b);
  if (function == Function::kShiftRight) return std::floor(a / std::exp2(b));
  const auto left = static_cast<int64_t>(a), right = static_cast<int64_t>(b);
  if (function == Function::kBitAnd) return static_cast<double>(left & right);
  if (function == Function::kBitOr) return static_cast<double>(left | right);
  if (function == Function::kBitXor) return static_cast<double>(left ^ right);
  if (function == Function::kMin) return std::isnan(b) ? b : std::min(a, b);
  if (function == Function::kMax) return std::isnan(b) ? b : std::max(a, b);
  if (function == Function::kEqual) return a == b;
  if (function == Function::kLess) return a < b;
  if (function == Function::kLessOrEqual) return a <= b;
  if (function == Function::kGreater) return a > b;
  if (function == Function::kGreaterOrEqual) return a >= b;
  if (function == Function::kAnd) return a != 0 && b != 0;
  if (function == Function::kOr) return a != 0 || b != 0;
  if (function == Function::kXor) return (a != 0) != (b != 0);
  FOLIOT_CHECK(function == Function::kPrelu);
  return a < 0 ? a * b : a;
}

// Windows over dimensions 2 and beyond.
class Window {
 public:
  explicit Window(const Attributes& attributes)
      : strides_(attributes.integers("strides")),
        dilations_(attributes.integers("dilations")),
        pads_(attributes.integers("pads")) {}

  // `index`, [a, b, ...], of what the step whose last dimensions are those of `k` reads, of the window at `position`.
  void find(Shape& index, int64_t a, int64_t b, const Shape& position, const Shape& k) const {
    index.resize(position.size());
    index[0] = a;
    index[1] = b;
    const size_t rank = position.size() - 2, first = k.size() - rank;
    for (size_t d = 0; d < rank; ++d)
      index[d + 2] = position[d + 2] * strides_[d] + k[first + d] * dilations_[d] - pads_[d];
  }

 private:
  const std::vector<int64_t>&strides_, &dilations_, &pads_;
};

bool is_bias(const Node& node) {
  if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return false;
  return std::none_of(node.post_operations.begin(), node.post_operations.end(), [](const PostOperation& operation) {
    return operation.kind == PostOperation::Kind::kBinary && operation.input == 2;
  });
}

void convolution(const Node& node, const Arguments& in, Array& y) {
  const Array &x = *in[0], &w = *in[1];
  const int64_t groups = node.attributes.integer("groups"), outputs = y.shape[1] / groups;
  const Window window(node.attributes);
  const Shape steps(w.shape.begin() + 1, w.shape.end());
  fill(y, [&](const Shape& index) {
    double sum = is_bias(node) ? in[2]->values[static_cast<size_t>(index[1])] : 0;
    const int64_t first = index[1] / outputs * w.shape[1];
    const double* weight = &w.values[static_cast<size_t>(index[1]) * element_count(steps)];
    Shape from;
    for_each(steps, [&](const Shape& k) {
      window.find(from, index[0], first + k[0], index, k);
      if (is_inside(from, x.shape)) sum += at(x, from) * *weight;
      ++weight;
    });
    return sum;
  });
}

void convolution_transpose(const Node& node, const Arguments& in, Array& y) {
  const Array &x = *in[0], &w = *in[1];
  const int64_t groups = node.attributes.integer("groups"), outputs = w.shape[1], inputs = x.shape[1] / groups;
  y.values.assign(element_count(y.shape), 0);
  const Shape strides = strides_of(y.shape);
  const Window window(node.attributes);
  const Shape steps(w.shape.begin() + 1, w.shape.end());
  Shape to;
  for_each(x.shape, [&](const Shape& index) {
    const double* weight = &w.values[static_cast<size_t>(index[1]) * element_count(steps)];
    for_each(steps, [&](const Shape& k) {
      window.find(to, index[0], index[1] / inputs * outputs + k[0], index, k);
      const double product = at(x, index) * *weight++;
      if (!is_inside(to, y.shape)) return;
      int64_t offset = 0;
      for (size_t d = 0; d < to.size(); ++d) offset += to[d] * strides[d];
      y.values[static_cast<size_t>(offset)] += product;
    });
  });
  if (!is_bias(node)) return;
  size_t i = 0;
  for_each(y.shape, [&](const Shape& index) { y.values[i++] += in[2]->values[static_cast<size_t>(index[1])]; });
}

void matmul(const Node& node, const Arguments& in, Array& y) {
  const Array &a = *in[0], &b = *in[1];
  const bool turn_a = node.attributes.integer("transpose_a") != 0, turn_b = node.attributes.integer("transpose_b") != 0;
  const int64_t depth = a.shape[a.shape.size() - (turn_a ? 2 : 1)];
  fill(y, [&](const Shape& index) {
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      Shape left = index, right = index;
      left[left.size() - (turn_a ? 1 : 2)] = index[index.size() - 2];
      left[left.size() - (turn_a ? 2 : 1)] = k;
      right[right.size() - (turn_b ? 1 : 2)] = k;
      right[right.size() - (turn_b ? 2 : 1)] = index.back();
      sum += at(a, left) * at(b, right);
    }
    sum *= node.attributes.real("alpha");
    return is_bias(node) ? sum + in[2]->values[static_cast<size_t>(index.back())] : sum;
  });
}

void pooling(const Node& node, const Arguments& in, Array& y) {
  const Array& x = *in[0];
  const Attributes& attributes = node.attributes;
  const bool average = node.kind == OperatorKind::kAveragePool;
  const bool padding = average && attributes.integer("count_include_pad") != 0;
  const size_t rank = x.shape.size() - 2;
  const Window window(attributes);
  Shape from;
  fill(y, [&](const Shape& index) {
    double value = average ? 0 : -std::numeric_limits<double>::infinity();
    int64_t inside = 0, padded = 0;
    for_each(attributes.integers("kernel"), [&](const Shape& k) {
      window.find(from, index[0], index[1], index, k);
      bool counts = true;
      for (size_t d = 0; d < rank; ++d)
        counts = counts && from[d + 2] < x.shape[d + 2] + attributes.integers("pads")[rank + d];
      padded += counts;
      if (!is_inside(from, x.shape)) return;
      const double element = at(x, from);
      value = average ? value + element : std::max(value, element);
      ++inside;
    });
    const int64_t counted = padding ? padded : inside;
    return !average ? value : counted == 0 ? 0 : value / static_cast<double>(counted);
  });
}

// Elements of x along `axis` through `index`.
std::vector<double> line(const Array& x, Shape index, int64_t axis) {
  std::vector<double> elements;
  for (int64_t i = 0; i < x.shape[static_cast<size_t>(axis)]; ++i) {
    index[static_cast<size_t>(axis)] = i;
    elements.push_back(at(x, index));
  }
  return elements;
}

void softmax(const Node& node, const Arguments& in, Array& y) {
  fill(y, [&](const Shape& index) {
    const std::vector<double> elements = line(*in[0], index, node.attributes.integer("axis"));
    const double maximum = *std::max_element(elements.begin(), elements.end());
    double sum = 0;
    for (double element : elements) sum += std::exp(element - maximum);
    const double logarithm = at(*in[0], index) - maximum - std::log(sum);
    return node.attributes.integer("log") != 0 ? logarithm : std::exp(logarithm);
  });
}

void attention(const Node& node, const Arguments& in, Array& y) {
  const bool transposed = node.attributes.integer("transpose_k") != 0;
  const int64_t depth = in[0]->shape.back(), keys = in[2]->shape[in[2]->shape.size() - 2];
  const auto matrix = [](Shape index, int64_t row, int64_t column) {
    index[index.size() - 2] = row;
    index.back() = column;
    return index;
  };
  std::vector<double> scores;  // of the row that is being made
  fill(y, [&](const Shape& index) {
    const int64_t query = index[index.size() - 2];
    if (index.back() == 0) scores.clear();
    for (int64_t key = 0; index.back() == 0 && key < keys; ++key) {
      double score = 0;
      for (int64_t k = 0; k < depth; ++k)
        score += at(*in[0], matrix(index, query, k)) *
                 at(*in[1], transposed ? matrix(index, k, key) : matrix(index, key, k));
      score *= node.attributes.real("alpha");
      if (in.size() > 3) score += at(*in[3], matrix(index, query, key));
      scores.push_back(score);
    }
    const double maximum = *std::max_element(scores.begin(), scores.end());
    double sum = 0, product = 0;
    for (int64_t key = 0; key < keys; ++key) {
      const double power = std::exp(scores[static_cast<size_t>(key)] - maximum);
      sum += power;
      product += power * at(*in[2], matrix(index, key, index.back()));
    }
    return product / sum;
  });
}

void layer_norm(const Node& node, const Arguments& in, Array& y) {
  const auto axis = static_cast<std::ptrdiff_t>(node.attributes.integer("axis"));
  const Shape& shape = in[0]->shape;
  const auto row = static_cast<size_t>(element_count(Shape(shape.begin() + axis, shape.end())));
  const std::vector<double>& x = in[0]->values;
  for (size_t begin = 0; begin < x.size(); begin += row) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < row; ++i) mean += x[begin + i] / static_cast<double>(row);
    for (size_t i = 0; i < row; ++i)
      variance += (x[begin + i] - mean) * (x[begin + i] - mean) / static_cast<double>(row);
    for (size_t i = 0; i < row; ++i)
      y.values.push_back((x[begin + i] - mean) / std::sqrt(variance + node.attributes.real("epsilon")));
  }
  if (in.size() < 3) return;
  const Array normal = y;
  y.values.clear();
  fill(y, [&](const Shape& index) { return at(normal, index) * at(*in[1], index) + at(*in[2], index); });
}

void lrn(const Node& node, const Arguments& in, Array& y) {
  const int64_t size = node.attributes.integer("size");
  fill(y, [&](const Shape& index) {
    double sum = 0;
    for (int64_t c = index[1] - (size - 1) / 2; c <= index[1] + size / 2; ++c) {
      if (c < 0 || c >= y.shape[1]) continue;
      Shape from = index;
      from[1] = c;
      sum += at(*in[0], from) * at(*in[0], from);
    }
    const double base = node.attributes.real("bias") + node.attributes.real("alpha") / static_cast<double>(size) * sum;
    return at(*in[0], index) / std::pow(base, node.attributes.real("beta"));
  });
}

double reduced(Function function, const std::vector<double>& elements, bool floating) {
  double sum = 0, product = 1, absolute = 0, squares = 0, exponentials = 0;
  for (double x : elements) {
    sum += x, product *= x, absolute += std::abs(x), squares += x * x, exponentials += std::exp(x);
  }
  if (function == Function::kMean) {
    const double mean = sum / static_cast<double>(elements.size());
    return floating ? mean : std::trunc(mean);
  }
  if (function == Function::kSum) return sum;
  if (function == Function::kMax) return *std::max_element(elements.begin(), elements.end());
  if (function == Function::kMin) return *std::min_element(elements.begin(), elements.end());
  if (function == Function::kProd) return product;
  if (function == Function::kL1) return absolute;
  if (function == Function::kL2) return floating ? std::sqrt(squares) : std::trunc(std::sqrt(squares));
  if (function == Function::kSumSquare) return squares;
  FOLIOT_CHECK(function == Function::kLogSumExp);
  return std::log(exponentials);
}

void reduce(const Node& node, const Arguments& in, Array& y) {
  const std::vector<int64_t>& axes = node.attributes.integers("axes");
  Shape kept = in[0]->shape, over(kept.size(), 1);
  for (int64_t axis : axes) std::swap(kept[static_cast<size_t>(axis)], over[static_cast<size_t>(axis)]);
  for_each(kept, [&](const Shape& index) {
    std::vector<double> elements;
    for_each(over, [&](const Shape& step) {
      Shape from = index;
      for (size_t d = 0; d < from.size(); ++d) from[d] += step[d];
      elements.push_back(at(*in[0], from));
    });
    y.values.push_back(reduced(node.attributes.function(), elements, is_floating(y.type)));
  });
}

void arg_reduce(const Node& node, const Arguments& in, Array& y) {
  const int64_t axis = node.attributes.integer("axis");
  Shape kept = in[0]->shape;
  kept[static_cast<size_t>(axis)] = 1;
  for_each(kept, [&](const Shape& index) {
    std::vector<double> elements = line(*in[0], index, axis);
    if (node.attributes.integer("largest") == 0)
      for (double& element : elements) element = -element;
    const double best = *std::max_element(elements.begin(), elements.end());
    const auto first = std::find(elements.begin(), elements.end(), best) - elements.begin();
    const auto last = static_cast<std::ptrdiff_t>(elements.size()) - 1 -
                      (std::find(elements.rbegin(), elements.rend(), best) - elements.rbegin());
    y.values.push_back(static_cast<double>(node.attributes.integer("select_last") != 0 ? last : first));
  });
}

void concat(const Node& node, const Arguments& in, Array& y) {
  const auto axis = static_cast<size_t>(node.attributes.integer("axis"));
  fill(y, [&](const Shape& index) {
    Shape from = index;
    size_t part = 0;
    while (from[axis] >= in[part]->shape[axis]) from[axis] -= in[part++]->shape[axis];
    return at(*in[part], from);
  });
}

void move(const Node& node, const Arguments& in, Array& y) {
  fill(y, [&](const Shape& index) {
    if (node.kind == OperatorKind::kExpand) return at(*in[0], index);
    Shape from(index.size());
    for (size_t d = 0; d < index.size(); ++d) {
      if (node.kind == OperatorKind::kTranspose)
        from[static_cast<size_t>(node.attributes.integers("permutation")[d])] = index[d];
      else
        from[d] = node.attributes.integers("starts")[d] + index[d] * node.attributes.integers("steps")[d];
    }
    return at(*in[0], from);
  });
}

void depth_to_space(const Node& node, const Arguments& in, Array& y) {
  const int64_t rows = node.attributes.integer("rows"), columns = node.attributes.integer("columns");
  fill(y, [&](const Shape& index) {
    const int64_t entry = index[2] % rows * columns + index[3] % columns;
    return at(*in[0], {index[0], entry * y.shape[1] + index[1], index[2] / rows, index[3] / columns});
  });
}

void gather(const Node& node, const Arguments& in, Array& y) {
  const auto axis = static_cast<std::ptrdiff_t>(node.attributes.integer("axis"));
  const auto index_rank = static_cast<std::ptrdiff_t>(in[1]->shape.size());
  fill(y, [&](const Shape& index) {
    const auto chosen =
        static_cast<int64_t>(at(*in[1], Shape(index.begin() + axis, index.begin() + axis + index_rank)));
    Shape from(index.begin(), index.begin() + axis);
    from.push_back(chosen < 0 ? chosen + in[0]->shape[static_cast<size_t>(axis)] : chosen);
    from.insert(from.end(), index.begin() + axis + index_rank, index.end());
    return at(*in[0], from);
  });
}

// The index with another position along `axis`, counted from the end if negative.
Shape moved(Shape index, int64_t axis, double position, const Shape& shape) {
  const auto d = static_cast<size_t>(axis);
  index[d] = static_cast<int64_t>(position) + (position < 0 ? shape[d] : 0);
  return index;
}

double combined(Function how, double old, double update) {
  if (how == Function::kAdd) return old + update;
  if (how == Function::kMul) return old * update;
  if (how == Function::kMin) return std::min(old, update);
  if (how == Function::kMax) return std::max(old, update);
  return update;
}

void gather_elements(const Node& node, const Arguments& in, Array& y) {
  fill(y, [&](const Shape& index) {
    return at(*in[0], moved(index, node.attributes.integer("axis"), at(*in[1], index), in[0]->shape));
  });
}

void scatter_elements(const Node& node, const Arguments& in, Array& y) {
  y.values = in[0]->values;
  const Shape strides = strides_of(y.shape);
  for_each(in[1]->shape, [&](const Shape& index) {
    const Shape to = moved(index, node.attributes.integer("axis"), at(*in[1], index), y.shape);
    int64_t offset = 0;
    for (size_t d = 0; d < to.size(); ++d) offset += to[d] * strides[d];
    double& element = y.values[static_cast<size_t>(offset)];
    element = combined(node.attributes.function("reduction"), element, at(*in[2], index));
  });
}

// How many elements of the line come before one says its rank.
void top_k(const Node& node, const Arguments& in, Array& y) {
  const int64_t axis = node.attributes.integer("axis");
  const double sign = node.attributes.integer("largest") != 0 ? 1 : -1;
  fill(y, [&](const Shape& index) {
    const std::vector<double> elements = line(*in[0], index, axis);
    for (size_t i = 0; i < elements.size(); ++i) {
      int64_t before = 0;
      for (size_t j = 0; j < elements.size(); ++j)
        before += sign * elements[j] > sign * elements[i] || (elements[j] == elements[i] && j < i);
      if (before == index[static_cast<size_t>(axis)]) return static_cast<double>(i);
    }
    FOLIOT_CHECK(false);
  });
}

void cumulative(const Node& node, const Arguments& in, Array& y) {
  const Attributes& attributes = node.attributes;
  const int64_t axis = attributes.integer("axis");
  const bool sum = attributes.function() == Function::kSum, reverse = attributes.integer("reverse") != 0;
  const bool exclusive = attributes.integer("exclusive") != 0;
  fill(y, [&](const Shape& index) {
    const std::vector<double> elements = line(*in[0], index, axis);
    const int64_t own = index[static_cast<size_t>(axis)];
    double result = sum ? 0 : 1;
    for (int64_t i = 0; i < static_cast<int64_t>(elements.size()); ++i) {
      const bool counts = (reverse ? i > own : i < own) || (i == own && !exclusive);
      const double element = elements[static_cast<size_t>(i)];
      if (counts) result = sum ? result + element : result * element;
    }
    return result;
  });
}

double cast(double x, DataType to) {
  if (is_floating(to) || to == DataType::kBfloat16) return x;
  if (to == DataType::kBool) return x != 0;
  return std::trunc(x);
}

void pad(const Node& node, const Arguments& in, Array& y) {
  const std::string& mode = node.attributes.text("mode");
  fill(y, [&](const Shape& index) {
    Shape from = index;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t extent = in[0]->shape[d];
      from[d] -= node.attributes.integers("pads")[d];
      if (mode == "edge") from[d] = std::clamp<int64_t>(from[d], 0, extent - 1);
      if (mode == "reflect" && from[d] < 0) from[d] = -from[d];
      if (mode == "reflect" && from[d] >= extent) from[d] = 2 * (extent - 1) - from[d];
    }
    return is_inside(from, in[0]->shape) ? at(*in[0], from) : node.attributes.real("value");
  });
}

double resize_position(const Node& node, size_t d, int64_t position, int64_t from, int64_t to) {
  const std::string& coordinates = node.attributes.text("coordinates");
  const double scale = node.attributes.reals("scales")[d], x = static_cast<double>(position);
  if (coordinates == "asymmetric") return x / scale;
  const double resized = static_cast<double>(from) * scale;
  if (coordinates == "align_corners") return resized == 1 ? 0 : x * static_cast<double>(from - 1) / (resized - 1);
  if (coordinates == "pytorch_half_pixel" && to == 1) return 0;
  return (x + 0.5) / scale - 0.5;
}

double rounded(const std::string& rounding, double x) {
  if (rounding == "floor") return std::floor(x);
  if (rounding == "ceil") return std::ceil(x);
  return rounding == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

// How much the element at `source` of dimension `d` counts for that at `position` of the result.
double resize_weight(const Node& node, size_t d, int64_t position, int64_t source, int64_t from, int64_t to) {
  const double last = static_cast<double>(from - 1), at = resize_position(node, d, position, from, to);
  if (node.attributes.text("mode") == "linear")
    return std::max(0.0, 1 - std::abs(std::clamp(at, 0.0, last) - static_cast<double>(source)));
  return std::clamp(rounded(node.attributes.text("nearest"), at), 0.0, last) == static_cast<double>(source);
}

// Dimension by dimension.
void resize(const Node& node, const Arguments& in, Array& y) {
  y.values = in[0]->values;
  Shape shape = in[0]->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Array x{y.type, shape, std::move(y.values)};
    shape[d] = y.shape[d];
    std::vector<double> weights;
    for_each({y.shape[d], x.shape[d]}, [&](const Shape& index) {
      weights.push_back(resize_weight(node, d, index[0], index[1], x.shape[d], y.shape[d]));
    });
    y.values.clear();
    for_each(shape, [&](const Shape& index) {
      const double* weight = &weights[static_cast<size_t>(index[d] * x.shape[d])];
      double sum = 0;
      for (const double element : line(x, index, static_cast<int64_t>(d))) {
        if (*weight > 0) sum += *weight * element;
        ++weight;
      }
      y.values.push_back(sum);
    });
  }
}

// One unit of one row after one step, from the states [directions, batch, hidden] before it.
double recurrent_state(const Node& node, const Arguments& in, const Shape& place, const Array& states, double& memory) {
  const std::string& cell = node.attributes.text("cell");
  const int64_t t = place[0], direction = place[1], row = place[2], unit = place[3];
  const int64_t gates = in[1]->shape[1], hidden = in[1]->shape[2];
  const auto input = [&](int64_t gate) { return at(*in[0], {t, row, (direction * gates + gate) * hidden + unit}); };
  const auto recurrent = [&](int64_t gate) {
    double sum = 0;
    for (int64_t from = 0; from < hidden; ++from)
      sum += at(*in[1], {direction, gate, unit, from}) * at(states, {direction, row, from});
    return sum;
  };
  const auto sigmoid = [&](int64_t gate) { return unary(Function::kSigmoid, input(gate) + recurrent(gate), 0, 0); };
  if (cell == "rnn") return std::tanh(input(0) + recurrent(0));
  if (cell == "gru") {
    const double bias = in.size() < 3 || in[2] == nullptr ? 0 : at(*in[2], {direction, unit});
    const double candidate = std::tanh(input(2) + sigmoid(1) * (recurrent(2) + bias));
    return (1 - sigmoid(0)) * candidate + sigmoid(0) * at(states, {direction, row, unit});
  }
  memory = sigmoid(2) * memory + sigmoid(0) * std::tanh(input(3) + recurrent(3));
  return sigmoid(1) * std::tanh(memory);
}

void recurrent(const Node& node, const Arguments& in, Array& y) {
  const int64_t length = in[0]->shape[0];
  const Shape shape{y.shape[1], y.shape[2], y.shape[3]};
  const auto first = [&](size_t i) {
    Array state{y.type, shape, std::vector<double>(element_count(shape))};
    if (i < in.size() && in[i] != nullptr) state.values = in[i]->values;
    return state;
  };
  Array states = first(3), memory = first(4);
  y.values.resize(element_count(y.shape));
  for (int64_t i = 0; i < length; ++i) {
    const Array before = states;
    size_t at = 0;
    for_each(shape, [&](const Shape& index) {
      const bool backwards = node.attributes.text("direction") == "reverse" || index[0] == 1;
      const int64_t t = backwards ? length - 1 - i : i;
      states.values[at] = recurrent_state(node, in, {t, index[0], index[1], index[2]}, before, memory.values[at]);
      y.values[static_cast<size_t>(t) * before.values.size() + at] = states.values[at];
      ++at;
    });
  }
  if (y.shape[0] > length) std::ranges::copy(memory.values, y.values.end() - std::ssize(memory.values));
}

TreeNode tree_node(const Array& nodes, uint32_t index) {
  std::array<std::byte, sizeof(TreeNode)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(nodes.values[index * sizeof(TreeNode) + i]);
  TreeNode node;
  std::memcpy(&node, bytes.data(), bytes.size());
  return node;
}

// The leaf that row `row` of X comes to.
uint32_t leaf_of(const Array& x, const Array& nodes, int64_t row, uint32_t root) {
  for (uint32_t index = root;;) {
    const TreeNode node = tree_node(nodes, index);
    if (node.limit == 0 && node.child == index) return node.column;
    const double value = at(x, {row, node.column / 2});
    const uint64_t nothing = node.column % 2 == 0 ? kTreeKeyAbove : kTreeKeyBelow;
    index = node.child + ((std::isnan(value) ? nothing : tree_key(value)) <= node.limit ? 1 : 0);
  }
}

void tree_ensemble(const Node& node, const Arguments& in, Array& y) {
  const Function function = node.attributes.function();
  const double first = function == Function::kSum ? 0 : function == Function::kMin ? HUGE_VAL : -HUGE_VAL;
  y.values.assign(element_count(y.shape), first);
  const int64_t width = in[2]->shape[1];
  for (int64_t row = 0; row < y.shape[0]; ++row) {
    for (int64_t tree = 0; tree < node.attributes.integer("trees"); ++tree) {
      const int64_t leaf = leaf_of(*in[0], *in[1], row, static_cast<uint32_t>(tree));
      const bool has_targets = in.size() > 3 && in[3] != nullptr;
      const auto target = has_targets ? static_cast<int64_t>(at(*in[3], {leaf})) : 0;
      for (int64_t i = 0; i < width; ++i) {
        double& result = y.values[static_cast<size_t>(row * y.shape[1] + target + i)];
        const double value = at(*in[2], {leaf, i});
        result = function == Function::kSum ? result + value : binary(function, result, value, true);
      }
    }
  }
}

// What a block of x is rounded to: multiples of the largest magnitude / 127, in the arithmetic of float32.
std::vector<double> rounded_block(std::vector<double> x) {
  float largest = 0;
  for (const double value : x) largest = std::max(largest, static_cast<float>(std::abs(value)));
  for (double& value : x) {
    const float code = largest == 0 ? 0 : std::nearbyint(static_cast<float>(value) * (127 / largest));
    value = static_cast<double>(code) * static_cast<double>(largest) / 127;
  }
  return x;
}

void block_matmul(const Node& node, const Arguments& in, Array& y) {
  const BlockWeights weights{.depth = in[0]->shape.back(),
                             .columns = y.shape.back(),
                             .block = node.attributes.integer("block"),
                             .bits = node.attributes.integer("bits")};
  const auto has = [&](size_t i) { return i < in.size() && in[i] != nullptr; };
  const auto code_at = [&](int64_t column, int64_t k) {
    const int64_t panel = column / 16, lane = column % 16, word = k / weights.word_depth();
    const int64_t bit = weights.shift_of(k % weights.word_depth());
    const auto byte = static_cast<size_t>(((panel * weights.words() + word) * 16 + lane) * 4 + bit / 8);
    return (static_cast<int64_t>(in[1]->values[byte]) >> (bit % 8)) & (2 * weights.middle() - 1);
  };
  const auto rows = static_cast<int64_t>(in[0]->values.size()) / weights.depth;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> x(in[0]->values.begin() + row * weights.depth,
                          in[0]->values.begin() + (row + 1) * weights.depth);
    for (int64_t k = 0; k < weights.depth && node.attributes.integer("rounds") != 0; k += weights.block) {
      const auto begin = x.begin() + k, end = x.begin() + std::min(k + weights.block, weights.depth);
      std::ranges::copy(rounded_block({begin, end}), begin);
    }
    for (int64_t column = 0; column < weights.columns; ++column) {
      double sum = has(4) ? in[4]->values[static_cast<size_t>(column)] : 0;
      for (int64_t k = 0; k < weights.depth; ++k) {
        const auto at = static_cast<size_t>((column / 16 * weights.blocks() + k / weights.block) * 16 + column % 16);
        const double zero = has(3) ? in[3]->values[at] : static_cast<double>(weights.middle());
        sum += x[static_cast<size_t>(k)] * (static_cast<double>(code_at(column, k)) - zero) * in[2]->values[at];
      }
      y.values.push_back(sum);
    }
  }
}

// libsvm's multiclass_probability().
void pair_coupling(const Arguments& in, Array& y) {
  const auto classes = static_cast<size_t>(y.shape[1]);
  y.values.assign(element_count(y.shape), 1 / static_cast<double>(classes));
  size_t at = 0;
  for (size_t row = 0; row < static_cast<size_t>(y.shape[0]); ++row) {
    std::vector<std::vector<double>> r(classes, std::vector<double>(classes)), q = r;
    for (size_t i = 0; i < classes; ++i) {
      for (size_t j = i + 1; j < classes; ++j) {
        r[i][j] = in[0]->values[at++];
        r[j][i] = 1 - r[i][j];
      }
    }
    for (size_t i = 0; i < classes; ++i) {
      for (size_t j = 0; j < classes; ++j) {
        if (i != j) q[i][j] = -r[j][i] * r[i][j];
        if (i != j) q[i][i] += r[j][i] * r[j][i];
      }
    }
    double* p = y.values.data() + row * classes;
    for (int round = 0; round < 100; ++round) {
      std::vector<double> product(classes);
      double total = 0, error = 0;
      for (size_t i = 0; i < classes; ++i) {
        for (size_t j = 0; j < classes; ++j) product[i] += q[i][j] * p[j];
        total += p[i] * product[i];
      }
      for (double element : product) error = std::max(error, std::abs(element - total));
      if (error < 0.005 / static_cast<double>(classes)) break;
      for (size_t i = 0; i < classes; ++i) {
        const double step = (total - product[i]) / q[i][i];
        p[i] += step;
        total = (total + step * (step * q[i][i] + 2 * product[i])) / (1 + step) / (1 + step);
        for (size_t j = 0; j < classes; ++j) {
          product[j] = (product[j] + step * q[i][j]) / (1 + step);
          p[j] /= 1 + step;
        }
      }
    }
  }
}

void compute(const Node& node, const Arguments& in, Array& y) {
  const Attributes& attributes = node.attributes;
  switch (node.kind) {
    case OperatorKind::kConvolution: return convolution(node, in, y);
    case OperatorKind::kConvolutionTranspose: return convolution_transpose(node, in, y);
    case OperatorKind::kMatMul: return matmul(node, in, y);
    case OperatorKind::kBlockMatMul: return block_matmul(node, in, y);
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool: return pooling(node, in, y);
    case OperatorKind::kUnary:
      return fill(y, [&](const Shape& index) {
        return unary(attributes.function(), at(*in[0], index), attributes.has("alpha") ? attributes.real("alpha") : 0,
                     attributes.has("beta") ? attributes.real("beta") : 0);
      });
    case OperatorKind::kBinary:
      return fill(y, [&](const Shape& index) {
        return binary(attributes.function(), at(*in[0], index), at(*in[1], index), is_floating(in[0]->type));
      });
    case OperatorKind::kAffine:
      return fill(y, [&](const Shape& index) {
        const auto channel = static_cast<size_t>(index[1]);
        return at(*in[0], index) * in[1]->values[channel] + in[2]->values[channel];
      });
    case OperatorKind::kSoftmax: return softmax(node, in, y);
    case OperatorKind::kAttention: return attention(node, in, y);
    case OperatorKind::kLayerNorm: return layer_norm(node, in, y);
    case OperatorKind::kLrn: return lrn(node, in, y);
    case OperatorKind::kReduce: return reduce(node, in, y);
    case OperatorKind::kConcat: return concat(node, in, y);
    case OperatorKind::kSlice:
    case OperatorKind::kTranspose:
    case OperatorKind::kExpand: return move(node, in, y);
    case OperatorKind::kReshape: y.values = from_bytes(y.type, y.shape, to_bytes(*in[0])).values; return;
    case OperatorKind::kGather: return gather(node, in, y);
    case OperatorKind::kGatherElements: return gather_elements(node, in, y);
    case OperatorKind::kScatterElements: return scatter_elements(node, in, y);
    case OperatorKind::kTopK: return top_k(node, in, y);
    case OperatorKind::kCumulative: return cumulative(node, in, y);
    case OperatorKind::kRecurrent: return recurrent(node, in, y);
    case OperatorKind::kTreeEnsemble: return tree_ensemble(node, in, y);
    case OperatorKind::kPairCoupling: return pair_coupling(in, y);
    case OperatorKind::kCast: return fill(y, [&](const Shape& index) { return cast(at(*in[0], index), y.type); });
    case OperatorKind::kWhere:
      return fill(y,
                  [&](const Shape& index) { return at(*in[0], index) != 0 ? at(*in[1], index) : at(*in[2], index); });
    case OperatorKind::kQuantize:
      return fill(y, [&](const Shape& index) {
        const auto zero_point = static_cast<double>(attributes.integer("zero_point"));
        return std::nearbyint(at(*in[0], index) / attributes.real("scale")) + zero_point;
      });
    case OperatorKind::kDequantize:
      return fill(y, [&](const Shape& index) {
        return (at(*in[0], index) - static_cast<double>(attributes.integer("zero_point"))) * attributes.real("scale");
      });
    case OperatorKind::kPad: return pad(node, in, y);
    case OperatorKind::kArgReduce: return arg_reduce(node, in, y);
    case OperatorKind::kResize: return resize(node, in, y);
    case OperatorKind::kDepthToSpace: return depth_to_space(node, in, y);
    // By tests of their own (cpu/jpeg_decoder_test.cc, models/steps/tokenise_test.cc).
    case OperatorKind::kDecodeJpeg:
    case OperatorKind::kWordPiece:
    case OperatorKind::kReorder: break;
  }
  FOLIOT_CHECK(false);
}

void apply(const PostOperation& operation, const Arguments& in, Array& y) {
  size_t i = 0;
  for_each(y.shape, [&](const Shape& index) {
    double& element = y.values[i++];
    element = operation.kind == PostOperation::Kind::kActivation
                  ? unary(operation.function, element, operation.alpha, operation.beta)
                  : binary(operation.function, element, at(*in[operation.input], index), true);
  });
}

// Whether integer results are rounded and kept within their type (operator.h).
bool rounds(const Node& node, const Arguments& in) {
  switch (node.kind) {
    case OperatorKind::kConvolution:
    case OperatorKind::kMatMul: return in[0]->type == DataType::kUint8;
    case OperatorKind::kBinary: return in[0]->type == DataType::kUint8 && in[1]->type == DataType::kFloat32;
    default: return node.kind == OperatorKind::kQuantize;
  }
}

void narrow(const Node& node, const Arguments& in, Array& y) {
  for (double& element : y.values) {
    if (y.type == DataType::kBfloat16) element = rounded_to_bfloat16(element);
    if (y.type == DataType::kUint8 && rounds(node, in)) element = std::clamp(std::nearbyint(element), 0.0, 255.0);
    if (y.type == DataType::kInt8 && rounds(node, in)) element = std::clamp(std::nearbyint(element), -128.0, 127.0);
  }
}

struct Brain {
  uint16_t bits = 0;
  Brain() = default;
  explicit Brain(double value)
      : bits(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16)) {}
  operator double() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// Calls visit(T{}) with the C++ type.
template <typename Visit>
auto visit(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::kBool:
    case DataType::kUint8: return visit(uint8_t{});
    case DataType::kUint16: return visit(uint16_t{});
    case DataType::kUint32: return visit(uint32_t{});
    case DataType::kUint64: return visit(uint64_t{});
    case DataType::kInt8: return visit(int8_t{});
    case DataType::kInt16: return visit(int16_t{});
    case DataType::kInt32: return visit(int32_t{});
    case DataType::kInt64: return visit(int64_t{});
    case DataType::kBfloat16: return visit(Brain{});
    case DataType::kFloat32: return visit(float{});
    case DataType::kFloat64: return visit(double{});
    default: FOLIOT_CHECK(false);
  }
}

}  // namespace

double rounded_to_bfloat16(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

std::vector<std::byte> to_bytes(const Array& array) {
  FOLIOT_CHECK(array.values.size() == element_count(array.shape));
  return visit(array.type, [&](auto zero) {
    std::vector<decltype(zero)> elements;
    for (double value : array.values) elements.push_back(static_cast<decltype(zero)>(value));
    const auto bytes = std::as_bytes(std::span(elements));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
}

Array from_bytes(DataType type, const Shape& shape, std::span<const std::byte> bytes) {
  FOLIOT_CHECK(bytes.size() == byte_size(type, shape));
  Array array{.type = type, .shape = shape, .values = {}};
  visit(type, [&](auto zero) {
    std::vector<decltype(zero)> elements(element_count(shape));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    array.values.assign(elements.begin(), elements.end());
    return 0;
  });
  return array;
}

std::vector<Array> evaluate(const Graph& graph, std::span<const Array> inputs) {
  std::vector<Array> arrays;
  for (const Value& value : graph.values)
    arrays.push_back(value.is_constant() ? from_bytes(value.type, value.shape, *value.constant)
                                         : Array{.type = value.type, .shape = value.shape, .values = {}});
  for (size_t i = 0; i < graph.inputs.size(); ++i) arrays[graph.inputs[i]] = inputs[i];
  for (const Node& node : graph.nodes) {
    Arguments arguments;
    for (ValueIndex input : node.inputs) arguments.push_back(input == kNoValue ? nullptr : &arrays[input]);
    Array& result = arrays[node.outputs.at(0)];
    compute(node, arguments, result);
    for (const PostOperation& operation : node.post_operations) apply(operation, arguments, result);
    narrow(node, arguments, result);
    FOLIOT_CHECK(result.values.size() == element_count(result.shape));
  }
  std::vector<Array> outputs;
  for (ValueIndex output : graph.outputs) outputs.push_back(arrays[output]);
  return outputs;
}

}  // namespace foliot
