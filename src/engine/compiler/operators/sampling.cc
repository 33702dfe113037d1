// Reading images at positions that are computed: grids, regions of interest,
// deformed convolutions; and putting blocks of columns back.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/convolution.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

struct SamplingRule {
  std::string mode = "linear";        // "nearest" "linear" "cubic"
  std::string padding = "zeros";      // "zeros" "border" "reflection"
  bool align_corners = true;          // about which ends is reflected: the outer pixels' centres or edges
  Function combine = Function::kAdd;  // of the weighted pixels; kMax for RoiAlign
};

// One of the pixels along a dimension that a position is made of.
struct Tap {
  ValueIndex pixel;   // a whole number, as float32
  ValueIndex weight;  // kNoValue: 1
};

// x mirrored at both ends as often as it needs to be within them.
ValueIndex reflected(Composer& c, ValueIndex x, int64_t extent, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  const double range = static_cast<double>(align_corners ? extent - 1 : extent);
  if (range == 0) return c.linear(x, 0);
  const ValueIndex turned = c.binary(Function::kMod, c.linear(x, 1, -low), c.like(x, 2 * range));
  return c.linear(c.binary(Function::kMin, turned, c.linear(turned, -1, 2 * range)), 1, low);
}

std::vector<Tap> taps_of(Composer& c, ValueIndex x, const std::string& mode) {
  if (mode == "nearest") return {{x, kNoValue}};
  const ValueIndex low = c.unary(Function::kFloor, x);
  const ValueIndex t = c.sub(x, low);
  if (mode == "linear") return {{low, c.linear(t, -1, 1)}, {c.linear(low, 1, 1), t}};
  // Keys' kernel with a = -0.75, at the distances 1 + t, t, 1 - t, 2 - t.
  constexpr double kA = -0.75;
  const auto near = [&](ValueIndex d) {  // ((a + 2) d - (a + 3)) d^2 + 1
    return c.linear(c.mul(c.mul(d, d), c.linear(d, kA + 2, -(kA + 3))), 1, 1);
  };
  const auto far = [&](ValueIndex d) {  // ((a d - 5 a) d + 8 a) d - 4 a
    return c.linear(c.mul(c.linear(c.mul(c.linear(d, kA, -5 * kA), d), 1, 8 * kA), d), 1, -4 * kA);
  };
  return {{c.linear(low, 1, -1), far(c.linear(t, 1, 1))},
          {low, near(t)},
          {c.linear(low, 1, 1), near(c.linear(t, -1, 1))},
          {c.linear(low, 1, 2), far(c.linear(t, -1, 2))}};
}

// The pixel brought into the image, or its weight to zero.
Tap padded(Composer& c, Tap tap, int64_t extent, const SamplingRule& rule) {
  const double last = static_cast<double>(extent - 1);
  if (rule.padding == "reflection") tap.pixel = reflected(c, tap.pixel, extent, rule.align_corners);
  const ValueIndex inside = c.unary(Function::kClip, tap.pixel, 0, last);
  if (rule.padding == "zeros") {
    const ValueIndex counts = c.cast(c.binary(Function::kEqual, inside, tap.pixel), DataType::kFloat32);
    tap.weight = tap.weight == kNoValue ? counts : c.mul(tap.weight, counts);
  }
  tap.pixel = inside;
  return tap;
}

// x[N, C, d..] read at P positions of each row: one [N, P] for each dimension, in
// pixels, float32. The result is [N, C, P].
ValueIndex sampled(Composer& c, ValueIndex x, const std::vector<ValueIndex>& positions, const SamplingRule& rule) {
  const Shape shape = c.shape(x);
  const int64_t rows = shape[0], channels = shape[1], count = c.shape(positions[0])[1];
  const auto pixels = static_cast<int64_t>(element_count(Shape(shape.begin() + 2, shape.end())));
  const ValueIndex flat = c.reshape(x, {rows, channels, pixels});
  std::vector<Tap> combined{{kNoValue, kNoValue}};  // pixel: position in the flat image
  for (size_t d = 0; d < positions.size(); ++d) {
    const int64_t extent = shape[d + 2];
    ValueIndex position = positions[d];
    if (rule.mode == "nearest") position = c.unary(Function::kRound, position);
    // Of a cubic kernel each pixel is clipped, by padded(): its weights are those of the position outside.
    if (rule.padding == "border" && rule.mode != "cubic")
      position = c.unary(Function::kClip, position, 0, static_cast<double>(extent - 1));
    if (rule.padding == "reflection") position = reflected(c, position, extent, rule.align_corners);
    std::vector<Tap> next;
    for (Tap tap : taps_of(c, position, rule.mode)) {
      tap = padded(c, tap, extent, rule);
      tap.pixel = c.cast(c.unary(Function::kRound, tap.pixel), DataType::kInt64);
      for (const Tap& before : combined) {
        Tap both = tap;
        if (before.pixel != kNoValue)
          both.pixel = c.add(c.linear(before.pixel, static_cast<double>(extent)), tap.pixel);
        if (before.weight != kNoValue) {
          both.weight = tap.weight == kNoValue ? before.weight : c.mul(before.weight, tap.weight);
        }
        next.push_back(both);
      }
    }
    combined = std::move(next);
  }
  ValueIndex sum = kNoValue;
  for (const Tap& tap : combined) {
    const ValueIndex at = c.expand(c.reshape(tap.pixel, {rows, 1, count}), {rows, channels, count});
    ValueIndex value = c.gather_elements(flat, at, 2);
    if (tap.weight != kNoValue) {
      value = c.mul(value, c.cast(c.reshape(tap.weight, {rows, 1, count}), c.type(x)));
    }
    sum = sum == kNoValue ? value : c.binary(rule.combine, sum, value);
  }
  return sum;
}

Status check_image(const NodeTranslation& node, size_t dimensions) {
  const Shape shape = node.shape(0);
  const bool fits = shape.size() == dimensions && shape.size() > 2 && element_count(shape) > 0;
  return fits ? Status() : Status::invalid_argument(fmt::format("input {} is no image", to_string(shape)));
}

Status grid_sample(NodeTranslation& node) {
  const Shape x = node.shape(0), grid = node.shape(1);
  FOLIOT_RETURN_IF_ERROR(check_image(node, grid.size()));
  const size_t spatial = x.size() - 2;
  if (grid.back() != static_cast<int64_t>(spatial) || grid[0] != x[0]) {
    return Status::invalid_argument(fmt::format("grid {} does not fit input {}", to_string(grid), to_string(x)));
  }
  SamplingRule rule;
  rule.mode = node.text("mode", "linear");
  if (rule.mode == "bilinear") rule.mode = "linear";
  if (rule.mode == "bicubic") rule.mode = "cubic";
  rule.padding = node.text("padding_mode", "zeros");
  rule.align_corners = node.integer("align_corners", 0) != 0;
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic") {
    return Status::invalid_argument("mode is '" + rule.mode + "'");
  }
  if (rule.padding != "zeros" && rule.padding != "border" && rule.padding != "reflection") {
    return Status::invalid_argument("padding_mode is '" + rule.padding + "'");
  }
  Composer c(node.builder());
  Shape result(grid.begin(), grid.end() - 1);
  const int64_t count = static_cast<int64_t>(element_count(result)) / x[0];
  const ValueIndex flat = c.cast(c.reshape(node.input(1), {grid[0], count, grid.back()}), DataType::kFloat32);
  std::vector<ValueIndex> positions;
  for (size_t d = 0; d < spatial; ++d) {
    // The innermost dimension stands first.
    const ValueIndex share = c.reshape(c.slice(flat, 2, static_cast<int64_t>(spatial - 1 - d), 1), {grid[0], count});
    const auto extent = static_cast<double>(x[d + 2]);
    positions.push_back(rule.align_corners ? c.linear(share, (extent - 1) / 2, (extent - 1) / 2)
                                           : c.linear(share, extent / 2, (extent - 1) / 2));
  }
  result.insert(result.begin() + 1, x[1]);
  return c.finish(node, c.reshape(sampled(c, node.input(0), positions, rule), result));
}

// `count` numbers from -1 to 1: of the outer pixels' centres, or within their edges.
std::vector<double> spaced(int64_t count, bool align_corners) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double share = align_corners ? (count == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(count - 1))
                                       : (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    values.push_back(2 * share - 1);
  }
  return values;
}

// Each matrix [r, r + 1] times the positions (x, y, .., 1) of all pixels.
Status affine_grid(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Shape size, node.integers_of(1, "'size'"));
  const auto r = static_cast<int64_t>(size.size()) - 2;
  if ((r != 2 && r != 3) || node.shape(0) != Shape{size[0], r, r + 1}) {
    return Status::invalid_argument(fmt::format("theta {} does not fit {}", to_string(node.shape(0)), to_string(size)));
  }
  const Shape extents(size.begin() + 2, size.end());
  FOLIOT_RETURN_IF_ERROR(check_shape(DataType::kFloat32, extents));
  const auto count = static_cast<int64_t>(element_count(extents));
  const bool align_corners = node.integer("align_corners", 0) != 0;
  std::vector<double> base;  // [r + 1, count], the innermost dimension first
  int64_t inner = 1;
  for (size_t d = extents.size(); d-- > 0; inner *= extents[d]) {
    const std::vector<double> values = spaced(extents[d], align_corners);
    for (int64_t i = 0; i < count; ++i) base.push_back(values[static_cast<size_t>(i / inner % extents[d])]);
  }
  base.insert(base.end(), static_cast<size_t>(count), 1);
  Composer c(node.builder());
  const DataType type = node.value(0).type;
  const ValueIndex grid = c.matmul(node.input(0), c.constant(from_doubles(type, {r + 1, count}, base)));
  Shape shape = extents;
  shape.insert(shape.begin(), size[0]);
  shape.push_back(r);
  return c.finish(node, c.reshape(c.transpose(grid, {0, 2, 1}), shape));
}

// Samples evenly spread over each part of each region, then their mean or maximum.
Status region_of_interest_align(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_image(node, 4));
  const Shape x = node.shape(0);
  const int64_t height = node.integer("output_height", 1), width = node.integer("output_width", 1);
  const int64_t ratio = node.integer("sampling_ratio", 0);
  const std::string mode = node.text("mode", "avg");
  const bool half_pixel = node.text("coordinate_transformation_mode",
                                    node.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  if (mode != "avg" && mode != "max") return Status::invalid_argument("mode is '" + mode + "'");
  if (ratio < 1) return Status::unimplemented("with sampling_ratio 0 the number of samples depends on the data");
  if (node.rank(1) != 2 || node.shape(1)[1] != 4 || std::min(height, width) < 1 || std::max(height, width) > 4096 ||
      ratio > 64) {
    return Status::invalid_argument("the regions or the output's size are impossible");
  }
  const int64_t regions = node.shape(1)[0];
  if (node.shape(2) != Shape{regions}) return Status::invalid_argument("batch_indices do not fit the regions");
  const double scale = node.real("spatial_scale", 1), shift = half_pixel ? -0.5 : 0;
  Composer c(node.builder());
  const ValueIndex images = c.gather(node.input(0), node.input(2), 0);
  const ValueIndex boxes = c.linear(c.cast(node.input(1), DataType::kFloat32), scale, shift);
  // Along one dimension: [regions, parts * ratio]
  const auto places = [&](int64_t low, int64_t parts) {
    const ValueIndex begin = c.slice(boxes, 1, low, 1);
    ValueIndex size = c.sub(c.slice(boxes, 1, low + 2, 1), begin);
    if (!half_pixel) size = c.binary(Function::kMax, size, c.like(size, 1));
    std::vector<double> shares;
    for (int64_t i = 0; i < parts * ratio; ++i) {
      shares.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(parts * ratio));
    }
    return c.add(begin, c.mul(size, c.constant(from_doubles(DataType::kFloat32, {1, parts * ratio}, shares))));
  };
  const Shape all{regions, height * ratio, width * ratio};
  const int64_t count = all[1] * all[2];
  const ValueIndex y = c.reshape(c.expand(c.reshape(places(1, height), {regions, all[1], 1}), all), {regions, count});
  const ValueIndex across =
      c.reshape(c.expand(c.reshape(places(0, width), {regions, 1, all[2]}), all), {regions, count});
  // ONNX defines the maximum as that of the weighted pixels, not of their sums.
  const SamplingRule rule{
      .mode = "linear", .padding = "border", .combine = mode == "avg" ? Function::kAdd : Function::kMax};
  ValueIndex values = sampled(c, images, {y, across}, rule);
  // A sample more than a pixel outside is zero.
  const auto near = [&](ValueIndex at, int64_t extent) {
    return c.binary(Function::kAnd, c.binary(Function::kGreaterOrEqual, at, c.like(at, -1)),
                    c.binary(Function::kLessOrEqual, at, c.like(at, static_cast<double>(extent))));
  };
  const ValueIndex seen = c.reshape(c.binary(Function::kAnd, near(y, x[2]), near(across, x[3])), {regions, 1, count});
  values = c.where(seen, values, c.like(values, 0));
  const ValueIndex parts = c.reshape(values, {regions, x[1], height, ratio, width, ratio});
  return c.finish(node, c.reduce(mode == "avg" ? Function::kMean : Function::kMax, parts, {3, 5}, false));
}

// Every tap of the kernel reads where its offset says; then it is a product.
Status deformed_convolution(NodeTranslation& node) {
  const Shape x = node.shape(0), w = node.shape(1), offset = node.shape(2);
  FOLIOT_RETURN_IF_ERROR(check_image(node, 4));
  FOLIOT_ASSIGN_OR_RETURN(const Attributes window, convolution_attributes(node, 0, 1));
  const auto& strides = window.integers("strides");
  const auto& dilations = window.integers("dilations");
  const auto& pads = window.integers("pads");
  const int64_t groups = window.integer("groups"), offset_groups = node.integer("offset_group", 1);
  const int64_t taps = w[2] * w[3];
  if (offset_groups < 1 || x[1] % offset_groups != 0 || w[1] * groups != x[1] || w[0] % groups != 0 ||
      offset.size() != 4 || offset[0] != x[0] || offset[1] != offset_groups * taps * 2) {
    return Status::invalid_argument("weights or offsets do not fit the input");
  }
  const int64_t places = offset[2] * offset[3], rows = x[0] * offset_groups;
  Composer c(node.builder());
  const ValueIndex by_axis = c.reshape(c.cast(node.input(2), DataType::kFloat32), {rows, taps, 2, places});
  const auto positions = [&](size_t axis) {
    std::vector<double> base;  // [taps, places]
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t place = 0; place < places; ++place) {
        const int64_t step = axis == 0 ? tap / w[3] : tap % w[3];
        const int64_t at = axis == 0 ? place / offset[3] : place % offset[3];
        base.push_back(static_cast<double>(at * strides[axis] - pads[axis] + step * dilations[axis]));
      }
    }
    const ValueIndex own = c.reshape(c.slice(by_axis, 2, static_cast<int64_t>(axis), 1), {rows, taps * places});
    return c.add(own, c.constant(from_doubles(DataType::kFloat32, {1, taps * places}, base)));
  };
  const ValueIndex images = c.reshape(node.input(0), {rows, x[1] / offset_groups, x[2], x[3]});
  ValueIndex columns = sampled(c, images, {positions(0), positions(1)}, {.mode = "linear", .padding = "zeros"});
  if (node.has_input(4)) columns = c.mul(columns, c.reshape(node.input(4), {rows, 1, taps * places}));
  // [N, groups, channels * taps, places]
  columns = c.reshape(columns, {x[0], groups, x[1] / groups * taps, places});
  const ValueIndex kernels = c.reshape(node.input(1), {1, groups, w[0] / groups, w[1] * taps});
  ValueIndex y = c.reshape(c.matmul(kernels, columns), {x[0], w[0], offset[2], offset[3]});
  if (node.has_input(3)) y = c.add(y, c.reshape(node.input(3), {1, w[0], 1, 1}));
  return c.finish(node, y);
}

// Where each element of each block lies in the flat image; -1: in the padding.
Result<std::vector<int64_t>> block_positions(NodeTranslation& node, const Shape& image, const Shape& block) {
  const size_t rank = image.size();
  const std::vector<int64_t> ones(rank, 1);
  const std::vector<int64_t> strides = node.integers("strides", ones), dilations = node.integers("dilations", ones);
  const std::vector<int64_t> pads = node.integers("pads", std::vector<int64_t>(2 * rank, 0));
  if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank || block.size() != rank) {
    return Status::invalid_argument("an attribute does not fit the image's dimensions");
  }
  Shape blocks;
  for (size_t d = 0; d < rank; ++d) {
    FOLIOT_ASSIGN_OR_RETURN(const int64_t count,
                            window_extent(image[d], block[d], strides[d], dilations[d], pads[d] + pads[rank + d]));
    blocks.push_back(count);
  }
  const Shape columns = node.shape(0);
  const auto taps = static_cast<int64_t>(element_count(block));
  if (columns.size() != 3 || columns[1] % taps != 0 || columns[2] != static_cast<int64_t>(element_count(blocks))) {
    return Status::invalid_argument(fmt::format("columns {} do not fit the image", to_string(columns)));
  }
  std::vector<int64_t> positions;
  for (uint64_t i = 0; i < element_count(block) * element_count(blocks); ++i) {
    uint64_t step = i / element_count(blocks), at = i % element_count(blocks);
    int64_t position = 0, stride = 1;
    for (size_t d = rank; d-- > 0;) {
      const auto k = static_cast<int64_t>(step % static_cast<uint64_t>(block[d]));
      const auto b = static_cast<int64_t>(at % static_cast<uint64_t>(blocks[d]));
      step /= static_cast<uint64_t>(block[d]);
      at /= static_cast<uint64_t>(blocks[d]);
      const int64_t pixel = b * strides[d] + k * dilations[d] - pads[d];
      position = position < 0 || pixel < 0 || pixel >= image[d] ? -1 : position + pixel * stride;
      stride *= image[d];
    }
    positions.push_back(position);
  }
  return positions;
}

// Overlapping blocks add up. What lies in the padding goes to an element of its
// own behind the image.
Status columns_to_image(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Shape image, node.integers_of(1, "the image's shape"));
  FOLIOT_ASSIGN_OR_RETURN(const Shape block, node.integers_of(2, "the block's shape"));
  FOLIOT_RETURN_IF_ERROR(check_shape(DataType::kInt64, image));
  FOLIOT_RETURN_IF_ERROR(check_shape(DataType::kInt64, block));
  FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> positions, block_positions(node, image, block));
  const auto pixels = static_cast<int64_t>(element_count(image)), taps = static_cast<int64_t>(element_count(block));
  std::ranges::replace(positions, -1, pixels);
  const Shape x = node.shape(0);
  const auto count = static_cast<int64_t>(positions.size());
  const int64_t channels = x[1] / taps;
  Composer c(node.builder());
  const ValueIndex nothing = c.expand(c.like(node.input(0), 0), {x[0], channels, pixels + 1});
  const ValueIndex at = c.expand(c.integers(positions, {1, 1, count}), {x[0], channels, count});
  const ValueIndex sum =
      c.scatter_elements(nothing, at, c.reshape(node.input(0), {x[0], channels, count}), 2, Function::kAdd);
  Shape result{x[0], channels};
  result.insert(result.end(), image.begin(), image.end());
  return c.finish(node, c.reshape(c.slice(sum, 2, 0, pixels), result));
}

// Each value to where its maximum was found; indices count through the whole tensor.
Status max_unpool(NodeTranslation& node) {
  const Shape x = node.shape(0);
  const size_t rank = x.size() < 2 ? 0 : x.size() - 2;
  const std::vector<int64_t> kernel = node.integers("kernel_shape"),
                             strides = node.integers("strides", std::vector<int64_t>(rank, 1)),
                             pads = node.integers("pads", std::vector<int64_t>(2 * rank, 0));
  if (rank < 1 || kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank || node.shape(1) != x) {
    return Status::invalid_argument("attributes or indices do not fit the input");
  }
  Shape own{x[0], x[1]};
  for (size_t d = 0; d < rank; ++d) own.push_back((x[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[rank + d]);
  FOLIOT_RETURN_IF_ERROR(check_shape(node.value(0).type, own));
  Shape result = own;
  if (node.has_input(2)) {
    FOLIOT_ASSIGN_OR_RETURN(result, node.integers_of(2, "the output's shape"));
    FOLIOT_RETURN_IF_ERROR(check_shape(node.value(0).type, result));
  }
  const auto count = static_cast<int64_t>(element_count(x)), size = static_cast<int64_t>(element_count(own));
  Composer c(node.builder());
  const ValueIndex nothing = c.expand(c.like(node.input(0), 0), {size});
  const ValueIndex filled =
      c.scatter_elements(nothing, c.reshape(node.input(1), {count}), c.reshape(node.input(0), {count}), 0);
  std::vector<int64_t> more(2 * own.size(), 0);
  for (size_t d = 0; d < own.size(); ++d) {
    if (result.size() != own.size() || result[d] < own[d])
      return Status::invalid_argument("the output's shape is too small");
    more[own.size() + d] = result[d] - own[d];
  }
  return c.finish(node, c.pad(c.reshape(filled, own), more));
}

constexpr OnnxOperator kSamplingOperators[] = {
    {"GridSample", 2, 2, grid_sample},
    {"AffineGrid", 2, 2, affine_grid},
    {"RoiAlign", 3, 3, region_of_interest_align},
    {"DeformConv", 3, 5, deformed_convolution},
    {"Col2Im", 3, 3, columns_to_image},
    {"MaxUnpool", 2, 3, max_unpool},
};

}  // namespace

std::span<const OnnxOperator> sampling_operators() { return kSamplingOperators; }

}  // namespace foliot
