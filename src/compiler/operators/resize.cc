// Resizing of images.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/operators/onnx_operator.h"

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

Result<std::vector<int64_t>> read_axes(NodeTranslation& node) {
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
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, read_axes(node));
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
    const double extent = std::floor(static_cast<double>(shape[i]) * (*scales)[i]);
    if (!(extent >= 0 && extent < 1 << 30)) return Status::invalid_argument("a scale is impossible");
    target[i] = static_cast<int64_t>(extent);
  }
  return target;
}

Status check_choice(std::string_view what, const std::string& value, std::span<const std::string_view> choices) {
  if (std::ranges::find(choices, value) != choices.end()) return {};
  return Status::unimplemented(fmt::format("{} '{}' is not supported", what, value));
}

Status resize(NodeTranslation& node) {
  const bool upsample = node.type() == "Upsample";
  const bool old = upsample || node.opset() < 11;
  if (node.rank(0) < 3) return Status::invalid_argument("the input has no spatial dimension");
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" || node.integer("antialias", 0) != 0) {
    return Status::unimplemented("keep_aspect_ratio_policy and antialias are not supported");
  }
  const std::string mode = node.text("mode", "nearest");
  const std::string coordinates = old ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = old ? "floor" : node.text("nearest_mode", "round_prefer_floor");
  static constexpr std::array<std::string_view, 2> kModes{"nearest", "linear"};
  static constexpr std::array<std::string_view, 4> kCoordinates{"half_pixel", "align_corners", "asymmetric",
                                                                "pytorch_half_pixel"};
  static constexpr std::array<std::string_view, 4> kNearest{"round_prefer_floor", "floor", "ceil", "round_prefer_ceil"};
  FOLIOT_RETURN_IF_ERROR(check_choice("mode", mode, kModes));
  FOLIOT_RETURN_IF_ERROR(check_choice("coordinate_transformation_mode", coordinates, kCoordinates));
  FOLIOT_RETURN_IF_ERROR(check_choice("nearest_mode", nearest, kNearest));

  std::vector<double> scales;
  const Operands operands = old ? Operands{.scales = 1, .sizes = 4} : Operands{.scales = 2, .sizes = 3};
  FOLIOT_ASSIGN_OR_RETURN(Shape target, read_target(node, operands, &scales));
  const Shape shape = node.shape(0);
  if (target[0] != shape[0] || target[1] != shape[1]) {
    return Status::unimplemented("resizing the batch or the channels is not supported");
  }
  if (target == shape) {
    node.set_output(0, node.input(0));
    return {};
  }
  Attributes attributes;
  attributes.set("mode", mode);
  attributes.set("coordinates", coordinates);
  attributes.set("nearest", nearest);
  attributes.set("scales", std::move(scales));
  return node.finish(node.builder().emit(OperatorKind::kResize, {node.input(0)}, std::move(attributes),
                                         ValueType{node.value(0).type, std::move(target)}));
}

constexpr OnnxOperator kOperators[] = {
    {"Resize", 1, 4, resize},
    {"Upsample", 1, 2, resize},
};

}  // namespace

std::span<const OnnxOperator> resize_operators() { return kOperators; }

}  // namespace foliot
