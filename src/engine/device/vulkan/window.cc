// Operators that slide a window over an image: convolutions, pooling.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/device/vulkan/operator_dispatches.h"

namespace foliot {
namespace {

using Three = std::array<int64_t, 3>;

// Ids of constants, as in shaders/convolution.comp and pool.comp.
constexpr size_t kChannels = 16, kPixels = 17, kConvolutionWindow = 18, kConvolutionBias = 21, kPackedW = 22,
                 kTransposed = 23;
constexpr size_t kAverage = 16, kCountPadding = 17, kPoolWindow = 18;
constexpr uint32_t kPixelsOfOne = 4;

// Of up to three dimensions, the innermost last; those that are missing are `missing`.
Three three(std::span<const int64_t> values, int64_t missing) {
  Three result{missing, missing, missing};
  std::copy(values.begin(), values.end(), result.end() - static_cast<std::ptrdiff_t>(values.size()));
  return result;
}

// What the attributes and shapes of a window say, dimension by dimension.
struct Window {
  Three from, to, kernel, strides, pads, dilations;

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t results() const { return to[0] * to[1] * to[2]; }
};

Result<Window> window_of(const OperatorTensors& of, std::span<const int64_t> kernel) {
  const Shape &x = of.input(0).shape, &y = of.output().shape;
  const size_t rank = kernel.size();
  const auto& strides = of.attributes().integers("strides");
  const auto& dilations = of.attributes().integers("dilations");
  const auto& pads = of.attributes().integers("pads");
  if (rank < 1 || rank > 3 || x.size() != rank + 2 || y.size() != rank + 2 || strides.size() != rank ||
      dilations.size() != rank || pads.size() != 2 * rank) {
    return Status::invalid_argument("a window of other dimensions than the image");
  }
  Window window{three(std::span(x).subspan(2), 1),
                three(std::span(y).subspan(2), 1),
                three(kernel, 1),
                three(strides, 1),
                three(std::span(pads).first(rank), 0),
                three(dilations, 1)};
  constexpr int64_t kExtentMax = 1 << 24;
  for (const Three& values : {window.from, window.to, window.kernel, window.strides, window.dilations}) {
    if (std::ranges::any_of(values, [](int64_t value) { return value < 1 || value > kExtentMax; }))
      return Status::invalid_argument("a window of impossible extents");
  }
  return window;
}

// X, Y, strides, pads, dilations.
void describe(const Window& window, DispatchBuilder& builder) {
  size_t word = 5;
  for (const Three& values : {window.from, window.to, window.strides, window.pads, window.dilations}) {
    builder.words(word, std::vector<int64_t>(values.begin(), values.end()));
    word += 3;
  }
}

void set_kernel(const Window& window, size_t id, DispatchBuilder& builder) {
  for (size_t d = 0; d < 3; ++d) builder.constant(id + d, static_cast<uint32_t>(window.kernel[d]));
}

Status check_rounds(uint64_t rounds) {
  if (rounds <= kLoopRoundsMax) return {};
  return Status::unimplemented(fmt::format("its window sees {} elements, and {} are possible", rounds, kLoopRoundsMax));
}

}  // namespace

Result<std::vector<Dispatch>> convolution_dispatches(const OperatorTensors& of) {
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  const Tensor &x = of.input(0), &w = of.input(1), &y = of.output();
  const bool transposed = of.operation.kind == OperatorKind::kConvolutionTranspose;
  const int64_t groups = of.attributes().integer("groups");
  if (w.shape.size() < 3) return Status::invalid_argument("weights of too few dimensions");
  FOLIOT_ASSIGN_OR_RETURN(const Window window, window_of(of, std::span(w.shape).subspan(2)));
  const int64_t ins = x.shape[1] / groups, outs = y.shape[1] / groups;
  const Shape expected{transposed ? x.shape[1] : y.shape[1], transposed ? outs : ins};
  if (groups < 1 || x.shape[1] % groups != 0 || y.shape[1] % groups != 0 || x.shape[0] != y.shape[0] ||
      !std::equal(expected.begin(), expected.end(), w.shape.begin())) {
    return Status::invalid_argument("the shapes of a convolution do not agree");
  }
  FOLIOT_RETURN_IF_ERROR(check_rounds(static_cast<uint64_t>(window.taps() * (ins + 1))));
  DispatchBuilder builder(Shader::kConvolution);
  const uint32_t channels = outs >= 4 ? 4 : 1;
  builder.constant(kChannels, channels);
  builder.constant(kPixels, kPixelsOfOne);
  set_kernel(window, kConvolutionWindow, builder);
  builder.constant(kTransposed, transposed);
  if (!w.layout.empty()) {
    if (!w.layout.starts_with(kPackedTaps) || outs % 4 != 0 || transposed) {
      return Status::invalid_argument("weights packed for another kernel");
    }
    builder.constant(kPackedW, 1);
  }
  describe(window, builder);
  builder.words(20, {static_cast<uint64_t>(ins), static_cast<uint64_t>(outs), static_cast<uint64_t>(groups),
                     static_cast<uint64_t>(y.shape[0])});
  builder.read(0, x);
  builder.read(1, w);
  if (of.has_bias()) {
    if (element_count(of.input(2).shape) != static_cast<uint64_t>(y.shape[1])) {
      return Status::invalid_argument("a bias of another length than there are channels");
    }
    builder.constant(kConvolutionBias, 1);
    builder.read(2, of.input(2));
  }
  builder.write(y);
  const size_t fused = fuse_epilogue(of, 1, builder);
  const uint64_t pixels = (static_cast<uint64_t>(window.results()) + kPixelsOfOne - 1) / kPixelsOfOne;
  const uint64_t tiles = (static_cast<uint64_t>(outs) + channels - 1) / channels;
  std::vector<Dispatch> dispatches;
  FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, builder.over(pixels * tiles * static_cast<uint64_t>(groups * y.shape[0])));
  dispatches.push_back(std::move(dispatch));
  FOLIOT_RETURN_IF_ERROR(append_post_operations(of, fused, dispatches));
  return dispatches;
}

Result<std::vector<Dispatch>> pool_dispatches(const OperatorTensors& of) {
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  const bool average = of.operation.kind == OperatorKind::kAveragePool;
  FOLIOT_ASSIGN_OR_RETURN(const Window window, window_of(of, of.attributes().integers("kernel")));
  const std::vector<int64_t>& pads = of.attributes().integers("pads");
  FOLIOT_RETURN_IF_ERROR(check_rounds(static_cast<uint64_t>(window.taps())));
  DispatchBuilder builder(Shader::kPool);
  builder.constant(kAverage, average);
  builder.constant(kCountPadding, average && of.attributes().integer("count_include_pad") != 0);
  set_kernel(window, kPoolWindow, builder);
  describe(window, builder);
  Three ends = three(std::span(pads).subspan(pads.size() / 2), 0);
  for (size_t d = 0; d < 3; ++d) ends[d] += window.from[d];
  builder.words(20, std::vector<int64_t>(ends.begin(), ends.end()));
  const uint64_t count = element_count(of.output().shape);
  builder.words(23, {count});
  builder.read(0, of.input(0));
  builder.write(of.output());
  std::vector<Dispatch> dispatches;
  FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, builder.over(count));
  dispatches.push_back(std::move(dispatch));
  FOLIOT_RETURN_IF_ERROR(append_post_operations(of, 0, dispatches));
  return dispatches;
}

Result<std::vector<Dispatch>> resize_dispatches(const OperatorTensors& of) {
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  const Shape &x = of.input(0).shape, &y = of.output().shape;
  const std::vector<double>& scales = of.attributes().reals("scales");
  if (x.size() < 3 || x.size() > 5 || x[0] != y[0] || x[1] != y[1] || scales[0] != 1 || scales[1] != 1) {
    return Status::unimplemented("resizing of other dimensions than those of an image");
  }
  const auto position = [](const std::string& text, std::initializer_list<std::string_view> names) {
    const auto found = std::find(names.begin(), names.end(), text);
    return found == names.end() ? -1 : static_cast<int>(found - names.begin());
  };
  const Attributes& attributes = of.attributes();
  const int mode = position(attributes.text("mode"), {"nearest", "linear"});
  const int coordinates =
      position(attributes.text("coordinates"), {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"});
  const int nearest =
      position(attributes.text("nearest"), {"round_prefer_floor", "floor", "ceil", "round_prefer_ceil"});
  if (mode < 0 || coordinates < 0 || nearest < 0) return Status::unimplemented("this kind of resizing");
  DispatchBuilder builder(Shader::kResize);
  builder.constant(16, static_cast<uint32_t>(mode));
  builder.constant(17, static_cast<uint32_t>(coordinates));
  builder.constant(18, static_cast<uint32_t>(nearest));
  const Three from = three(std::span(x).subspan(2), 1), to = three(std::span(y).subspan(2), 1);
  builder.words(5, std::vector<int64_t>(from.begin(), from.end()));
  builder.words(8, std::vector<int64_t>(to.begin(), to.end()));
  std::vector<uint64_t> bits(3, std::bit_cast<uint32_t>(1.0F));
  for (size_t d = 2; d < scales.size(); ++d)
    bits[d + 3 - scales.size()] = std::bit_cast<uint32_t>(static_cast<float>(scales[d]));
  builder.words(11, {bits[0], bits[1], bits[2]});
  const uint64_t count = element_count(y);
  builder.words(14, {count});
  builder.read(0, of.input(0));
  builder.write(of.output());
  std::vector<Dispatch> dispatches;
  FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, builder.over(count));
  dispatches.push_back(std::move(dispatch));
  return dispatches;
}

}  // namespace foliot
