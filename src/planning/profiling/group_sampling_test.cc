#include "planning/profiling/group_sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace foliot {
namespace {

TEST(GroupSamplingTest, SomeOfAGroupEndAndSomeBegin) {
  Random random(1);
  const std::array<uint32_t, 3> operators{2, 7, 100};
  std::set<size_t> ended, begun;
  std::set<uint32_t> firsts, lasts;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<OperatorRange> ranges = draw_ranges(operators, random);
    ASSERT_EQ(ranges.size(), operators.size());
    EXPECT_TRUE(ranges[0].whole()) << "of two operators";
    for (size_t at = 0; at < ranges.size(); ++at) {
      const OperatorRange& range = ranges[at];
      EXPECT_LT(range.first, std::min(range.last, operators[at]));
      EXPECT_TRUE(range.ends() || range.last < operators[at]) << range.last;
    }
    ended.insert(static_cast<size_t>(std::ranges::count_if(ranges, &OperatorRange::ends)));
    begun.insert(static_cast<size_t>(std::ranges::count_if(ranges, &OperatorRange::begins)));
    firsts.insert(ranges[1].first);
    lasts.insert(ranges[1].last);
  }
  EXPECT_EQ(ended, (std::set<size_t>{1, 2, 3}));
  EXPECT_EQ(begun, (std::set<size_t>{1, 2, 3}));
  EXPECT_EQ(firsts, (std::set<uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(lasts, (std::set<uint32_t>{1, 2, 3, 4, 5, 6, OperatorRange::kEnd}));
}

}  // namespace
}  // namespace foliot
