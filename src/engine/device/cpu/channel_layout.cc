#include "engine/device/cpu/channel_layout.h"

#include <vector>

namespace foliot {
namespace {

using Type = dnnl::memory::data_type;

Descriptor channels_last(Type type, const Shape& shape) {
  Shape strides = dense_strides(shape);
  for (size_t d = 2; d < shape.size(); ++d) strides[d] *= shape[1];
  strides[1] = 1;
  return Descriptor(shape, type, strides);
}

// oneDNN's own descriptor of blocks of 8 or 16 channels.
std::optional<Descriptor> blocked(Type type, const Shape& shape, int64_t lanes) {
  using tag = dnnl::memory::format_tag;
  if (shape.size() < 3 || shape.size() > 5 || shape[1] == 0 || shape[1] % lanes != 0) return std::nullopt;
  constexpr tag kWide[] = {tag::nCw16c, tag::nChw16c, tag::nCdhw16c};
  constexpr tag kNarrow[] = {tag::nCw8c, tag::nChw8c, tag::nCdhw8c};
  return Descriptor(shape, type, (lanes == 16 ? kWide : kNarrow)[shape.size() - 3]);
}

}  // namespace

std::optional<ChannelLayout> channel_layout(const Descriptor& descriptor) {
  const Shape shape = shape_of(descriptor);
  const Type type = descriptor.data_type();
  if (shape.size() < 2 || shape[1] == 0) return std::nullopt;
  ChannelLayout layout{.kind = ChannelLayout::Kind::kDense, .rows = shape[0], .groups = shape[1]};
  for (size_t d = 2; d < shape.size(); ++d) layout.places *= shape[d];
  if (is_dense(descriptor)) return layout;
  if (descriptor == channels_last(type, shape)) {
    layout.kind = ChannelLayout::Kind::kLast;
    std::swap(layout.groups, layout.lanes);
    return layout;
  }
  for (const int64_t lanes : {16, 8}) {
    if (descriptor != blocked(type, shape, lanes)) continue;
    layout.kind = ChannelLayout::Kind::kBlocked;
    layout.lanes = lanes;
    layout.groups /= lanes;
    return layout;
  }
  return std::nullopt;
}

std::optional<Descriptor> with_channels(ChannelLayout like, DataType type, const Shape& shape) {
  switch (like.kind) {
    case ChannelLayout::Kind::kDense: return dense_descriptor(type, shape);
    case ChannelLayout::Kind::kLast: return channels_last(*dnnl_type(type), shape);
    case ChannelLayout::Kind::kBlocked: return blocked(*dnnl_type(type), shape, like.lanes);
  }
  return std::nullopt;
}

}  // namespace foliot
