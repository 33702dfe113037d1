#include "load/workload/diurnal_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace foliot {
namespace {

TEST(DiurnalTraceTest, HasItsNumberAndItsRates) {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<Duration> trace = diurnal_trace({.seed = seed});
    ASSERT_EQ(trace.size(), 113'420u);
    EXPECT_TRUE(std::ranges::is_sorted(trace));
    std::vector<uint32_t> counts(static_cast<size_t>(trace.back().to_seconds()) + 1, 0);
    for (const Duration at : trace) ++counts[static_cast<size_t>(at.to_seconds())];
    EXPECT_LT(*std::ranges::max_element(counts), 1130u);
    EXPECT_GT(*std::ranges::max_element(counts), 950u);
    EXPECT_LT(counts.front(), 30u);
    EXPECT_NEAR(counts[counts.size() / 2], 600, 450) << "noon, or a spike";
  }
}

TEST(DiurnalTraceTest, TheSeedDecides) {
  EXPECT_EQ(diurnal_trace({.arrivals = 100, .seed = 7}), diurnal_trace({.arrivals = 100, .seed = 7}));
  EXPECT_NE(diurnal_trace({.arrivals = 100, .seed = 7}), diurnal_trace({.arrivals = 100, .seed = 8}));
}

}  // namespace
}  // namespace foliot
