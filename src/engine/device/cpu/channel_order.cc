#include "engine/device/cpu/channel_order.h"

#include <algorithm>
#include <cstring>

#include "engine/device/cpu/instruction_set.h"

namespace foliot {
namespace {

constexpr int64_t kTileMin = 8;
// A cache line of a dense image.
constexpr int64_t kPlacesOfPart = 16;

}  // namespace
}  // namespace foliot

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
namespace foliot::channels::avx2 {
#include "engine/device/cpu/channel_order.inc"
}
#undef FOLIOT_TARGET

#define FOLIOT_TARGET
namespace foliot::channels::sse2 {
#include "engine/device/cpu/channel_order.inc"
}
#undef FOLIOT_TARGET

namespace foliot {

// The last one has what is left, which is no whole part.
int64_t ChannelOrder::parts() const { return std::max<int64_t>(places / kPlacesOfPart, 1); }

namespace {

std::optional<ChannelOrder> of_groups(int64_t images, int64_t channels, int64_t places, int64_t lanes) {
  if (channels < kTileMin || places < kTileMin) return std::nullopt;
  return ChannelOrder{.images = images,
                      .channels = channels,
                      .places = places,
                      .lanes = lanes,
                      .group = places * lanes,
                      .place = lanes,
                      .image = (channels + lanes - 1) / lanes * places * lanes};
}

}  // namespace

std::optional<ChannelOrder> ChannelOrder::last(int64_t images, int64_t channels, int64_t places) {
  return of_groups(images, channels, places, channels);
}

std::optional<ChannelOrder> channel_order(const Descriptor& descriptor) {
  using tag = dnnl::memory::format_tag;
  const Shape shape = shape_of(descriptor);
  if (shape.size() < 3 || shape.size() > 5 || descriptor.data_type() != dnnl::memory::data_type::f32)
    return std::nullopt;
  const auto lies_as = [&](tag each) { return descriptor == Descriptor(shape, descriptor.data_type(), each); };
  constexpr tag kLast[] = {tag::nwc, tag::nhwc, tag::ndhwc};
  constexpr tag kWide[] = {tag::nCw16c, tag::nChw16c, tag::nCdhw16c};
  constexpr tag kNarrow[] = {tag::nCw8c, tag::nChw8c, tag::nCdhw8c};
  const size_t spatial = shape.size() - 3;
  int64_t places = 1;
  for (size_t d = 2; d < shape.size(); ++d) places *= shape[d];
  if (lies_as(kLast[spatial])) return ChannelOrder::last(shape[0], shape[1], places);
  if (lies_as(kWide[spatial])) return of_groups(shape[0], shape[1], places, 16);
  if (lies_as(kNarrow[spatial])) return of_groups(shape[0], shape[1], places, 8);
  return std::nullopt;
}

ChannelCopies find_channel_copies(dnnl::cpu_isa set) {
  return includes(set, dnnl::cpu_isa::avx2) ? channels::avx2::kCopies : channels::sse2::kCopies;
}

ChannelCopies find_channel_copies() { return find_channel_copies(instruction_set()); }

}  // namespace foliot
