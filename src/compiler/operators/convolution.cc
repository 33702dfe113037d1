// Convolutions and pooling: everything that slides a window.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

constexpr int64_t kSpatialRankMax = 3;

// The geometry of a sliding window, one entry per spatial dimension.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> begins;  // pads
  std::vector<int64_t> ends;
};

std::vector<int64_t> joined(std::vector<int64_t> begins, const std::vector<int64_t>& ends) {
  begins.insert(begins.end(), ends.begin(), ends.end());
  return begins;
}

Attributes window_attributes(const Window& window) {
  Attributes attributes;
  attributes.set("strides", window.strides);
  attributes.set("dilations", window.dilations);
  attributes.set("pads", joined(window.begins, window.ends));
  return attributes;
}

Result<size_t> spatial_rank(const NodeTranslation& node) {
  const int64_t rank = node.rank(0) - 2;
  if (rank < 1)
    return Status::invalid_argument(fmt::format("input {} has no spatial dimension", to_string(node.shape(0))));
  if (rank > kSpatialRankMax) return Status::unimplemented(fmt::format("{} spatial dimensions are too many", rank));
  return static_cast<size_t>(rank);
}

Status check_window(const Window& window, size_t rank) {
  for (const auto* list : {&window.kernel, &window.strides, &window.dilations, &window.begins, &window.ends}) {
    if (list->size() != rank) {
      return Status::invalid_argument(
          fmt::format("an attribute has {} entries for {} spatial dimensions", list->size(), rank));
    }
  }
  constexpr int64_t kMax = int64_t{1} << 24;
  for (const auto* list : {&window.kernel, &window.strides, &window.dilations}) {
    if (std::ranges::any_of(*list, [](int64_t v) { return v < 1 || v > kMax; })) {
      return Status::invalid_argument("a kernel, stride or dilation is not positive");
    }
  }
  for (const auto* list : {&window.begins, &window.ends}) {
    if (std::ranges::any_of(*list, [](int64_t v) { return v < 0 || v > kMax; })) {
      return Status::unimplemented("negative pads are not supported");
    }
  }
  return {};
}

// SAME_UPPER and SAME_LOWER: as many outputs as strides fit into the input.
void pad_same(const Shape& input, bool upper, Window* window) {
  for (size_t i = 0; i < window->kernel.size(); ++i) {
    const int64_t stride = window->strides[i];
    const int64_t outputs = (input[2 + i] + stride - 1) / stride;
    const int64_t reach = (outputs - 1) * stride + (window->kernel[i] - 1) * window->dilations[i] + 1;
    const int64_t total = std::max<int64_t>(reach - input[2 + i], 0);
    window->begins[i] = upper ? total / 2 : total - total / 2;
    window->ends[i] = total - window->begins[i];
  }
}

Result<Window> read_window(NodeTranslation& node, std::vector<int64_t> kernel, size_t rank) {
  Window window;
  window.kernel = node.integers("kernel_shape", std::move(kernel));
  window.strides = node.integers("strides", std::vector<int64_t>(rank, 1));
  window.dilations = node.integers("dilations", std::vector<int64_t>(rank, 1));
  const std::vector<int64_t> pads = node.integers("pads", std::vector<int64_t>(2 * rank, 0));
  if (pads.size() != 2 * rank) return Status::invalid_argument("pads do not fit the spatial dimensions");
  window.begins.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.ends.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  FOLIOT_RETURN_IF_ERROR(check_window(window, rank));
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic == "VALID") {
    window.begins.assign(rank, 0);
    window.ends.assign(rank, 0);
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    pad_same(node.shape(0), automatic == "SAME_UPPER", &window);
  } else if (automatic != "NOTSET") {
    return Status::invalid_argument("auto_pad is '" + automatic + "'");
  }
  return window;
}

// The kernel's extents as the weights have them; the attribute must agree.
Result<Window> read_convolution_window(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const size_t rank, spatial_rank(node));
  const Shape weights = node.shape(1);
  if (weights.size() != rank + 2) {
    return Status::invalid_argument(
        fmt::format("weights {} do not fit input {}", to_string(weights), to_string(node.shape(0))));
  }
  const std::vector<int64_t> kernel(weights.begin() + 2, weights.end());
  FOLIOT_ASSIGN_OR_RETURN(Window window, read_window(node, kernel, rank));
  if (window.kernel != kernel) {
    return Status::invalid_argument(fmt::format("kernel_shape does not fit weights {}", to_string(weights)));
  }
  return window;
}

Result<int64_t> read_groups(NodeTranslation& node) {
  const int64_t groups = node.integer("group", 1);
  if (groups < 1 || groups > node.shape(0)[1] || node.shape(0)[1] % groups != 0) {
    return Status::invalid_argument(fmt::format("{} groups do not divide {} channels", groups, node.shape(0)[1]));
  }
  return groups;
}

Status convolution(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Window window, read_convolution_window(node));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t groups, read_groups(node));
  Attributes attributes = window_attributes(window);
  attributes.set("groups", groups);
  std::vector<ValueIndex> inputs{node.input(0), node.input(1)};
  if (node.has_input(2)) inputs.push_back(node.input(2));
  return node.finish(node.builder().emit(OperatorKind::kConvolution, std::move(inputs), std::move(attributes)));
}

// The extents of the result, and the pads that lead to them.
Result<Shape> transposed_extents(NodeTranslation& node, Window* window) {
  const size_t rank = window->kernel.size();
  const Shape input = node.shape(0);
  const std::vector<int64_t> extra = node.integers("output_padding", std::vector<int64_t>(rank, 0));
  const std::vector<int64_t> wanted = node.integers("output_shape");
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (extra.size() != rank || (!wanted.empty() && wanted.size() != rank)) {
    return Status::invalid_argument("output_padding or output_shape do not fit the spatial dimensions");
  }
  Shape extents;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t full = (input[2 + i] - 1) * window->strides[i] + (window->kernel[i] - 1) * window->dilations[i] + 1;
    if (!wanted.empty() || automatic.starts_with("SAME")) {
      const int64_t target = wanted.empty() ? input[2 + i] * window->strides[i] : wanted[i];
      const int64_t total = std::max<int64_t>(full + extra[i] - target, 0);
      window->begins[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      if (automatic == "NOTSET") window->begins[i] = total / 2;
      extents.push_back(target);
    } else {
      extents.push_back(full + extra[i] - window->begins[i] - window->ends[i]);
    }
    if (extents[i] < 1) return Status::invalid_argument("the result would be empty");
    window->ends[i] = full - extents[i] - window->begins[i];
  }
  return extents;
}

Status convolution_transpose(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(Window window, read_convolution_window(node));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t groups, read_groups(node));
  const Shape weights = node.shape(1);
  const DataType type = node.value(0).type;
  if (type != DataType::kFloat32 || node.value(1).type != type) return Status::unimplemented("only FP32 is supported");
  if (weights[0] != node.shape(0)[1]) {
    return Status::invalid_argument(
        fmt::format("weights {} do not fit input {}", to_string(weights), to_string(node.shape(0))));
  }
  const int64_t channels = weights[1] * groups;
  if (node.has_input(2) && node.shape(2) != Shape{channels}) {
    return Status::invalid_argument(
        fmt::format("bias {} does not fit {} channels", to_string(node.shape(2)), channels));
  }
  FOLIOT_ASSIGN_OR_RETURN(const Shape extents, transposed_extents(node, &window));
  Shape shape{node.shape(0)[0], channels};
  shape.insert(shape.end(), extents.begin(), extents.end());
  Attributes attributes = window_attributes(window);
  attributes.set("groups", groups);
  std::vector<ValueIndex> inputs{node.input(0), node.input(1)};
  if (node.has_input(2)) inputs.push_back(node.input(2));
  return node.finish(node.builder().emit(OperatorKind::kConvolutionTranspose, std::move(inputs), std::move(attributes),
                                         ValueType{type, std::move(shape)}));
}

// What ceil_mode adds at the ends so that a last, partial window fits. A window
// that would start in the padding at the end is left out.
std::vector<int64_t> ceiling_pads(const Shape& input, const Window& window) {
  std::vector<int64_t> extra;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t span = input[2 + i] + window.begins[i] + window.ends[i];
    const int64_t stride = window.strides[i];
    int64_t steps = span < reach ? 0 : (span - reach + stride - 1) / stride;
    if (steps * stride >= input[2 + i] + window.begins[i]) --steps;
    extra.push_back(std::max<int64_t>(steps * stride + reach - span, 0));
  }
  return extra;
}

Status pool(NodeTranslation& node) {
  if (node.wants_output(1)) return Status::unimplemented("the indices output of MaxPool is not supported");
  FOLIOT_ASSIGN_OR_RETURN(const size_t rank, spatial_rank(node));
  FOLIOT_ASSIGN_OR_RETURN(Window window, read_window(node, {}, rank));
  std::vector<int64_t> extra(rank, 0);
  if (node.integer("ceil_mode", 0) != 0) extra = ceiling_pads(node.shape(0), window);
  const bool average = node.type() == "AveragePool";
  if (!average) {
    for (size_t i = 0; i < rank; ++i) window.ends[i] += extra[i];
  }
  Attributes attributes = window_attributes(window);
  attributes.set("kernel", window.kernel);
  if (average) {
    attributes.set("count_include_pad", node.integer("count_include_pad", 0));
    attributes.set("extra_pads", std::move(extra));
  }
  return node.finish(node.builder().emit(average ? OperatorKind::kAveragePool : OperatorKind::kMaxPool, {node.input(0)},
                                         std::move(attributes)));
}

// One window as large as the input.
Status global_pool(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const size_t rank, spatial_rank(node));
  const Shape input = node.shape(0);
  const bool average = node.type() == "GlobalAveragePool";
  Window window{.kernel = {input.begin() + 2, input.end()},
                .strides = std::vector<int64_t>(rank, 1),
                .dilations = std::vector<int64_t>(rank, 1),
                .begins = std::vector<int64_t>(rank, 0),
                .ends = std::vector<int64_t>(rank, 0)};
  FOLIOT_RETURN_IF_ERROR(check_window(window, rank));
  Attributes attributes = window_attributes(window);
  attributes.set("kernel", window.kernel);
  if (average) {
    attributes.set("count_include_pad", int64_t{0});
    attributes.set("extra_pads", std::vector<int64_t>(rank, 0));
  }
  return node.finish(node.builder().emit(average ? OperatorKind::kAveragePool : OperatorKind::kMaxPool, {node.input(0)},
                                         std::move(attributes)));
}

constexpr OnnxOperator kOperators[] = {
    {"Conv", 2, 3, convolution},
    {"ConvTranspose", 2, 3, convolution_transpose},
    {"MaxPool", 1, 1, pool},
    {"AveragePool", 1, 1, pool},
    {"GlobalMaxPool", 1, 1, global_pool},
    {"GlobalAveragePool", 1, 1, global_pool},
};

}  // namespace

std::span<const OnnxOperator> convolution_operators() { return kOperators; }

}  // namespace foliot
