// Convolutions and pooling: everything that slides a window.
#include "engine/compiler/operators/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

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

Result<size_t> spatial_rank(const Shape& shape) {
  const int64_t rank = static_cast<int64_t>(shape.size()) - 2;
  if (rank < 1) return Status::invalid_argument(fmt::format("input {} has no spatial dimension", to_string(shape)));
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

Result<Window> read_window(NodeTranslation& node, const Shape& input, std::vector<int64_t> kernel) {
  FOLIOT_ASSIGN_OR_RETURN(const size_t rank, spatial_rank(input));
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
    pad_same(input, automatic == "SAME_UPPER", &window);
  } else if (automatic != "NOTSET") {
    return Status::invalid_argument("auto_pad is '" + automatic + "'");
  }
  return window;
}

// The kernel's extents as the weights have them; the attribute must agree.
Result<Window> read_convolution_window(NodeTranslation& node, const Shape& input, const Shape& weights) {
  if (weights.size() != input.size() || weights.size() < 2) {
    return Status::invalid_argument(
        fmt::format("weights {} do not fit input {}", to_string(weights), to_string(input)));
  }
  const std::vector<int64_t> kernel(weights.begin() + 2, weights.end());
  FOLIOT_ASSIGN_OR_RETURN(Window window, read_window(node, input, kernel));
  if (window.kernel != kernel) {
    return Status::invalid_argument(fmt::format("kernel_shape does not fit weights {}", to_string(weights)));
  }
  return window;
}

Result<int64_t> read_groups(NodeTranslation& node, int64_t channels) {
  const int64_t groups = node.integer("group", 1);
  if (groups < 1 || groups > channels || channels % groups != 0) {
    return Status::invalid_argument(fmt::format("{} groups do not divide {} channels", groups, channels));
  }
  return groups;
}

Status convolution(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(Attributes attributes, convolution_attributes(node, 0, 1));
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
  FOLIOT_ASSIGN_OR_RETURN(Window window, read_convolution_window(node, node.shape(0), node.shape(1)));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t groups, read_groups(node, node.shape(0)[1]));
  const Shape weights = node.shape(1);
  const DataType type = node.value(0).type;
  if (!is_floating(type) || node.value(1).type != type) return Status::invalid_argument("operands are of two types");
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

// Whether each window is one element, and each element a window.
bool keeps_all(const Window& window) {
  const auto all = [](const std::vector<int64_t>& list, int64_t value) {
    return std::ranges::all_of(list, [&](int64_t entry) { return entry == value; });
  };
  return all(window.kernel, 1) && all(window.strides, 1) && all(window.begins, 0) && all(window.ends, 0);
}

Result<ValueIndex> pool(NodeTranslation& node, ValueIndex x, bool average) {
  FOLIOT_ASSIGN_OR_RETURN(Window window, read_window(node, node.shape(0), {}));
  const size_t rank = window.kernel.size();
  std::vector<int64_t> extra(rank, 0);
  if (node.integer("ceil_mode", 0) != 0) extra = ceiling_pads(node.shape(0), window);
  if (!average) {
    for (size_t i = 0; i < rank; ++i) window.ends[i] += extra[i];
  }
  if (keeps_all(window)) return x;
  Attributes attributes = window_attributes(window);
  attributes.set("kernel", window.kernel);
  if (average) {
    attributes.set("count_include_pad", node.integer("count_include_pad", 0));
    attributes.set("extra_pads", std::move(extra));
  }
  return node.builder().emit(average ? OperatorKind::kAveragePool : OperatorKind::kMaxPool, {x}, std::move(attributes));
}

// Of MaxPool's windows: what each reads of an image of `pixels` elements (`pixels`: padding), one after the other, and
// the number that an element has in the output of indices.
struct Taps {
  std::vector<int64_t> pixels, numbers;
};

Taps taps_of(const Window& window, const Shape& from, const Shape& to, bool columns_first) {
  const size_t rank = from.size();
  const auto pixels = static_cast<int64_t>(element_count(from));
  // In the other storage order the last two dimensions change places.
  std::vector<int64_t> strides(rank, 1);
  for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * from[d];
  if (columns_first && rank >= 2) {
    strides[rank - 2] = 1;
    strides[rank - 1] = from[rank - 2];
  }
  Taps taps;
  const auto windows = static_cast<int64_t>(element_count(to)),
             size = static_cast<int64_t>(element_count(window.kernel));
  for (int64_t i = 0; i < windows * size; ++i) {
    int64_t rest_of_window = i / size, rest_of_tap = i % size, pixel = 0, number = 0, stride = 1;
    bool inside = true;
    for (size_t d = rank; d-- > 0;) {
      const int64_t at = rest_of_window % to[d] * window.strides[d] +
                         rest_of_tap % window.kernel[d] * window.dilations[d] - window.begins[d];
      inside = inside && at >= 0 && at < from[d];
      pixel += at * stride;
      number += at * strides[d];
      stride *= from[d];
      rest_of_window /= to[d];
      rest_of_tap /= window.kernel[d];
    }
    taps.pixels.push_back(inside ? pixel : pixels);
    taps.numbers.push_back(inside ? number : 0);
  }
  return taps;
}

// MaxPool's second output: for each window the number of its first largest element among all of x.
Status pool_indices(NodeTranslation& node, ValueIndex pooled) {
  constexpr double kReadMax = 1 << 24;
  const Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const Window window, read_window(node, shape, {}));
  if (!is_floating(node.value(0).type)) return Status::unimplemented("the indices of MaxPool are supported for floats");
  Composer c(node.builder());
  const Shape result = c.shape(pooled), from(shape.begin() + 2, shape.end()), to(result.begin() + 2, result.end());
  const auto pixels = static_cast<int64_t>(element_count(from)), windows = static_cast<int64_t>(element_count(to)),
             size = static_cast<int64_t>(element_count(window.kernel));
  if (const double read = static_cast<double>(element_count(result)) * static_cast<double>(size); read > kReadMax) {
    return Status::unimplemented(
        fmt::format("with indices its windows have {} elements in all, the limit is {}", read, kReadMax));
  }
  const Taps taps = taps_of(window, from, to, node.integer("storage_order", 0) != 0);
  const ValueIndex planes = c.reshape(node.input(0), {shape[0], shape[1], pixels});
  const ValueIndex padding =
      c.expand(c.like(planes, -std::numeric_limits<double>::infinity()), {shape[0], shape[1], 1});
  const ValueIndex read = c.gather(c.concat({planes, padding}, 2), c.integers(taps.pixels, {windows * size}), 2);
  const ValueIndex best = c.arg_max(c.reshape(read, {shape[0], shape[1], windows, size}), 3);
  const ValueIndex numbers =
      c.expand(c.integers(taps.numbers, {1, 1, windows, size}), {shape[0], shape[1], windows, size});
  std::vector<int64_t> firsts;
  for (int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) firsts.push_back(plane * pixels);
  const ValueIndex index = c.add(c.gather_elements(numbers, best, 3), c.integers(firsts, {shape[0], shape[1], 1, 1}));
  return c.finish(node, c.reshape(index, result), 1);
}

Status pool(NodeTranslation& node) {
  if (node.wants_output(1)) {
    FOLIOT_ASSIGN_OR_RETURN(const ValueIndex pooled, pool(node, node.input(0), false));
    FOLIOT_RETURN_IF_ERROR(pool_indices(node, pooled));
    return node.finish(pooled);
  }
  return node.finish(pool(node, node.input(0), node.type() == "AveragePool"));
}

// One window as large as the input.
Result<ValueIndex> global_pool(NodeTranslation& node, ValueIndex x, bool average) {
  const Shape input = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const size_t rank, spatial_rank(input));
  Window window{.kernel = {input.begin() + 2, input.end()},
                .strides = std::vector<int64_t>(rank, 1),
                .dilations = std::vector<int64_t>(rank, 1),
                .begins = std::vector<int64_t>(rank, 0),
                .ends = std::vector<int64_t>(rank, 0)};
  FOLIOT_RETURN_IF_ERROR(check_window(window, rank));
  if (keeps_all(window)) return x;
  Attributes attributes = window_attributes(window);
  attributes.set("kernel", window.kernel);
  if (average) {
    attributes.set("count_include_pad", int64_t{0});
    attributes.set("extra_pads", std::vector<int64_t>(rank, 0));
  }
  return node.builder().emit(average ? OperatorKind::kAveragePool : OperatorKind::kMaxPool, {x}, std::move(attributes));
}

Status global_pool(NodeTranslation& node) {
  return node.finish(global_pool(node, node.input(0), node.type() == "GlobalAveragePool"));
}

// The p-norm of each window: the p-th root of its sum of p-th powers, which is
// its mean times its size where the padding counts.
Status norm_pool(NodeTranslation& node) {
  const int64_t p = node.integer("p", 2);
  if (p < 1) return Status::invalid_argument("p is not positive");
  FOLIOT_ASSIGN_OR_RETURN(Window window, read_window(node, node.shape(0), {}));
  if (node.integer("ceil_mode", 0) != 0) {
    const std::vector<int64_t> extra = ceiling_pads(node.shape(0), window);
    for (size_t i = 0; i < extra.size(); ++i) window.ends[i] += extra[i];
  }
  Attributes attributes = window_attributes(window);
  attributes.set("kernel", window.kernel);
  attributes.set("count_include_pad", int64_t{1});
  attributes.set("extra_pads", std::vector<int64_t>(window.kernel.size(), 0));
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  const ValueIndex powers = c.binary(Function::kPow, c.unary(Function::kAbs, x), c.like(x, static_cast<double>(p)));
  const ValueIndex means = c.emit(OperatorKind::kAveragePool, {powers}, std::move(attributes));
  const ValueIndex sums = c.linear(means, static_cast<double>(element_count(window.kernel)));
  return c.finish(node, c.binary(Function::kPow, sums, c.like(x, 1.0 / static_cast<double>(p))));
}

Status global_norm_pool(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const size_t rank, spatial_rank(node.shape(0)));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i + 2));
  const auto p = static_cast<double>(std::max<int64_t>(node.integer("p", 2), 1));
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  const ValueIndex sums =
      c.reduce(Function::kSum, c.binary(Function::kPow, c.unary(Function::kAbs, x), c.like(x, p)), axes);
  return c.finish(node, c.binary(Function::kPow, sums, c.like(x, 1 / p)));
}

// The past inputs stand before the new ones, and the last of both are the state
// for the next call.
Status causal_convolution(NodeTranslation& node) {
  const Shape x = node.shape(0), weights = node.shape(1);
  if (x.size() != 3 || weights.size() != 3 || weights[0] != x[1] || weights[1] != 1) {
    return Status::invalid_argument(fmt::format("weights {} do not fit input {}", to_string(weights), to_string(x)));
  }
  const std::string activation = node.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return Status::invalid_argument("activation is '" + activation + "'");
  }
  const int64_t past = weights[2] - 1;
  Composer c(node.builder());
  const ValueIndex sequence =
      node.has_input(3) ? c.concat({node.input(3), node.input(0)}, 2) : c.pad(node.input(0), {0, 0, past, 0, 0, 0});
  if (c.shape(sequence)[2] != x[2] + past) return Status::invalid_argument("the past state does not fit the kernel");
  Attributes attributes;
  attributes.set("strides", std::vector<int64_t>{1});
  attributes.set("dilations", std::vector<int64_t>{1});
  attributes.set("pads", std::vector<int64_t>{0, 0});
  attributes.set("groups", x[1]);
  std::vector<ValueIndex> inputs{sequence, node.input(1)};
  if (node.has_input(2)) inputs.push_back(node.input(2));
  ValueIndex y = c.emit(OperatorKind::kConvolution, std::move(inputs), std::move(attributes));
  if (activation != "none") y = c.mul(y, c.unary(Function::kSigmoid, y));
  if (node.wants_output(1)) {
    FOLIOT_RETURN_IF_ERROR(c.finish(node, c.slice(sequence, 2, x[2], past), 1));
  }
  return c.finish(node, y);
}

constexpr OnnxOperator kConvolutionOperators[] = {
    {"Conv", 2, 3, convolution},
    {"ConvTranspose", 2, 3, convolution_transpose},
    {"MaxPool", 1, 1, pool},
    {"AveragePool", 1, 1, pool},
    {"LpPool", 1, 1, norm_pool},
    {"GlobalLpPool", 1, 1, global_norm_pool},
    {"CausalConvWithState", 2, 4, causal_convolution},
    {"GlobalMaxPool", 1, 1, global_pool},
    {"GlobalAveragePool", 1, 1, global_pool},
};

}  // namespace

Result<Attributes> convolution_attributes(NodeTranslation& node, size_t x, size_t w) {
  FOLIOT_ASSIGN_OR_RETURN(const Window window, read_convolution_window(node, node.shape(x), node.shape(w)));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t groups, read_groups(node, node.shape(x)[1]));
  Attributes attributes = window_attributes(window);
  attributes.set("groups", groups);
  return attributes;
}

Result<ValueIndex> average_pool(NodeTranslation& node, ValueIndex x, bool whole) {
  return whole ? global_pool(node, x, true) : pool(node, x, true);
}

std::span<const OnnxOperator> convolution_operators() { return kConvolutionOperators; }

}  // namespace foliot
