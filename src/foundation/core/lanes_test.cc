#include "foundation/core/lanes.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

TEST(LanesTest, WidthsAreAllLanesAndThePowersOfTwoBelow) {
  EXPECT_EQ(lane_widths(1), std::vector<uint32_t>({1}));
  EXPECT_EQ(lane_widths(2), std::vector<uint32_t>({2, 1}));
  EXPECT_EQ(lane_widths(3), std::vector<uint32_t>({3, 1, 2}));
  EXPECT_EQ(lane_widths(4), std::vector<uint32_t>({4, 1, 2}));
  EXPECT_EQ(lane_widths(6), std::vector<uint32_t>({6, 1, 2, 4}));
  EXPECT_EQ(lane_widths(8), std::vector<uint32_t>({8, 1, 2, 4}));
}

TEST(LanesTest, EachWidthIsFoundWhereItStands) {
  for (uint32_t lanes = 1; lanes <= kLanesMax; ++lanes) {
    for (uint32_t i = 0; i < width_count(lanes); ++i) {
      EXPECT_EQ(width_index(width_at(i, lanes), lanes), i) << lanes << " lanes";
    }
  }
}

TEST(LanesTest, IntervalsAreDisjointOrOneContainsTheOther) {
  for (const uint32_t lanes : {1u, 2u, 3u, 4u, 6u, 7u, 8u}) {
    std::vector<LaneInterval> all;
    for (uint32_t first = 0; first <= lanes; ++first) {
      for (uint32_t count = 0; count <= lanes + 1; ++count) {
        if (is_lane_interval({first, count}, lanes)) all.push_back({first, count});
      }
    }
    for (const LaneInterval& a : all) {
      EXPECT_LE(a.end(), lanes);
      for (const LaneInterval& b : all) {
        if (a.count < b.count || (a.count == b.count && a.first != b.first)) {
          uint32_t shared = 0;
          for (uint32_t lane = a.first; lane < a.end(); ++lane) shared += b.contains(lane) ? 1 : 0;
          EXPECT_TRUE(shared == 0 || shared == a.count) << lanes << " lanes";
        }
      }
    }
  }
}

TEST(LanesTest, NothingElseIsAnInterval) {
  EXPECT_FALSE(is_lane_interval({0, 0}, 4));
  EXPECT_FALSE(is_lane_interval({0, 3}, 4));
  EXPECT_FALSE(is_lane_interval({1, 2}, 4));
  EXPECT_FALSE(is_lane_interval({4, 1}, 4));
  EXPECT_FALSE(is_lane_interval({2, 2}, 3));
  EXPECT_FALSE(is_lane_interval({~0u, 1}, 4));
  EXPECT_FALSE(is_lane_interval({0, 0}, 0));
  EXPECT_TRUE(is_lane_interval({2, 2}, 4));
  EXPECT_TRUE(is_lane_interval({0, 3}, 3));
}

}  // namespace
}  // namespace foliot
