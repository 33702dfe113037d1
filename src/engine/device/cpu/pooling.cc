// Max and average pooling: oneDNN's kernels, and a loop for what they cannot do
// (padding that must not count beside padding that must, windows of padding only).
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/pooling_rows.h"

namespace foliot {
namespace {

struct PoolingGeometry {
  dnnl::algorithm algorithm = dnnl::algorithm::pooling_max;
  Shape kernel, strides, dilations, pads_begin, pads_end;  // dilations as ONNX counts them
  Shape extra_pads;
  bool count_padding = false;
};

PoolingGeometry geometry_of(OperatorKind kind, const Attributes& attributes, const Shape& source,
                            const Shape& destination) {
  PoolingGeometry geometry{.kernel = attributes.integers("kernel"),
                           .strides = attributes.integers("strides"),
                           .dilations = attributes.integers("dilations"),
                           .pads_begin = attributes.integers("pads"),
                           .pads_end = {},
                           .extra_pads = {}};
  const size_t spatial = geometry.kernel.size();
  geometry.pads_begin.resize(spatial);
  geometry.extra_pads.assign(spatial, 0);
  for (size_t d = 0; d < spatial; ++d)
    geometry.pads_end.push_back((destination[d + 2] - 1) * geometry.strides[d] +
                                (geometry.kernel[d] - 1) * geometry.dilations[d] + 1 - source[d + 2] -
                                geometry.pads_begin[d]);
  if (kind != OperatorKind::kAveragePool) return geometry;
  if (attributes.has("extra_pads")) geometry.extra_pads = attributes.integers("extra_pads");
  geometry.count_padding = attributes.integer("count_include_pad") != 0;
  geometry.algorithm = geometry.count_padding ? dnnl::algorithm::pooling_avg_include_padding
                                              : dnnl::algorithm::pooling_avg_exclude_padding;
  return geometry;
}

// Whether oneDNN computes the same as ONNX.
bool fits_primitive(const PoolingGeometry& geometry) {
  for (size_t d = 0; d < geometry.kernel.size(); ++d) {
    const int64_t extent = (geometry.kernel[d] - 1) * geometry.dilations[d] + 1;
    if (geometry.pads_begin[d] >= extent || geometry.pads_end[d] >= extent) return false;
    if (geometry.count_padding && geometry.extra_pads[d] != 0) return false;
    // A window over dilated input may see padding only.
    if (geometry.dilations[d] != 1 && (geometry.pads_begin[d] != 0 || geometry.pads_end[d] > 0)) return false;
  }
  return true;
}

dnnl::primitive_desc make_descriptor(const PoolingGeometry& geometry, const Descriptor& source,
                                     const Descriptor& destination, const dnnl::engine& engine) {
  Shape dilations = geometry.dilations;
  for (int64_t& dilation : dilations) --dilation;
  return dnnl::pooling_v2_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, geometry.algorithm, source, destination, geometry.strides, geometry.kernel,
       dilations, geometry.pads_begin, geometry.pads_end},
      PrimitiveAttributes().make(), engine);
}

// Row by row of the result: first the rows of the input that its windows see become one, then
// neighbours in that.
class PoolingKernel : public Kernel {
 public:
  PoolingKernel(const OperatorView& view, PoolingGeometry geometry)
      : geometry_(std::move(geometry)),
        source_(view.input_index(0)),
        destination_(view.output_index()),
        planes_(view.output().shape[0] * view.output().shape[1]) {
    source_shape_.assign(view.input(0).shape.begin() + 2, view.input(0).shape.end());
    destination_shape_.assign(view.output().shape.begin() + 2, view.output().shape.end());
    // One to three spatial dimensions are all seen as three.
    for (Shape* shape :
         {&source_shape_, &destination_shape_, &geometry_.kernel, &geometry_.strides, &geometry_.dilations})
      *shape = padded_shape(*shape, 3);
    for (Shape* pads : {&geometry_.pads_begin, &geometry_.pads_end, &geometry_.extra_pads})
      pads->insert(pads->begin(), 3 - pads->size(), 0);
    for (int64_t x = 0; x < destination_shape_[2]; ++x) counts_.push_back(static_cast<float>(window(2, x).counted));
    if (source_shape_[0] == 1 && destination_shape_[0] == 1 && geometry_.kernel[0] == 1) set_windows();
  }

  Status run(Addresses addresses) override {
    const float* source = reinterpret_cast<const float*>(addresses[source_]);
    float* destination = reinterpret_cast<float*>(addresses[destination_]);
    const int64_t in = source_shape_[0] * source_shape_[1] * source_shape_[2];
    const int64_t rows = destination_shape_[0] * destination_shape_[1], width = destination_shape_[2];
    if (!windows_.rows.empty()) {
      const PoolingRows::Pool pool_rows = is_maximum() ? rows_.maximum : rows_.average;
      const int64_t together = planes_ >= kPlanes ? rows : (rows + kPlanes - 1) / kPlanes;
      const int64_t parts = (rows + together - 1) / together;
      parallel_for(planes_ * parts, planes_ * (in + rows * width), [&](int64_t i) {
        const int64_t plane = i / parts, begin = i % parts * together, end = std::min(begin + together, rows);
        pool_rows(windows_, source + plane * in, begin, end, destination + (plane * rows + begin) * width);
      });
      return Status();
    }
    parallel_for(planes_ * rows, planes_ * (in + rows * width), [&](int64_t row) {
      const float* plane = source + row / rows * in;
      const int64_t z = row % rows / destination_shape_[1], y = row % destination_shape_[1];
      for (int64_t x = 0; x < width; x += kTogether)
        pool(plane, z, y, {x, std::min(x + kTogether, width)}, destination + row * width);
    });
    return Status();
  }

 private:
  // With fewer planes than this, each is divided among the threads.
  static constexpr int64_t kPlanes = 16;
  // So many results of a row at a time.
  static constexpr int64_t kTogether = 256;
  // So many neighbours of a row of the input at a time.
  static constexpr int64_t kLine = 1024;

  struct Range {
    int64_t begin, end;
  };

  // The part of window `position` along `d` that lies within the input, and how
  // many of its places count.
  struct Window {
    int64_t begin, end, counted;  // in steps of the kernel
  };

  Window window(size_t d, int64_t position) const {
    const int64_t start = position * geometry_.strides[d] - geometry_.pads_begin[d];
    const int64_t limit = source_shape_[d] + std::max<int64_t>(geometry_.pads_end[d] - geometry_.extra_pads[d], 0);
    Window window{.begin = geometry_.kernel[d], .end = 0, .counted = 0};
    for (int64_t k = 0; k < geometry_.kernel[d]; ++k) {
      const int64_t at = start + k * geometry_.dilations[d];
      const bool inside = at >= 0 && at < source_shape_[d];
      if (geometry_.count_padding ? at < limit : inside) ++window.counted;
      if (!inside) continue;
      window.begin = std::min(window.begin, k);
      window.end = k + 1;
    }
    return window;
  }

  int64_t offset(size_t d, int64_t position, int64_t step) const {
    return position * geometry_.strides[d] - geometry_.pads_begin[d] + step * geometry_.dilations[d];
  }

  // For planes whose rows are short enough.
  void set_windows() {
    const int64_t extent = (geometry_.kernel[2] - 1) * geometry_.dilations[2] + 1;
    const int64_t seen = (destination_shape_[2] - 1) * geometry_.strides[2] + extent;
    windows_ = {.in_width = source_shape_[2],
                .kernel_width = geometry_.kernel[2],
                .stride = geometry_.strides[2],
                .dilation = geometry_.dilations[2],
                .dilation_down = geometry_.dilations[1],
                .pad_left = geometry_.pads_begin[2],
                .padded_width = std::max(seen, geometry_.pads_begin[2] + source_shape_[2]),
                .rows = {},
                .counted = {}};
    if (windows_.padded_width > PlaneWindows::kPaddedWidthMax) return;
    for (const float count : counts_) windows_.counted.push_back(std::max(count, 1.0F));
    const auto depth = static_cast<float>(window(0, 0).counted);
    for (int64_t y = 0; y < destination_shape_[1]; ++y) {
      const Window height = window(1, y);
      windows_.rows.push_back({.first = height.begin < height.end ? offset(1, y, height.begin) : 0,
                               .count = std::max<int64_t>(height.end - height.begin, 0),
                               .counted = std::max(depth * static_cast<float>(height.counted), 1.0F)});
    }
  }

  bool is_maximum() const { return geometry_.algorithm == dnnl::algorithm::pooling_max; }

  // `columns` of row (z, y) of the result.
  void pool(const float* plane, int64_t z, int64_t y, Range columns, float* to) const {
    const Window depth = window(0, z), height = window(1, y);
    std::fill(to + columns.begin, to + columns.end, is_maximum() ? -std::numeric_limits<float>::infinity() : 0.F);
    const Range seen{std::max<int64_t>(offset(2, columns.begin, 0), 0),
                     std::min(offset(2, columns.end - 1, geometry_.kernel[2] - 1) + 1, source_shape_[2])};
    std::array<float, kLine> line;
    for (int64_t begin = seen.begin; begin < seen.end && depth.begin < depth.end && height.begin < height.end;
         begin += kLine) {
      const Range part{begin, std::min(begin + kLine, seen.end)};
      join_rows(plane, z, depth, y, height, part, line.data());
      for (int64_t k = 0; k < geometry_.kernel[2]; ++k) take_neighbours(line.data(), part, k, columns, to);
    }
    if (is_maximum()) return;
    const auto rows = static_cast<float>(depth.counted * height.counted);
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      const float count = rows * counts_[static_cast<size_t>(x)];
      to[x] = count == 0 ? 0 : to[x] / count;
    }
  }

  // What the rows of the input that are seen hold in the columns of `part`, joined.
  void join_rows(const float* plane, int64_t z, const Window& depth, int64_t y, const Window& height, Range part,
                 float* line) const {
    const int64_t count = part.end - part.begin;
    bool first = true;
    for (int64_t i = depth.begin; i < depth.end; ++i)
      for (int64_t j = height.begin; j < height.end; ++j) {
        const float* row =
            plane + (offset(0, z, i) * source_shape_[1] + offset(1, y, j)) * source_shape_[2] + part.begin;
        if (first)
          std::copy_n(row, count, line);
        else if (is_maximum())
          for (int64_t x = 0; x < count; ++x) line[x] = line[x] < row[x] ? row[x] : line[x];
        else
          for (int64_t x = 0; x < count; ++x) line[x] += row[x];
        first = false;
      }
  }

  // What stands at step `k` of each window, if it is in `part`.
  void take_neighbours(const float* line, Range part, int64_t k, Range columns, float* to) const {
    const int64_t stride = geometry_.strides[2], start = offset(2, 0, k);
    const auto first_at = [&](int64_t at) { return at <= start ? 0 : (at - start + stride - 1) / stride; };
    const int64_t begin = std::max(columns.begin, first_at(part.begin));
    const int64_t end = std::min(columns.end, first_at(part.end));
    if (begin >= end) return;
    const float* from = line + (start + begin * stride - part.begin);
    to += begin;
    const auto take = [&](auto step) {
      if (is_maximum())
        for (int64_t x = 0; x < end - begin; ++x) to[x] = to[x] < from[x * step] ? from[x * step] : to[x];
      else
        for (int64_t x = 0; x < end - begin; ++x) to[x] += from[x * step];
    };
    if (stride == 1) return take(std::integral_constant<int64_t, 1>());
    if (stride == 2) return take(std::integral_constant<int64_t, 2>());
    take(stride);
  }

  PoolingGeometry geometry_;
  TensorIndex source_, destination_;
  int64_t planes_;
  Shape source_shape_, destination_shape_;
  std::vector<float> counts_;  // of the columns of a window
  PlaneWindows windows_;       // without rows: not used
  PoolingRows rows_ = find_pooling_rows();
};

// The source's own layout, or channels last, which is all that kernels for
// integers know.
std::optional<dnnl::primitive_desc> choose(const PoolingGeometry& geometry, ValueIndex source, ValueIndex destination,
                                           const GraphLowering& lowering) {
  if (!fits_primitive(geometry)) return std::nullopt;
  const Value& from = lowering.value(source);
  const Descriptor result = any_descriptor(from.type, lowering.shape(destination));
  std::vector<Descriptor> layouts{lowering.layout(source)};
  if (from.type == DataType::kUint8) layouts.push_back(channels_last_descriptor(from.type, from.shape));
  for (const Descriptor& layout : layouts)
    if (auto found = attempt([&] { return make_descriptor(geometry, layout, result, lowering.engine()); }))
      return found;
  return std::nullopt;
}

// Whether oneDNN has no better than a loop over single values.
bool is_loop(const dnnl::primitive_desc& descriptor) {
  const std::string_view name = descriptor.impl_info_str();
  return name.starts_with("simple") || name.starts_with("ref");
}

}  // namespace

Result<bool> lower_pooling(const Node& node, GraphLowering& lowering) {
  const bool narrow = lowering.computes_narrow(node);
  if (!narrow) FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const PoolingGeometry geometry =
      geometry_of(node.kind, node.attributes, lowering.shape(source), lowering.shape(destination));
  std::optional<dnnl::primitive_desc> chosen = choose(geometry, source, destination, lowering);
  if (chosen && !narrow && lowering.is_dense(source) && is_loop(*chosen)) chosen.reset();
  if (!chosen && narrow) return false;
  Operator operation = GraphLowering::begin(node, chosen ? "" : "foliot:pooling");
  if (chosen) {
    operation.inputs = {lowering.in_layout(source, chosen->query_md(dnnl::query::src_md))};
    operation.outputs = {lowering.result(destination, chosen->query_md(dnnl::query::dst_md))};
  } else {
    operation.inputs = {lowering.dense(source)};
    operation.outputs = {lowering.dense_result(destination)};
  }
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_pooling(const OperatorView& view) {
  const Operator& operation = view.operation();
  const PoolingGeometry geometry =
      geometry_of(operation.kind, operation.attributes, view.input(0).shape, view.output().shape);
  PrimitiveRecipe recipe;
  recipe.descriptor = make_descriptor(geometry, view.input_descriptor(0), view.output_descriptor(), view.engine());
  recipe.inputs = {{DNNL_ARG_SRC, view.input_index(0)}};
  recipe.outputs = {{DNNL_ARG_DST, view.output_index()}};
  return recipe;
}

Result<std::unique_ptr<Kernel>> make_pooling(const OperatorView& view) {
  if (view.input(0).type != DataType::kFloat32 || view.output().type != DataType::kFloat32)
    return Status::invalid_argument("the kernel works on FP32 only");
  PoolingGeometry geometry =
      geometry_of(view.operation().kind, view.attributes(), view.input(0).shape, view.output().shape);
  return std::unique_ptr<Kernel>(std::make_unique<PoolingKernel>(view, std::move(geometry)));
}

}  // namespace foliot
