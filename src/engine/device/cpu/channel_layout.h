// ChannelLayout: a tensor [N, C, d..] seen as [rows, groups, places, lanes] of
// elements in the order in which they lie, channel c being lane c % lanes of
// group c / lanes, for kernels that treat channels alike in whatever layout.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_CHANNEL_LAYOUT_H_
#define FOLIOT_ENGINE_DEVICE_CPU_CHANNEL_LAYOUT_H_

#include <cstdint>
#include <optional>

#include "engine/device/cpu/layout.h"

namespace foliot {

struct ChannelLayout {
  enum class Kind {
    kDense,    // lanes is 1
    kBlocked,  // lanes is the size of a block, which channels fill
    kLast,     // groups is 1
  };
  Kind kind = Kind::kDense;
  int64_t rows = 1, groups = 1, places = 1, lanes = 1;
};

// Nullopt: the channels lie in some other way, or there are none.
std::optional<ChannelLayout> channel_layout(const Descriptor& descriptor);

// The layout of this kind, and where it is a blocked one of these lanes, for
// another shape. Nullopt: channels would not fill their blocks. REQUIRES: dnnl_type(type).
std::optional<Descriptor> with_channels(ChannelLayout like, DataType type, const Shape& shape);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_CHANNEL_LAYOUT_H_
