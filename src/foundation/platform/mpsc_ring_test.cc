#include "foundation/platform/mpsc_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace foliot {
namespace {

TEST(MpscRingTest, HandsOutInOrder) {
  MpscRing<int> ring(4);
  std::vector<int> seen;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(ring.push(round * 3 + i));
    while (ring.consume([&](int& item) { seen.push_back(item); })) {
    }
  }
  ASSERT_EQ(seen.size(), 30u);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(MpscRingTest, FullRefusesAndLeavesTheItemAlone) {
  MpscRing<std::unique_ptr<int>> ring(2);
  ASSERT_EQ(ring.capacity(), 2u);
  EXPECT_TRUE(ring.push(std::make_unique<int>(1)));
  EXPECT_TRUE(ring.push(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  EXPECT_FALSE(ring.push(std::move(third)));
  ASSERT_NE(third, nullptr);
  EXPECT_TRUE(ring.consume([](std::unique_ptr<int>& item) { EXPECT_EQ(*item, 1); }));
  EXPECT_TRUE(ring.push(std::move(third)));
}

TEST(MpscRingTest, DestroysWhatItHeld) {
  auto token = std::make_shared<int>(0);
  {
    MpscRing<std::shared_ptr<int>> ring(4);
    ring.push(token);
    ring.push(token);
    ring.consume([](std::shared_ptr<int>&) {});
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(MpscRingTest, ClosedTakesNoMoreAndGivesTheRest) {
  MpscRing<int> ring(4);
  ring.push(1);
  EXPECT_FALSE(ring.closed_and_empty());
  ring.close();
  ring.close();
  EXPECT_FALSE(ring.push(2));
  EXPECT_FALSE(ring.closed_and_empty());
  EXPECT_TRUE(ring.consume([](int& item) { EXPECT_EQ(item, 1); }));
  EXPECT_FALSE(ring.consume([](int&) {}));
  EXPECT_TRUE(ring.closed_and_empty());
}

struct Item {
  uint32_t producer;
  uint32_t number;
};

// Producers push until the ring is closed under them: exactly what was accepted
// comes out, each producer's in order.
TEST(MpscRingTest, ManyProducersLoseNothing) {
  constexpr uint32_t kProducers = 4;
  constexpr uint32_t kConsumed = 200'000;
  MpscRing<Item> ring(64);
  std::vector<uint32_t> accepted(kProducers, 0);
  std::vector<std::thread> producers;
  std::atomic<bool> stop{false};
  for (uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      while (!stop.load(std::memory_order_relaxed)) {
        if (ring.push(Item{p, accepted[p]})) {
          ++accepted[p];
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::vector<uint32_t> expected(kProducers, 0);
  uint32_t consumed = 0;
  const auto consumer = [&](Item& item) {
    ASSERT_EQ(item.number, expected[item.producer]);
    ++expected[item.producer];
    if (++consumed == kConsumed) ring.close();
  };
  while (!ring.closed_and_empty()) {
    if (!ring.consume(consumer)) std::this_thread::yield();
  }
  stop.store(true);
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(expected, accepted);
}

}  // namespace
}  // namespace foliot
