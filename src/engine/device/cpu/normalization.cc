// Softmax, LayerNorm and LRN.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/normalization_rows.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/vector_functions.h"

namespace foliot {
namespace {

constexpr auto kInference = dnnl::prop_kind::forward_inference;

// A dense tensor around one of its dimensions.
struct Around {
  int64_t outer = 1, extent = 1, inner = 1;
};

Around around(const Shape& shape, int64_t axis) {
  Around result;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto position = static_cast<int64_t>(d);
    (position < axis ? result.outer : position == axis ? result.extent : result.inner) *= shape[d];
  }
  return result;
}

dnnl::primitive_desc softmax_descriptor(const Attributes& attributes, const Descriptor& data,
                                        const dnnl::engine& engine) {
  const int axis = static_cast<int>(attributes.integer("axis"));
  if (attributes.integer("log") != 0)
    return dnnl::logsoftmax_forward::primitive_desc({kInference, data, axis}, PrimitiveAttributes().make(), engine);
  return dnnl::softmax_forward::primitive_desc({kInference, data, axis}, PrimitiveAttributes().make(), engine);
}

// Over a dimension that is not the last, of many neighbours at a time.
class SoftmaxKernel : public Kernel {
 public:
  explicit SoftmaxKernel(const OperatorView& view)
      : source_(view.input_index(0)),
        destination_(view.output_index()),
        around_(around(view.input(0).shape, view.attributes().integer("axis"))),
        log_(view.attributes().integer("log") != 0),
        exponential_(find_vector_function(Function::kExp)) {}

  Status run(Addresses addresses) override {
    const float* source = reinterpret_cast<const float*>(addresses[source_]);
    float* destination = reinterpret_cast<float*>(addresses[destination_]);
    const auto [outer, extent, inner] = around_;
    const int64_t pieces = (inner + kNeighbours - 1) / kNeighbours;
    parallel_for(outer * pieces, outer * inner * extent * 8, [&, extent = extent, inner = inner](int64_t i) {
      const int64_t first = i % pieces * kNeighbours;
      const int64_t start = i / pieces * extent * inner + first;
      softmax(source + start, destination + start, std::min(kNeighbours, inner - first));
    });
    return Status();
  }

 private:
  static constexpr int64_t kNeighbours = 256;
  using Line = std::array<float, kNeighbours>;

  void softmax(const float* source, float* destination, int64_t count) const {
    const auto [outer, extent, inner] = around_;
    Line maximum, sum;
    std::copy_n(source, count, maximum.begin());
    for (int64_t row = 1; row < extent; ++row) combine(maximum, source + row * inner, count, Largest());
    sum.fill(0);
    for (int64_t row = 0; row < extent; ++row) {
      Line powers;
      for (int64_t i = 0; i < count; ++i) powers[at(i)] = source[row * inner + i] - maximum[at(i)];
      if (log_) std::copy_n(powers.begin(), count, destination + row * inner);
      raise(powers, count);
      if (!log_) std::copy_n(powers.begin(), count, destination + row * inner);
      combine(sum, powers.data(), count, std::plus<>());
    }
    for (int64_t i = 0; i < count; ++i) sum[at(i)] = log_ ? std::log(sum[at(i)]) : 1 / sum[at(i)];
    for (int64_t row = 0; row < extent; ++row) {
      float* line = destination + row * inner;
      for (int64_t i = 0; log_ && i < count; ++i) line[i] -= sum[at(i)];
      for (int64_t i = 0; !log_ && i < count; ++i) line[i] *= sum[at(i)];
    }
  }

  struct Largest {
    float operator()(float a, float b) const { return a < b ? b : a; }
  };
  template <typename Combine>
  static void combine(Line& line, const float* with, int64_t count, const Combine& combine) {
    for (int64_t i = 0; i < count; ++i) line[at(i)] = combine(line[at(i)], with[i]);
  }
  void raise(Line& line, int64_t count) const {
    if (exponential_ != nullptr) return exponential_(line.data(), line.data(), count);
    for (int64_t i = 0; i < count; ++i) line[at(i)] = std::exp(line[at(i)]);
  }
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  TensorIndex source_, destination_;
  Around around_;
  bool log_;
  VectorFunction exponential_;  // nullptr: none
};

// Over the last dimension.
class SoftmaxRowsKernel : public Kernel {
 public:
  explicit SoftmaxRowsKernel(const OperatorView& view)
      : source_(view.input_index(0)),
        destination_(view.output_index()),
        around_(around(view.input(0).shape, view.attributes().integer("axis"))),
        log_(view.attributes().integer("log") != 0),
        functions_(find_normalization_rows()) {}

  Status run(Addresses addresses) override {
    const float* source = reinterpret_cast<const float*>(addresses[source_]);
    float* destination = reinterpret_cast<float*>(addresses[destination_]);
    const int64_t rows = around_.outer, extent = around_.extent;
    parallel_for(extent > 0 ? rows : 0, rows * extent * 8, [&](int64_t row) {
      functions_.softmax(source + row * extent, destination + row * extent, extent, log_);
    });
    return Status();
  }

 private:
  TensorIndex source_, destination_;
  Around around_;
  bool log_;
  NormalizationRows functions_;
};

// LayerNorm over merged dimensions: [what is left, what is normalised].
Shape normalised_shape(const Shape& shape, int64_t axis) {
  Shape merged{1, 1};
  for (size_t d = 0; d < shape.size(); ++d) merged[static_cast<int64_t>(d) < axis ? 0 : 1] *= shape[d];
  return merged;
}

dnnl::primitive_desc layer_norm_descriptor(const Attributes& attributes, const Shape& shape, bool scaled,
                                           const dnnl::engine& engine) {
  using dnnl::normalization_flags;
  const Shape merged = normalised_shape(shape, attributes.integer("axis"));
  const auto flags =
      scaled ? normalization_flags::use_scale | normalization_flags::use_shift : normalization_flags::none;
  return dnnl::layer_normalization_forward::primitive_desc(
      {kInference, dense_descriptor(DataType::kFloat32, merged), static_cast<float>(attributes.real("epsilon")), flags},
      PrimitiveAttributes().make(), engine);
}

// Whether parameters have the shape of the normalised dimensions.
bool is_normalised(const Shape& parameters, const Shape& shape, const Attributes& attributes) {
  const auto axis = static_cast<std::ptrdiff_t>(attributes.integer("axis"));
  return parameters == Shape(shape.begin() + axis, shape.end());
}

// Parameters that broadcast to a dense tensor: of element i, the one at (i / run) % count.
struct Broadcast {
  int64_t run = 1, count = 1;
};

// Nullopt: they are not of neighbouring dimensions of it.
std::optional<Broadcast> broadcast_of(const Shape& parameters, const Shape& shape) {
  const Shape padded = padded_shape(parameters, shape.size());
  Broadcast result;
  size_t d = shape.size();
  for (; d > 0 && padded[d - 1] == 1; --d) result.run *= shape[d - 1];
  for (; d > 0 && padded[d - 1] == shape[d - 1]; --d) result.count *= shape[d - 1];
  for (; d > 0; --d)
    if (padded[d - 1] != 1) return std::nullopt;
  return result;
}

// LayerNorm whose scale and bias are the same for runs of neighbours.
class ChannelNormKernel : public Kernel {
 public:
  ChannelNormKernel(const OperatorView& view, Broadcast parameters)
      : source_(view.input_index(0)),
        scale_(view.input_index(1)),
        bias_(view.input_index(2)),
        destination_(view.output_index()),
        rows_(normalised_shape(view.input(0).shape, view.attributes().integer("axis"))[0]),
        extent_(normalised_shape(view.input(0).shape, view.attributes().integer("axis"))[1]),
        parameters_(parameters),
        epsilon_(view.attributes().real("epsilon")),
        functions_(find_normalization_rows()) {}

  Status run(Addresses addresses) override {
    const float* source = reinterpret_cast<const float*>(addresses[source_]);
    const float* scale = reinterpret_cast<const float*>(addresses[scale_]);
    const float* bias = reinterpret_cast<const float*>(addresses[bias_]);
    float* destination = reinterpret_cast<float*>(addresses[destination_]);
    const int64_t run = std::min(parameters_.run, extent_);
    parallel_for(extent_ > 0 ? rows_ : 0, rows_ * extent_ * 8, [&](int64_t row) {
      const int64_t begin = row * extent_;
      const auto [mean, variance] = functions_.moments(source + begin, extent_);
      const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(variance) + epsilon_));
      for (int64_t i = begin; i < begin + extent_; i += run) {
        const int64_t channel = i / parameters_.run % parameters_.count;
        functions_.normalize(source + i, destination + i, run, mean, factor * scale[channel], bias[channel]);
      }
    });
    return Status();
  }

 private:
  TensorIndex source_, scale_, bias_, destination_;
  int64_t rows_, extent_;
  Broadcast parameters_;
  double epsilon_;
  NormalizationRows functions_;
};

dnnl::primitive_desc lrn_descriptor(const Attributes& attributes, const Descriptor& data, const dnnl::engine& engine) {
  return dnnl::lrn_forward::primitive_desc(
      {kInference, dnnl::algorithm::lrn_across_channels, data, attributes.integer("size"),
       static_cast<float>(attributes.real("alpha")), static_cast<float>(attributes.real("beta")),
       static_cast<float>(attributes.real("bias"))},
      PrimitiveAttributes().make(), engine);
}

class LrnKernel : public Kernel {
 public:
  explicit LrnKernel(const OperatorView& view)
      : source_(view.input_index(0)),
        destination_(view.output_index()),
        around_(around(view.input(0).shape, 1)),
        size_(view.attributes().integer("size")),
        alpha_(static_cast<float>(view.attributes().real("alpha"))),
        beta_(static_cast<float>(view.attributes().real("beta"))),
        bias_(static_cast<float>(view.attributes().real("bias"))) {}

  Status run(Addresses addresses) override {
    const float* source = reinterpret_cast<const float*>(addresses[source_]);
    float* destination = reinterpret_cast<float*>(addresses[destination_]);
    const auto [outer, channels, inner] = around_;
    const auto rows = outer * channels;
    parallel_for(rows, rows * inner * size_, [&, channels = channels, inner = inner](int64_t row) {
      const int64_t channel = row % channels;
      const int64_t first = std::max<int64_t>(channel - (size_ - 1) / 2, 0) - channel;
      const int64_t last = std::min<int64_t>(channel + size_ / 2, channels - 1) - channel;
      const float* from = source + row * inner;
      for (int64_t i = 0; i < inner; ++i) {
        float sum = 0;
        for (int64_t c = first; c <= last; ++c) sum += from[c * inner + i] * from[c * inner + i];
        destination[row * inner + i] = from[i] / std::pow(bias_ + alpha_ / static_cast<float>(size_) * sum, beta_);
      }
    });
    return Status();
  }

 private:
  TensorIndex source_, destination_;
  Around around_;
  int64_t size_;
  float alpha_, beta_, bias_;
};

PrimitiveRecipe same_shape_recipe(const OperatorView& view, dnnl::primitive_desc descriptor) {
  PrimitiveRecipe recipe;
  recipe.descriptor = std::move(descriptor);
  recipe.inputs = {{DNNL_ARG_SRC, view.input_index(0)}};
  recipe.outputs = {{DNNL_ARG_DST, view.output_index()}};
  return recipe;
}

// Tries the present layout, then the dense one, then the own kernel.
template <typename Make>
Result<bool> lower_same_shape(const Node& node, GraphLowering& lowering, std::string_view own, const Make& make) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const bool as_it_is = attempt([&] { return make(lowering.layout(source)); }).has_value();
  const Descriptor dense = dense_descriptor(DataType::kFloat32, lowering.shape(source));
  const bool densely = as_it_is || attempt([&] { return make(dense); }).has_value();
  Operator operation = GraphLowering::begin(node, densely ? "" : own);
  operation.inputs = {as_it_is ? lowering.present(source) : lowering.dense(source)};
  operation.outputs = {as_it_is ? lowering.result(destination, lowering.layout(source))
                                : lowering.dense_result(destination)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

}  // namespace

// oneDNN's only over the last dimension of what is not dense.
Result<bool> lower_softmax(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const Shape& shape = lowering.shape(node.inputs[0]);
  if (around(shape, node.attributes.integer("axis")).inner > 1 || lowering.is_dense(node.inputs[0])) {
    FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:softmax"));
    return true;
  }
  return lower_same_shape(node, lowering, "foliot:softmax", [&](const Descriptor& data) {
    return softmax_descriptor(node.attributes, data, lowering.engine());
  });
}

Result<PrimitiveRecipe> describe_softmax(const OperatorView& view) {
  return same_shape_recipe(view, softmax_descriptor(view.attributes(), view.input_descriptor(0), view.engine()));
}

Result<std::unique_ptr<Kernel>> make_softmax(const OperatorView& view) {
  if (around(view.input(0).shape, view.attributes().integer("axis")).inner > 1)
    return std::unique_ptr<Kernel>(std::make_unique<SoftmaxKernel>(view));
  return std::unique_ptr<Kernel>(std::make_unique<SoftmaxRowsKernel>(view));
}

Result<bool> lower_layer_norm(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const Shape& shape = lowering.shape(node.inputs[0]);
  if (GraphLowering::has(node, 1) && !is_normalised(lowering.shape(node.inputs[1]), shape, node.attributes)) {
    const Shape& parameters = lowering.shape(node.inputs[1]);
    if (!GraphLowering::has(node, 2) || parameters != lowering.shape(node.inputs[2]) ||
        !broadcast_of(parameters, shape))
      return Status::unimplemented(
          fmt::format("a layer norm of {} with a scale of {}: it may have a scale and a bias of one "
                      "shape, of the normalised dimensions or of neighbouring ones before the "
                      "last",
                      to_string(shape), to_string(parameters)));
    FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:channel_norm"));
    return true;
  }
  Operator operation = GraphLowering::begin(node);
  for (size_t i = 0; i < 3 && GraphLowering::has(node, i); ++i)
    operation.inputs.push_back(lowering.dense(node.inputs[i]));
  operation.outputs = {lowering.dense_result(node.outputs[0])};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_layer_norm(const OperatorView& view) {
  const bool scaled = view.has_input(1);
  if (scaled && !is_normalised(view.input(1).shape, view.input(0).shape, view.attributes()))
    return Status::invalid_argument("scale and bias are not those of the normalised dimensions");
  PrimitiveRecipe recipe =
      same_shape_recipe(view, layer_norm_descriptor(view.attributes(), view.input(0).shape, scaled, view.engine()));
  if (scaled) recipe.inputs.push_back({DNNL_ARG_SCALE, view.input_index(1)});
  if (scaled) recipe.inputs.push_back({DNNL_ARG_SHIFT, view.input_index(2)});
  return recipe;
}

Result<std::unique_ptr<Kernel>> make_layer_norm(const OperatorView& view) {
  const auto parameters =
      view.has_input(1) ? broadcast_of(view.input(1).shape, view.input(0).shape) : std::optional<Broadcast>();
  if (!parameters) return Status::invalid_argument("scale and bias are not of neighbouring dimensions");
  return std::unique_ptr<Kernel>(std::make_unique<ChannelNormKernel>(view, *parameters));
}

Result<bool> lower_lrn(const Node& node, GraphLowering& lowering) {
  return lower_same_shape(node, lowering, "foliot:lrn", [&](const Descriptor& data) {
    // Over an even number of channels oneDNN leans the other way than ONNX.
    if (node.attributes.integer("size") % 2 == 0) throw dnnl::error(dnnl_unimplemented, "even size");
    return lrn_descriptor(node.attributes, data, lowering.engine());
  });
}

Result<PrimitiveRecipe> describe_lrn(const OperatorView& view) {
  return same_shape_recipe(view, lrn_descriptor(view.attributes(), view.input_descriptor(0), view.engine()));
}

Result<std::unique_ptr<Kernel>> make_lrn(const OperatorView& view) {
  return std::unique_ptr<Kernel>(std::make_unique<LrnKernel>(view));
}

}  // namespace foliot
