// LaneInterval: the lanes of a device that one EXEC takes.
//
// A device has lanes: disjoint sets of its cores, each of which can run one EXEC while
// the others run others. An EXEC takes an interval of neighbours, as wide as is worth
// while: its width is a power of two or all lanes of the device, and it begins at a
// multiple of its width, so that two intervals are disjoint or one contains the other.
#ifndef FOLIOT_FOUNDATION_CORE_LANES_H_
#define FOLIOT_FOUNDATION_CORE_LANES_H_

#include <bit>
#include <cstdint>
#include <vector>

namespace foliot {

inline constexpr uint32_t kLanesMax = 64;  // of one device

struct LaneInterval {
  uint32_t first = 0;
  uint32_t count = 1;

  uint32_t end() const { return first + count; }
  bool contains(uint32_t lane) const { return first <= lane && lane < end(); }
  // A bit for each lane.
  uint64_t bits() const { return (count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first; }
  bool overlaps(LaneInterval other) const { return first < other.end() && other.first < end(); }
  bool operator==(const LaneInterval&) const = default;
};

// Whether an EXEC may take it on a device of so many lanes.
inline bool is_lane_interval(LaneInterval lanes, uint32_t lane_count) {
  if (lanes.count == 0 || lanes.count > lane_count || lanes.first > lane_count - lanes.count) return false;
  return lanes.count == lane_count || (std::has_single_bit(lanes.count) && lanes.first % lanes.count == 0);
}

// The widths of intervals of a device of so many lanes, in this order: all lanes, then 1,
// 2, 4, ... below that.
inline uint32_t width_count(uint32_t lane_count) { return 1 + static_cast<uint32_t>(std::bit_width(lane_count - 1)); }
inline uint32_t width_at(uint32_t width_index, uint32_t lane_count) {
  return width_index == 0 ? lane_count : uint32_t{1} << (width_index - 1);
}
// REQUIRES: it is a width of such a device.
inline uint32_t width_index(uint32_t width, uint32_t lane_count) {
  return width == lane_count ? 0 : static_cast<uint32_t>(std::bit_width(width));
}

// All of them, in that order.
inline std::vector<uint32_t> lane_widths(uint32_t lane_count) {
  std::vector<uint32_t> widths(width_count(lane_count));
  for (uint32_t i = 0; i < widths.size(); ++i) widths[i] = width_at(i, lane_count);
  return widths;
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_LANES_H_
