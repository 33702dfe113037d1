#include "foundation/base/spsc_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace foliot {
namespace {

TEST(SpscRingTest, IsFullAtItsCapacityAndKeepsOrder) {
  SpscRing<int> ring(3);
  ASSERT_EQ(ring.capacity(), 4u);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(i));
    EXPECT_FALSE(ring.push(99));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(ring.pop(), i);
    EXPECT_EQ(ring.pop(), std::nullopt);
  }
}

TEST(SpscRingTest, TakesSeveralAtOnceOrNone) {
  SpscRing<int> ring(4);
  const std::vector<int> three{1, 2, 3};
  ASSERT_TRUE(ring.push_all(three));
  EXPECT_FALSE(ring.push_all(three)) << "there is room for one";
  EXPECT_FALSE(ring.full());
  EXPECT_TRUE(ring.push_all(std::vector<int>{4}));
  EXPECT_TRUE(ring.full());
  EXPECT_TRUE(ring.push_all({}));
  for (int i = 1; i <= 2; ++i) EXPECT_EQ(ring.pop(), i);
  ASSERT_TRUE(ring.push_all(std::vector<int>{5, 6})) << "around its end";
  for (int i = 3; i <= 6; ++i) EXPECT_EQ(ring.pop(), i);
  EXPECT_TRUE(ring.empty());
}

TEST(SpscRingTest, CarriesAllFromOneThreadToAnother) {
  constexpr int kItems = 200'000;
  SpscRing<int> ring(64);
  std::thread producer([&] {
    for (int i = 0; i < kItems; ++i) {
      while (!ring.push(i)) std::this_thread::yield();
    }
  });
  for (int expected = 0; expected < kItems;) {
    if (const auto item = ring.pop()) {
      ASSERT_EQ(*item, expected++);
    } else {
      std::this_thread::yield();
    }
  }
  producer.join();
}

}  // namespace
}  // namespace foliot
