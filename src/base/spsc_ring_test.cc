#include "base/spsc_ring.h"

#include <gtest/gtest.h>

#include <thread>

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
