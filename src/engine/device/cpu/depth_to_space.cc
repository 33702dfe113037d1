// DepthToSpace: a copy of runs of elements that lie together, in the layout that the operand has.
#include <cstring>
#include <type_traits>

#include "engine/device/cpu/channel_layout.h"
#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"

namespace foliot {
namespace {

// The operand's layout, where both it and the result have it; else dense.
ChannelLayout::Kind kept_kind(const Descriptor& source, const Shape& result) {
  const auto found = channel_layout(source);
  const bool kept = found && found->kind != ChannelLayout::Kind::kDense &&
                    with_channels(*found, DataType::kFloat32, result).has_value();
  return kept ? found->kind : ChannelLayout::Kind::kDense;
}

// A row of the result is, for each place of a row of the operand, `runs` of `length` elements.
class DepthToSpaceKernel : public Kernel {
 public:
  DepthToSpaceKernel(const OperatorView& view, ChannelLayout::Kind kind)
      : source_(view.input_index(0)), destination_(view.output_index()) {
    const Shape& from = view.input(0).shape;
    const Shape& to = view.output().shape;
    const int64_t columns = view.attributes().integer("columns"), plane = from[2] * from[3];
    images_ = from[0], image_ = from[1] * plane;
    height_ = from[2], width_ = from[3], rows_ = view.attributes().integer("rows");
    switch (kind) {
      case ChannelLayout::Kind::kLast:  // those of a row of a block lie together
        groups_ = 1, group_ = 0, runs_ = 1, run_ = 0;
        length_ = columns * to[1], place_ = from[1], row_ = length_;
        break;
      case ChannelLayout::Kind::kBlocked:
        length_ = place_ = channel_layout(view.input_descriptor(0))->lanes;
        groups_ = to[1] / length_, group_ = plane * length_;
        runs_ = columns, run_ = to[1] * plane, row_ = columns * run_;
        break;
      case ChannelLayout::Kind::kDense:
        length_ = place_ = 1;
        groups_ = to[1], group_ = plane;
        runs_ = columns, run_ = to[1] * plane, row_ = columns * run_;
        break;
    }
  }

  Status run(Addresses addresses) override {
    const float* source = reinterpret_cast<const float*>(addresses[source_]);
    float* destination = reinterpret_cast<float*>(addresses[destination_]);
    const int64_t to_row = width_ * runs_ * length_;
    parallel_for(images_ * groups_ * height_, images_ * image_, [&](int64_t i) {
      const int64_t y = i % height_, group = i / height_ % groups_, image = i / height_ / groups_;
      const float* from = source + image * image_ + group * group_ + y * width_ * place_;
      float* to = destination + i * rows_ * to_row;
      for (int64_t row = 0; row < rows_; ++row) copy_row(from + row * row_, to + row * to_row);
    });
    return Status();
  }

 private:
  template <typename Length>
  void copy_runs(const float* from, float* to, Length length) const {
    if (runs_ == 2) {
      for (int64_t x = 0; x < width_; ++x, from += place_, to += 2 * length) {
        std::memcpy(to, from, static_cast<size_t>(length) * sizeof(float));
        std::memcpy(to + length, from + run_, static_cast<size_t>(length) * sizeof(float));
      }
      return;
    }
    for (int64_t x = 0; x < width_; ++x, from += place_)
      for (int64_t run = 0; run < runs_; ++run, to += length)
        std::memcpy(to, from + run * run_, static_cast<size_t>(length) * sizeof(float));
  }

  void copy_row(const float* from, float* to) const {
    switch (length_) {
      case 1: return copy_runs(from, to, std::integral_constant<int64_t, 1>());
      case 2: return copy_runs(from, to, std::integral_constant<int64_t, 2>());
      case 8: return copy_runs(from, to, std::integral_constant<int64_t, 8>());
      case 16: return copy_runs(from, to, std::integral_constant<int64_t, 16>());
      default: return copy_runs(from, to, length_);
    }
  }

  TensorIndex source_, destination_;
  int64_t images_, image_;  // and the elements of each
  int64_t groups_, group_;  // of the result's channels, and their distance in the operand
  int64_t height_, width_, rows_;
  int64_t row_, run_, place_;  // distances in the operand: of a block's rows, their runs, and places
  int64_t runs_, length_;
};

}  // namespace

Result<bool> lower_depth_to_space(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const Descriptor layout = lowering.layout(source);
  const Shape& shape = lowering.shape(destination);
  if (kept_kind(layout, shape) == ChannelLayout::Kind::kDense) {
    FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:depth_to_space"));
    return true;
  }
  Operator operation = GraphLowering::begin(node, "foliot:depth_to_space");
  operation.inputs = {lowering.present(source)};
  operation.outputs = {
      lowering.result(destination, *with_channels(*channel_layout(layout), DataType::kFloat32, shape))};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<std::unique_ptr<Kernel>> make_depth_to_space(const OperatorView& view) {
  auto kind = ChannelLayout::Kind::kDense;
  if (!view.input(0).layout.empty()) {
    const Descriptor layout = view.input_descriptor(0);
    kind = kept_kind(layout, view.output().shape);
    if (kind == ChannelLayout::Kind::kDense ||
        *with_channels(*channel_layout(layout), DataType::kFloat32, view.output().shape) != view.output_descriptor())
      return Status::invalid_argument("moves depth to space into another layout");
  } else if (!view.output().layout.empty()) {
    return Status::invalid_argument("moves depth to space into another layout");
  }
  return std::unique_ptr<Kernel>(std::make_unique<DepthToSpaceKernel>(view, kind));
}

}  // namespace foliot
