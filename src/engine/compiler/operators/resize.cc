// Resizing of images.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// Where scales and sizes stand among the operands, which moved with the opsets.
struct Operands {
  size_t scales;
  size_t sizes;
};

// One entry per dimension, from a list that may be about `axes` only.
std::vector<double> spread(const std::vector<double>& values, const std::vector<int64_t>& axes,
                           std::vector<double> otherwise) {
  if (axes.empty()) return values;
  for (size_t i = 0; i < axes.size(); ++i) otherwise[static_cast<size_t>(axes[i])] = values[i];
  return otherwise;
}

Result<std::vector<int64_t>> read_resized_axes(NodeTranslation& node) {
  std::vector<int64_t> axes = node.integers("axes");
  FOLIOT_RETURN_IF_ERROR(node.axes(axes, node.rank(0)).status());
  for (int64_t& axis : axes) axis += axis < 0 ? node.rank(0) : 0;
  return axes;
}

// A list of one entry per dimension (or per axis) from operand `i`.
Result<std::vector<double>> read_list(NodeTranslation& node, size_t i, size_t length, std::string_view what) {
  FOLIOT_ASSIGN_OR_RETURN(const Constant constant, node.constant(i, what));
  std::vector<double> values = to_doubles(constant);
  const bool positive = std::ranges::all_of(values, [](double v) { return v > 0 && v < 1 << 30; });
  if (values.size() != length || !positive) {
    return Status::invalid_argument(fmt::format("{} do not fit the input", what));
  }
  return values;
}

bool has_elements(const NodeTranslation& node, size_t i) {
  return node.has_input(i) && element_count(node.value(i).shape) > 0;
}

// The shape of the result and the scales that lead to it.
Result<Shape> read_target(NodeTranslation& node, Operands operands, std::vector<double>* scales) {
  const Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, read_resized_axes(node));
  const size_t length = axes.empty() ? shape.size() : axes.size();
  Shape target = shape;
  if (has_elements(node, operands.sizes)) {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<double> sizes, read_list(node, operands.sizes, length, "'sizes'"));
    sizes = spread(sizes, axes, {shape.begin(), shape.end()});
    for (size_t i = 0; i < shape.size(); ++i) {
      target[i] = static_cast<int64_t>(sizes[i]);
      scales->push_back(sizes[i] / static_cast<double>(std::max<int64_t>(shape[i], 1)));
    }
    // A size that was written for another batch.
    if (axes.empty() && node.rebatch().is_needed() && target[0] == node.rebatch().from) {
      target[0] = shape[0];
      scales->front() = 1;
    }
    return target;
  }
  if (has_elements(node, operands.scales)) {
    FOLIOT_ASSIGN_OR_RETURN(*scales, read_list(node, operands.scales, length, "'scales'"));
  } else {
    for (float scale : node.reals("scales")) scales->push_back(scale);
    if (scales->size() != length) return Status::invalid_argument("it has neither scales nor sizes");
  }
  *scales = spread(*scales, axes, std::vector<double>(shape.size(), 1));
  for (size_t i = 0; i < shape.size(); ++i) {
    // In float32, as others do: ten times 0.7 are seven.
    const double extent = std::floor(static_cast<float>(shape[i]) * static_cast<float>((*scales)[i]));
    if (!(extent >= 0 && extent < 1 << 30)) return Status::invalid_argument("a scale is impossible");
    target[i] = static_cast<int64_t>(extent);
  }
  return target;
}

Status check_choice(std::string_view what, const std::string& value, std::span<const std::string_view> choices) {
  if (std::ranges::find(choices, value) != choices.end()) return {};
  return Status::invalid_argument(fmt::format("{} is '{}'", what, value));
}

// How the positions of the result are found in the input, and what is read there.
struct Rule {
  std::string mode, coordinates, nearest;
  bool antialias = false, exclude_outside = false;
  bool old = false;  // before opset 11
  double cubic_a = -0.75;
};

Result<Rule> read_rule(NodeTranslation& node, bool old) {
  static constexpr std::array<std::string_view, 3> kModes{"nearest", "linear", "cubic"};
  static constexpr std::array<std::string_view, 6> kCoordinates{
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"};
  static constexpr std::array<std::string_view, 4> kNearest{"round_prefer_floor", "floor", "ceil", "round_prefer_ceil"};
  Rule rule;
  rule.mode = node.text("mode", "nearest");
  rule.coordinates = old ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  rule.nearest = old ? "floor" : node.text("nearest_mode", "round_prefer_floor");
  rule.old = old;
  rule.antialias = node.integer("antialias", 0) != 0;
  rule.exclude_outside = node.integer("exclude_outside", 0) != 0;
  rule.cubic_a = node.real("cubic_coeff_a", -0.75);
  FOLIOT_RETURN_IF_ERROR(check_choice("mode", rule.mode, kModes));
  FOLIOT_RETURN_IF_ERROR(check_choice("coordinate_transformation_mode", rule.coordinates, kCoordinates));
  FOLIOT_RETURN_IF_ERROR(check_choice("nearest_mode", rule.nearest, kNearest));
  return rule;
}

// One dimension that is resized.
struct ResizedDimension {
  int64_t from, to;
  double scale;
  double first = 0, last = 1;  // of tf_crop_and_resize: the part that is read, as shares
};

double source_position(const Rule& rule, const ResizedDimension& d, int64_t position) {
  const auto x = static_cast<double>(position);
  // In float32, in which others divide: one rounding decides between two pixels.
  const auto divided = [&](double dividend) { return static_cast<float>(dividend) / static_cast<float>(d.scale); };
  const double ends = static_cast<double>(d.from - 1);
  const double resized = static_cast<double>(d.from) * d.scale;  // which may be no whole number
  if (rule.coordinates == "asymmetric") return divided(x);
  if (rule.coordinates == "align_corners") return resized == 1 ? 0 : x * ends / (resized - 1);
  if (rule.coordinates == "pytorch_half_pixel" && d.to == 1) return 0;
  if (rule.coordinates == "tf_crop_and_resize") {
    const double part = (d.last - d.first) * ends;
    return d.first * ends + (d.to == 1 ? part / 2 : x * part / static_cast<double>(d.to - 1));
  }
  const double half_pixel = divided(x + 0.5) - 0.5F;
  if (rule.coordinates != "half_pixel_symmetric") return half_pixel;
  // The middles of both meet, whatever was cut off.
  return half_pixel + static_cast<double>(d.from) / 2 * (1 - static_cast<double>(d.to) / resized);
}

int64_t nearest_of(const std::string& rounding, double x) {
  if (rounding == "floor") return static_cast<int64_t>(std::floor(x));
  if (rounding == "ceil") return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(rounding == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5));
}

// What an input at this distance weighs.
double weight_at(const Rule& rule, double distance) {
  const double d = std::fabs(distance);
  if (rule.mode == "linear") return std::max(1 - d, 0.0);
  const double a = rule.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0;
}

// The weights of all inputs for one position of the result. Beyond the ends the
// last input stands for what is missing, unless it is left out.
std::vector<double> weights_of(const Rule& rule, const ResizedDimension& d, int64_t position) {
  std::vector<double> weights(static_cast<size_t>(d.from), 0);
  const double x = source_position(rule, d, position);
  const auto clamped = [&](int64_t i) { return static_cast<size_t>(std::clamp<int64_t>(i, 0, d.from - 1)); };
  if (rule.mode == "nearest") {
    // ONNX left it open before opset 11; the others take the next pixel where an image becomes smaller.
    const bool next = rule.old && d.scale < 1;
    weights[clamped(nearest_of(next ? "ceil" : rule.nearest, x))] = 1;
    return weights;
  }
  const double narrowing = rule.antialias ? std::min(d.scale, 1.0) : 1;
  const double reach = (rule.mode == "linear" ? 1 : 2) / narrowing;
  double total = 0;
  for (auto i = static_cast<int64_t>(std::floor(x - reach)); i <= static_cast<int64_t>(std::ceil(x + reach)); ++i) {
    const bool outside = i < 0 || i >= d.from;
    if (outside && rule.exclude_outside) continue;
    const double weight = weight_at(rule, (static_cast<double>(i) - x) * narrowing);
    weights[clamped(i)] += weight;
    total += weight;
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

// The pixels that a position is made of, where it is of two or of four, with their weights.
std::vector<std::pair<int64_t, double>> taps_of(const Rule& rule, const ResizedDimension& d, int64_t position) {
  const double x = source_position(rule, d, position);
  const int64_t count = rule.mode == "linear" ? 2 : 4, first = static_cast<int64_t>(std::floor(x)) - count / 2 + 1;
  std::vector<std::pair<int64_t, double>> taps;
  double total = 0;
  for (int64_t i = first; i < first + count; ++i) {
    const bool outside = i < 0 || i >= d.from;
    const double weight = outside && rule.exclude_outside ? 0 : weight_at(rule, static_cast<double>(i) - x);
    taps.emplace_back(std::clamp<int64_t>(i, 0, d.from - 1), weight);
    total += weight;
  }
  for (auto& [pixel, weight] : taps) weight /= total;
  return taps;
}

// A product with a matrix would spread NaN and infinity over all of a line.
ValueIndex blend_taps(Composer& c, ValueIndex x, const Rule& rule, const ResizedDimension& d, int64_t axis) {
  std::vector<std::vector<std::pair<int64_t, double>>> taps;
  for (int64_t position = 0; position < d.to; ++position) taps.push_back(taps_of(rule, d, position));
  Shape seen(static_cast<size_t>(c.rank(x)), 1);
  seen[static_cast<size_t>(axis)] = d.to;
  ValueIndex sum = kNoValue;
  for (size_t tap = 0; tap < taps[0].size(); ++tap) {
    std::vector<int64_t> pixels;
    std::vector<double> weights;
    for (const auto& of_position : taps) {
      pixels.push_back(of_position[tap].first);
      weights.push_back(of_position[tap].second);
    }
    const ValueIndex part =
        c.mul(c.gather(x, c.integers(pixels, {d.to}), axis), c.constant(from_doubles(c.type(x), seen, weights)));
    sum = sum == kNoValue ? part : c.add(sum, part);
  }
  return sum;
}

bool is_cropped(const Rule& rule, const ResizedDimension& d, int64_t position) {
  const double x = source_position(rule, d, position);
  return rule.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(d.from - 1));
}

// Resizes one dimension by a product with a matrix of weights, or by choosing.
ValueIndex resize_dimension(Composer& c, ValueIndex x, const Rule& rule, const ResizedDimension& d, int64_t axis,
                            double outside) {
  const auto rank = static_cast<size_t>(c.rank(x));
  std::vector<int64_t> chosen, inside;
  std::vector<double> matrix(static_cast<size_t>(d.from * d.to));
  for (int64_t position = 0; position < d.to; ++position) {
    const std::vector<double> weights = weights_of(rule, d, position);
    for (size_t i = 0; i < weights.size(); ++i) {
      matrix[i * static_cast<size_t>(d.to) + static_cast<size_t>(position)] = weights[i];
    }
    chosen.push_back(std::ranges::max_element(weights) - weights.begin());
    inside.push_back(!is_cropped(rule, d, position));
  }
  if (rule.mode == "nearest") {
    x = c.gather(x, c.integers(chosen, {d.to}), axis);
  } else if (!rule.antialias) {
    x = blend_taps(c, x, rule, d, axis);
  } else {
    std::vector<int64_t> permutation(rank);
    std::iota(permutation.begin(), permutation.end(), 0);
    std::swap(permutation[static_cast<size_t>(axis)], permutation.back());
    const ValueIndex weights = c.constant(from_doubles(c.type(x), {d.from, d.to}, matrix));
    const ValueIndex turned = c.transpose(x, permutation);
    Shape shape = c.shape(turned);
    const ValueIndex product = c.matmul(rank == 1 ? c.reshape(turned, {1, d.from}) : turned, weights);
    shape.back() = d.to;
    x = c.transpose(c.reshape(product, shape), permutation);
  }
  if (std::ranges::find(inside, 0) == inside.end()) return x;
  Shape mask(rank, 1);
  mask[static_cast<size_t>(axis)] = d.to;
  return c.where(c.constant(from_integers(DataType::kBool, mask, inside)), x, c.like(x, outside));
}

// Whether the device has it in one operator.
bool is_plain(NodeTranslation& node, const Rule& rule, const Shape& target, const std::vector<double>& scales) {
  const Shape shape = node.shape(0);
  const bool enlarges =
      std::ranges::all_of(scales, [](double scale) { return scale >= 1 && std::rint(scale) == scale; });
  return shape.size() >= 3 && shape[0] == target[0] && shape[1] == target[1] && rule.mode != "cubic" &&
         !rule.antialias && !(rule.old && rule.mode == "nearest" && !enlarges) && !rule.exclude_outside &&
         (is_floating(node.value(0).type) || rule.mode == "linear") && rule.coordinates != "half_pixel_symmetric" &&
         rule.coordinates != "tf_crop_and_resize";
}

Status resize_by_dimension(NodeTranslation& node, const Rule& rule, const Shape& target,
                           const std::vector<double>& scales) {
  constexpr double kWeightsMax = 1 << 26;
  const Shape shape = node.shape(0);
  if (rule.mode != "nearest" && !is_floating(node.value(0).type)) {
    return Status::unimplemented(fmt::format("mode '{}' is supported for floats only", rule.mode));
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, read_resized_axes(node));
  const bool crops = rule.coordinates == "tf_crop_and_resize";
  std::vector<double> roi;
  if (crops) {
    FOLIOT_ASSIGN_OR_RETURN(const Constant constant, node.constant(1, "'roi'"));
    roi = to_doubles(constant);
    if (!std::ranges::all_of(roi, [](double share) { return std::fabs(share) < 1 << 20; })) {
      return Status::invalid_argument("'roi' is impossible");
    }
    if (roi.size() != 2 * (axes.empty() ? shape.size() : axes.size()))
      return Status::invalid_argument("'roi' does not fit");
  }
  Composer c(node.builder());
  ValueIndex x = node.input(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    ResizedDimension d{.from = shape[i], .to = target[i], .scale = scales[i]};
    const auto named = std::ranges::find(axes, static_cast<int64_t>(i));
    if (crops && (axes.empty() || named != axes.end())) {
      const size_t at = axes.empty() ? i : static_cast<size_t>(named - axes.begin());
      d.first = roi[at];
      d.last = roi[roi.size() / 2 + at];
    }
    if (d.from == d.to && d.scale == 1 && d.first == 0 && d.last == 1) continue;
    if (d.from < 1 || static_cast<double>(d.from) * static_cast<double>(d.to) > kWeightsMax) {
      return Status::unimplemented(fmt::format("resizing {} to {} in this mode is too large", d.from, d.to));
    }
    x = resize_dimension(c, x, rule, d, static_cast<int64_t>(i), node.real("extrapolation_value", 0));
  }
  return c.finish(node, x);
}

// All scaled alike, so that the result fits into the sizes, or covers them.
Status keep_aspect_ratio(NodeTranslation& node, const Shape& shape, Shape* target, std::vector<double>* scales) {
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return {};
  if (policy != "not_larger" && policy != "not_smaller") {
    return Status::invalid_argument("keep_aspect_ratio_policy is '" + policy + "'");
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, read_resized_axes(node));
  const auto is_scaled = [&](size_t i) {
    return axes.empty() || std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
  };
  double scale = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!is_scaled(i)) continue;
    scale = policy == "not_larger" ? std::min(scale, (*scales)[i]) : std::max(scale, (*scales)[i]);
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!is_scaled(i)) continue;
    (*scales)[i] = scale;
    (*target)[i] = static_cast<int64_t>(std::floor(static_cast<double>(shape[i]) * scale + 0.5));
  }
  return {};
}

Status resize(NodeTranslation& node) {
  const bool upsample = node.type() == "Upsample";
  const bool old = upsample || node.opset() < 11;
  FOLIOT_ASSIGN_OR_RETURN(const Rule rule, read_rule(node, old));
  std::vector<double> scales;
  const Operands operands = old ? Operands{.scales = 1, .sizes = 4} : Operands{.scales = 2, .sizes = 3};
  FOLIOT_ASSIGN_OR_RETURN(Shape target, read_target(node, operands, &scales));
  const Shape shape = node.shape(0);
  if (has_elements(node, operands.sizes)) FOLIOT_RETURN_IF_ERROR(keep_aspect_ratio(node, shape, &target, &scales));
  // Corners are those of whole pixels, for onnxruntime, torch and ONNX's text; its node tests take the length before
  // it was cut to a whole number.
  for (size_t i = 0; i < shape.size() && rule.coordinates == "align_corners"; ++i)
    scales[i] = static_cast<double>(target[i]) / static_cast<double>(std::max<int64_t>(shape[i], 1));
  const bool whole = std::ranges::all_of(scales, [](double scale) { return scale == 1; });
  if (target == shape && whole && rule.coordinates != "tf_crop_and_resize") {
    node.set_output(0, node.input(0));
    return {};
  }
  if (!is_plain(node, rule, target, scales)) return resize_by_dimension(node, rule, target, scales);
  Attributes attributes;
  attributes.set("mode", rule.mode);
  attributes.set("coordinates", rule.coordinates);
  attributes.set("nearest", rule.nearest);
  attributes.set("scales", std::move(scales));
  // Of integers: between pixels as of floats, and the fraction cut.
  const DataType type = node.value(0).type, computed = is_floating(type) ? type : DataType::kFloat32;
  Composer c(node.builder());
  const ValueIndex resized = c.emit(OperatorKind::kResize, {c.cast(node.input(0), computed)}, std::move(attributes),
                                    ValueType{computed, std::move(target)});
  return c.finish(node, c.cast(resized, type));
}

constexpr OnnxOperator kResizeOperators[] = {
    {"Resize", 1, 4, resize},
    {"Upsample", 1, 2, resize},
};

}  // namespace

std::span<const OnnxOperator> resize_operators() { return kResizeOperators; }

}  // namespace foliot
