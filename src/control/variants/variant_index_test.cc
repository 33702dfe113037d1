#include "control/variants/variant_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "foundation/base/random.h"

namespace foliot {
namespace {

TEST(VariantIndexTest, FindsWhatReadingAllFinds) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const uint32_t size = 1 + static_cast<uint32_t>(random.below(70));
    std::vector<double> accuracies;
    for (uint32_t i = 0; i < size; ++i) accuracies.push_back(static_cast<double>(random.below(20)) / 20);
    std::ranges::sort(accuracies);
    VariantIndex index;
    index.reset(accuracies);
    std::vector<std::optional<VariantIndex::Entry>> entries(size);
    for (int round = 0; round < 100; ++round) {
      const uint32_t changed = static_cast<uint32_t>(random.below(size));
      if (random.below(3) == 0) {
        index.clear(changed);
        entries[changed].reset();
      } else {
        entries[changed] = {Duration::nanoseconds(1 + static_cast<int64_t>(random.below(20))),
                            TimePoint::from_nanoseconds(static_cast<int64_t>(random.below(20))),
                            static_cast<int64_t>(random.below(1000))};
        index.set(changed, *entries[changed]);
      }
      const VariantIndex::Query query{.accuracy_least = static_cast<double>(random.below(20)) / 20,
                                      .latency_most = Duration::nanoseconds(static_cast<int64_t>(random.below(25))),
                                      .ready_most = TimePoint::from_nanoseconds(static_cast<int64_t>(random.below(25))),
                                      .cost_most = static_cast<int64_t>(random.below(1200))};
      std::optional<uint32_t> first, last;
      std::optional<int64_t> cost;
      std::optional<double> distance;
      for (uint32_t i = 0; i < size; ++i) {
        if (!entries[i]) continue;
        const double lack = std::max(0.0, 0.6 - accuracies[i]) / 0.6;
        const double excess = static_cast<double>(std::max<int64_t>(0, entries[i]->latency.nanoseconds() - 8)) / 8;
        distance = std::min(distance.value_or(1e9), lack + excess);
        if (accuracies[i] < query.accuracy_least || entries[i]->latency > query.latency_most ||
            entries[i]->ready > query.ready_most || entries[i]->cost > query.cost_most) {
          continue;
        }
        if (!first) first = i;
        last = i;
        cost = std::min(cost.value_or(entries[i]->cost), entries[i]->cost);
      }
      EXPECT_EQ(index.least_accurate(query), first);
      EXPECT_EQ(index.most_accurate(query), last);
      const std::optional<uint32_t> cheapest = index.cheapest(query);
      ASSERT_EQ(cheapest.has_value(), cost.has_value());
      if (cheapest) {
        EXPECT_EQ(entries[*cheapest]->cost, *cost);
      }
      const std::optional<uint32_t> nearest = index.nearest(0.6, Duration::nanoseconds(8));
      ASSERT_EQ(nearest.has_value(), distance.has_value());
      if (nearest) {
        const double lack = std::max(0.0, 0.6 - accuracies[*nearest]) / 0.6;
        const double excess =
            static_cast<double>(std::max<int64_t>(0, entries[*nearest]->latency.nanoseconds() - 8)) / 8;
        EXPECT_NEAR(lack + excess, *distance, 1e-9);
      }
    }
  }
}

TEST(VariantIndexTest, AnEmptyOneFindsNothing) {
  VariantIndex index;
  EXPECT_FALSE(index.cheapest({}));
  EXPECT_FALSE(index.least_accurate({}));
  EXPECT_FALSE(index.most_accurate({}));
  EXPECT_FALSE(index.nearest(0.5, Duration::seconds(1)));
}

}  // namespace
}  // namespace foliot
