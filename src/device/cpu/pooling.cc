// Max and average pooling: oneDNN's kernels, and a loop for what they cannot do
// (padding that must not count beside padding that must, windows of padding only).
#include <algorithm>
#include <limits>
#include <vector>

#include "device/cpu/families.h"
#include "device/cpu/fusion.h"
#include "device/cpu/parallel.h"

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
  }

  Status run(Addresses addresses) override {
    const float* source = reinterpret_cast<const float*>(addresses[source_]);
    float* destination = reinterpret_cast<float*>(addresses[destination_]);
    const int64_t in = source_shape_[0] * source_shape_[1] * source_shape_[2];
    const int64_t out = destination_shape_[0] * destination_shape_[1] * destination_shape_[2];
    parallel_for(planes_, planes_ * (in + out),
                 [&](int64_t plane) { pool_plane(source + plane * in, destination + plane * out); });
    return Status();
  }

 private:
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
      if (at < limit) ++window.counted;
      if (at < 0 || at >= source_shape_[d]) continue;
      window.begin = std::min(window.begin, k);
      window.end = k + 1;
    }
    return window;
  }

  int64_t offset(size_t d, int64_t position, int64_t step) const {
    return position * geometry_.strides[d] - geometry_.pads_begin[d] + step * geometry_.dilations[d];
  }

  void pool_plane(const float* source, float* destination) const {
    for (int64_t z = 0; z < destination_shape_[0]; ++z)
      for (int64_t y = 0; y < destination_shape_[1]; ++y)
        for (int64_t x = 0; x < destination_shape_[2]; ++x) *destination++ = pool_one(source, z, y, x);
  }

  float pool_one(const float* source, int64_t z, int64_t y, int64_t x) const {
    const Window depth = window(0, z), height = window(1, y), width = window(2, x);
    const bool maximum = geometry_.algorithm == dnnl::algorithm::pooling_max;
    float value = maximum ? -std::numeric_limits<float>::infinity() : 0.f;
    int64_t inside = 0;
    for (int64_t i = depth.begin; i < depth.end; ++i)
      for (int64_t j = height.begin; j < height.end; ++j)
        for (int64_t k = width.begin; k < width.end; ++k) {
          const int64_t at =
              (offset(0, z, i) * source_shape_[1] + offset(1, y, j)) * source_shape_[2] + offset(2, x, k);
          value = maximum ? std::max(value, source[at]) : value + source[at];
          ++inside;
        }
    if (maximum) return value;
    const int64_t counted = geometry_.count_padding ? depth.counted * height.counted * width.counted : inside;
    return counted == 0 ? 0.f : value / static_cast<float>(counted);
  }

  PoolingGeometry geometry_;
  TensorIndex source_, destination_;
  int64_t planes_;
  Shape source_shape_, destination_shape_;
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

}  // namespace

Result<bool> lower_pooling(const Node& node, GraphLowering& lowering) {
  const bool narrow = lowering.computes_narrow(node);
  if (!narrow) FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const PoolingGeometry geometry =
      geometry_of(node.kind, node.attributes, lowering.shape(source), lowering.shape(destination));
  const std::optional<dnnl::primitive_desc> chosen = choose(geometry, source, destination, lowering);
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
