// Convolution and its transpose: oneDNN chooses the layouts, the weights are
// packed once, and a residual is added in place where it dies here.
//
// Winograd's algorithm (Lavin and Gray, CVPR 2016; F(4x4, 3x3)) multiplies a quarter
// as often where a window of 3x3 moves by one. Its weights are four times as large, so
// they are transformed whenever it runs, from the packing that direct kernels read,
// too: LOAD has nothing more to do, and each batch size has the kernel that suits it.
#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/instruction_set.h"
#include "engine/device/cpu/thread_limit.h"

namespace foliot {
namespace {

// The geometry as oneDNN wants it.
struct ConvolutionGeometry {
  bool transposed = false;
  Shape weights;          // [M, C, k..], or [groups, M/groups, C/groups, k..]
  Shape weights_strides;  // of ONNX's dense weights, seen under that shape
  Shape strides, dilations, pads_begin, pads_end;
};

struct ConvolutionDescriptors {
  Descriptor source, weights, bias, destination;
  bool has_bias = false;
};

ConvolutionGeometry geometry_of(OperatorKind kind, const Attributes& attributes, const Shape& source,
                                const Shape& weights, const Shape& destination) {
  ConvolutionGeometry geometry{.transposed = kind == OperatorKind::kConvolutionTranspose,
                               .weights = {},
                               .weights_strides = {},
                               .strides = attributes.integers("strides"),
                               .dilations = attributes.integers("dilations"),
                               .pads_begin = attributes.integers("pads"),
                               .pads_end = {}};
  const size_t spatial = source.size() - 2;
  geometry.pads_begin.resize(spatial);
  const int64_t groups = attributes.integer("groups");
  // ONNX: [outer, inner, k..], outer being the one that holds all groups.
  const int64_t outer = weights[0] / groups, inner = weights[1];
  const Shape dense = dense_strides(
      {groups, outer, inner,
       element_count(weights) == 0 ? 0
                                   : static_cast<int64_t>(element_count(Shape(weights.begin() + 2, weights.end())))});
  geometry.weights = geometry.transposed ? Shape{groups, inner, outer} : Shape{groups, outer, inner};
  geometry.weights_strides =
      geometry.transposed ? Shape{dense[0], dense[2], dense[1]} : Shape{dense[0], dense[1], dense[2]};
  const Shape kernel(weights.begin() + 2, weights.end());
  const Shape kernel_strides = dense_strides(kernel);
  geometry.weights.insert(geometry.weights.end(), kernel.begin(), kernel.end());
  geometry.weights_strides.insert(geometry.weights_strides.end(), kernel_strides.begin(), kernel_strides.end());
  if (groups == 1) {
    geometry.weights.erase(geometry.weights.begin());
    geometry.weights_strides.erase(geometry.weights_strides.begin());
  }
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t extent = (kernel[d] - 1) * geometry.dilations[d] + 1;
    const int64_t large = geometry.transposed ? destination[d + 2] : source[d + 2];
    const int64_t small = geometry.transposed ? source[d + 2] : destination[d + 2];
    geometry.pads_end.push_back((small - 1) * geometry.strides[d] + extent - large - geometry.pads_begin[d]);
    geometry.dilations[d] -= 1;
  }
  return geometry;
}

enum class Method { kDirect, kWinograd };

Method method_of(std::string_view kernel) {
  return kernel.find("wino") == std::string_view::npos ? Method::kDirect : Method::kWinograd;
}

// Whether Winograd's algorithm saves time, even if images have to be put into blocks
// of channels for it.
bool suits_winograd(const ConvolutionGeometry& geometry, const Shape& source, const Shape& destination) {
  const Shape& weights = geometry.weights;
  if (geometry.transposed || source.size() != 4 || weights.size() != 4 || weights[2] != 3 || weights[3] != 3)
    return false;
  if (geometry.strides != Shape{1, 1} || geometry.dilations != Shape{0, 0}) return false;
  constexpr int64_t kChannelsMin = 64;  // below, transforming images takes what multiplying saves
  if (std::min(source[1], destination[1]) < kChannelsMin) return false;
  // Multiplications for a pair of channels, and what takes as long as so many: a tile
  // of 4x4 results, and transforming the weights. Measured.
  constexpr int64_t kPixel = 9, kTile = 47, kWeights = 3500;
  const int64_t pixels = destination[0] * destination[2] * destination[3];
  const int64_t tiles = destination[0] * ((destination[2] + 3) / 4) * ((destination[3] + 3) / 4);
  return (tiles * kTile + kWeights) * 10 < pixels * kPixel * 9;
}

dnnl::primitive_desc make_descriptor(const ConvolutionGeometry& geometry, Method method,
                                     const ConvolutionDescriptors& of, const dnnl::primitive_attr& attributes,
                                     const dnnl::engine& engine) {
  using dnnl::algorithm;
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  const Descriptor bias = of.has_bias ? of.bias : Descriptor();
  if (geometry.transposed)
    return dnnl::deconvolution_forward::primitive_desc(
        {kInference, algorithm::deconvolution_direct, of.source, of.weights, bias, of.destination, geometry.strides,
         geometry.dilations, geometry.pads_begin, geometry.pads_end},
        attributes, engine);
  // "Training" is where oneDNN transforms weights each time, since they change.
  const bool winograd = method == Method::kWinograd;
  return dnnl::convolution_forward::primitive_desc(
      {winograd ? dnnl::prop_kind::forward_training : kInference,
       winograd ? algorithm::convolution_winograd : algorithm::convolution_direct, of.source, of.weights, bias,
       of.destination, geometry.strides, geometry.dilations, geometry.pads_begin, geometry.pads_end},
      attributes, engine);
}

// oneDNN 2.6 takes the operand of the first image for all of a batch, where its general
// kernel reads one of full size with channels last.
bool mistakes_images(const dnnl::primitive_desc& descriptor, const Fusion& fusion) {
  return fusion.destination &&
         *fusion.destination != dense_descriptor(DataType::kFloat32, fusion.destination->dims()) &&
         std::string_view(descriptor.impl_info_str()).find("gemm") != std::string_view::npos;
}

// Functions for which oneDNN needs dozens of instructions.
bool is_costly(const PostOperation& operation) {
  if (operation.kind != PostOperation::Kind::kActivation) return false;
  switch (operation.function) {
    case Function::kSigmoid:
    case Function::kTanh:
    case Function::kErf:
    case Function::kExp:
    case Function::kLog:
    case Function::kGelu:
    case Function::kGeluTanh:
    case Function::kSoftplus:
    case Function::kSilu:
    case Function::kElu: return true;
    default: return false;
  }
}

// Channels in blocks that fill a quarter of a wide vector, which is how small groups are computed.
bool has_small_blocks(const Descriptor& descriptor) {
  const dnnl_blocking_desc_t& blocking = descriptor.data.format_desc.blocking;
  return blocking.inner_nblks > 0 && blocking.inner_blks[0] < 8;
}

// Whether what is fused takes longer than on its own: oneDNN's general kernel, which multiplies matrices, does it value
// by value, and small blocks do it a few values at a time.
bool fuses_slowly(const dnnl::primitive_desc& descriptor, const Node& node) {
  if (node.post_operations.empty()) return false;
  if (std::string_view(descriptor.impl_info_str()).find("gemm") != std::string_view::npos) return true;
  return std::ranges::any_of(node.post_operations, is_costly) &&
         has_small_blocks(descriptor.query_md(dnnl::query::dst_md));
}

Descriptor weights_as_given(DataType type, const ConvolutionGeometry& geometry) {
  return strided_descriptor(type, geometry.weights, geometry.weights_strides);
}

// Channels in blocks of a vector register where they fill it, else whatever
// oneDNN likes; its kernels for integers want channels last.
Descriptor blocked_descriptor(DataType type, const Shape& shape) {
  if (type == DataType::kUint8) return channels_last_descriptor(type, shape);
  using tag = dnnl::memory::format_tag;
  const bool wide = includes(instruction_set(), dnnl::cpu_isa::avx512_core);
  if (shape.size() < 3 || shape.size() > 5 || shape[1] < (wide ? 16 : 8)) return any_descriptor(type, shape);
  constexpr tag kWide[] = {tag::nCw16c, tag::nChw16c, tag::nCdhw16c};
  constexpr tag kNarrow[] = {tag::nCw8c, tag::nChw8c, tag::nCdhw8c};
  return Descriptor(shape, *dnnl_type(type), (wide ? kWide : kNarrow)[shape.size() - 3]);
}

Descriptor channels_last_or_any_descriptor(DataType type, const Shape& shape) {
  using tag = dnnl::memory::format_tag;
  if (shape.size() < 3 || shape.size() > 5) return any_descriptor(type, shape);
  constexpr tag kLast[] = {tag::nwc, tag::nhwc, tag::ndhwc};
  return Descriptor(shape, *dnnl_type(type), kLast[shape.size() - 3]);
}

// Blocks of channels of which neither depends on the number of threads, for oneDNN's older kernels. Those
// that it likes best choose the block by that number, and may not take each other's.
std::optional<Descriptor> plainly_blocked(const Descriptor& any, size_t spatial) {
  using tag = dnnl::memory::format_tag;
  const bool wide = includes(instruction_set(), dnnl::cpu_isa::avx512_core);
  constexpr tag kWide[] = {tag::OIw16i16o, tag::OIhw16i16o, tag::OIdhw16i16o};
  constexpr tag kNarrow[] = {tag::OIw8i8o, tag::OIhw8i8o, tag::OIdhw8i8o};
  const auto shape = any.dims();
  if (any.data_type() != dnnl::memory::data_type::f32 || spatial > 3 || shape.size() != spatial + 2)
    return std::nullopt;
  return Descriptor(shape, any.data_type(), (wide ? kWide : kNarrow)[spatial - 1]);
}

// How one primitive of a convolution would be made, for weights that are to be chosen.
class WeightsChoice {
 public:
  WeightsChoice(const GraphLowering& lowering, const ConvolutionGeometry& geometry, Method method,
                ConvolutionDescriptors of, const Fusion& fused)
      : lowering_(lowering), geometry_(geometry), method_(method), of_(std::move(of)), fused_(fused) {}

  // In the first of these layouts of which all numbers of threads that EXECs may have take the same
  // kernel, else in one that such a number of threads would choose or all take, else for all threads only.
  std::optional<dnnl::primitive_desc> choose(const std::vector<Descriptor>& layouts) {
    std::optional<dnnl::primitive_desc> of_all_threads;
    for (const Descriptor& layout : layouts) {
      auto found = in_layout(layout);
      if (!found) continue;
      if (suits_fewer_threads(*found)) return found;
      if (!of_all_threads) of_all_threads = found;
    }
    if (!of_all_threads) return std::nullopt;
    for (const uint32_t threads : lowering_.fewer_threads()) {
      auto found = in_layout_of(threads, layouts.back());
      if (found && suits_fewer_threads(*found)) return found;
    }
    if (const auto blocked = plainly_blocked(layouts.back(), geometry_.strides.size())) {
      auto found = in_layout(*blocked);
      if (found && suits_fewer_threads(*found)) return found;
    }
    return of_all_threads;
  }

 private:
  std::optional<dnnl::primitive_desc> in_layout(const Descriptor& weights) {
    of_.weights = weights;
    auto found =
        attempt([&] { return make_descriptor(geometry_, method_, of_, fused_.attributes.make(), lowering_.engine()); });
    if (!found || !is_storable(found->query_md(dnnl::query::weights_md)) || mistakes_images(*found, fused_))
      return std::nullopt;
    return found;
  }
  std::optional<dnnl::primitive_desc> in_layout_of(uint32_t threads, const Descriptor& any) {
    std::optional<dnnl::primitive_desc> narrow;
    {
      const ThreadLimit limit = ThreadLimit::at_most(threads);
      narrow = in_layout(any);
    }
    return narrow ? in_layout(narrow->query_md(dnnl::query::weights_md)) : std::nullopt;
  }
  // The program has one layout of each operand, and one name of the kernel.
  bool suits_fewer_threads(const dnnl::primitive_desc& found) const {
    ConvolutionDescriptors of = of_;
    of.source = found.query_md(dnnl::query::src_md);
    of.weights = found.query_md(dnnl::query::weights_md);
    of.destination = found.query_md(dnnl::query::dst_md);
    return std::ranges::all_of(lowering_.fewer_threads(), [&](uint32_t threads) {
      const ThreadLimit limit = ThreadLimit::at_most(threads);
      const auto narrow = attempt(
          [&] { return make_descriptor(geometry_, method_, of, fused_.attributes.make(), lowering_.engine()); });
      return narrow && std::string_view(narrow->impl_info_str()) == found.impl_info_str();
    });
  }

  const GraphLowering& lowering_;
  const ConvolutionGeometry& geometry_;
  const Method method_;
  ConvolutionDescriptors of_;
  const Fusion& fused_;
};

// Winograd's where it saves time, else the layout that is being tried first, then
// those that oneDNN likes, then dense ones; never a reference implementation. The
// packing that other graphs use comes first. Nullopt: none, or a better one with fewer
// post-operations.
std::optional<dnnl::primitive_desc> choose(const Node& node, GraphLowering& lowering,
                                           const ConvolutionGeometry& geometry, const Fusion& fusion) {
  const Value& source = lowering.value(node.inputs[0]);
  const Value& destination = lowering.value(node.outputs[0]);
  const DataType weights_type = lowering.value(node.inputs[1]).type;
  std::vector<Descriptor> weights{any_descriptor(weights_type, geometry.weights)};
  if (const auto packed = lowering.packed_layout(node.inputs[1], weights_as_given(weights_type, geometry)))
    weights.insert(weights.begin(), *packed);
  const auto find = [&](Method method, const auto& describe,
                        const Fusion& fused) -> std::optional<dnnl::primitive_desc> {
    const ConvolutionDescriptors of{
        .source = describe(source.type, source.shape),
        .weights = {},
        .bias = dense_descriptor(DataType::kFloat32, {destination.shape[1]}),
        .destination = fused.destination.value_or(describe(destination.type, destination.shape)),
        .has_bias = has_bias(node.inputs, node.post_operations)};
    return WeightsChoice(lowering, geometry, method, of, fused).choose(weights);
  };
  if (source.type == DataType::kFloat32 && suits_winograd(geometry, source.shape, destination.shape)) {
    if (auto found = find(Method::kWinograd, blocked_descriptor, fusion)) return found;
    // What its kernel does not fuse takes less time on its own than it saves.
    if (!node.post_operations.empty() && find(Method::kWinograd, blocked_descriptor, {})) return std::nullopt;
  }
  const auto preferred =
      lowering.activation_layout() == ActivationLayout::kBlocked ? blocked_descriptor : channels_last_or_any_descriptor;
  for (const auto& describe : {preferred, any_descriptor, dense_descriptor}) {
    auto found = find(Method::kDirect, describe, fusion);
    if (!found) continue;
    if (fuses_slowly(*found, node) && !lowering.computes_narrow(node)) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

}  // namespace

Result<bool> lower_convolution(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_products(node, lowering));
  const Shape& shape = lowering.shape(node.outputs[0]);
  const std::optional<Fusion> fusion = plan_fusion(node, lowering, shape);
  if (!fusion) return false;
  const ConvolutionGeometry geometry =
      geometry_of(node.kind, node.attributes, lowering.shape(node.inputs[0]), lowering.shape(node.inputs[1]), shape);
  const std::optional<dnnl::primitive_desc> chosen = choose(node, lowering, geometry, *fusion);
  if (!chosen && (!node.post_operations.empty() || lowering.computes_narrow(node))) return false;
  if (!chosen) return Status::unimplemented("oneDNN has no fast kernel for this convolution");

  Operator operation = GraphLowering::begin(node, chosen->impl_info_str());
  operation.inputs = {lowering.in_layout(node.inputs[0], chosen->query_md(dnnl::query::src_md)),
                      lowering.in_layout(node.inputs[1], chosen->query_md(dnnl::query::weights_md),
                                         weights_as_given(lowering.value(node.inputs[1]).type, geometry))};
  if (has_bias(node.inputs, node.post_operations)) operation.inputs.push_back(lowering.dense(node.inputs[2]));
  lowering.add_post_inputs(node, operation);
  operation.outputs = {fused_result(node, lowering, *fusion, chosen->query_md(dnnl::query::dst_md))};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_convolution(const OperatorView& view) {
  const Operator& operation = view.operation();
  const ConvolutionGeometry geometry =
      geometry_of(operation.kind, operation.attributes, view.input(0).shape, view.input(1).shape, view.output().shape);
  PrimitiveAttributes attributes;
  append_post_operations(view, view.output().shape, attributes);
  ConvolutionDescriptors of{.source = view.input_descriptor(0),
                            .weights = view.input_descriptor(1, geometry.weights),
                            .bias = {},
                            .destination = view.output_descriptor(),
                            .has_bias = has_bias(operation.inputs, operation.post_operations)};
  PrimitiveRecipe recipe;
  recipe.inputs = {{DNNL_ARG_SRC, view.input_index(0)}, {DNNL_ARG_WEIGHTS, view.input_index(1)}};
  if (of.has_bias) {
    of.bias = view.input_descriptor(2);
    recipe.inputs.push_back({DNNL_ARG_BIAS, view.input_index(2)});
  }
  recipe.descriptor = make_descriptor(geometry, method_of(operation.kernel), of, attributes.make(), view.engine());
  recipe.outputs = {{DNNL_ARG_DST, view.output_index()}};
  attributes.add_arguments(view, recipe);
  return recipe;
}

}  // namespace foliot
