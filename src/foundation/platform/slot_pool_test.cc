#include "foundation/platform/slot_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace foliot {
namespace {

using Pool = SlotPool<std::pair<uint64_t, uint64_t>>;

TEST(SlotPoolTest, HoldsAsManyAsItHasSlots) {
  Pool pool(2);
  const Pool::Held a = pool.make(1, 2), b = pool.make(3, 4);
  EXPECT_EQ((*a).second, 2);
  EXPECT_EQ((*b).first, 3);
  EXPECT_FALSE(pool.make(5, 6));
}

TEST(SlotPoolTest, WhatWasGivenBackLastIsTakenFirst) {
  Pool pool(1000);
  for (uint64_t i = 0; i < 3000; ++i) {
    const Pool::Held a = pool.make(i, i), b = pool.make(i + 1, i);
    EXPECT_EQ((*a).first + 1, (*b).first);
  }
  EXPECT_EQ(pool.touched(), 2u);
}

TEST(SlotPoolTest, WhatMovesIsGivenBackOnce) {
  SlotPool<std::shared_ptr<int>> pool(1);
  const auto value = std::make_shared<int>(7);
  {
    SlotPool<std::shared_ptr<int>>::Held held = pool.make(value);
    const SlotPool<std::shared_ptr<int>>::Held moved = std::move(held);
    EXPECT_EQ(value.use_count(), 2);
    EXPECT_FALSE(pool.make(value));
  }
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_TRUE(pool.make(value));
}

TEST(SlotPoolTest, NoTwoThreadsHoldTheSameSlot) {
  constexpr uint64_t kThreads = 4, kRounds = 20000;
  Pool pool(kThreads * 2);
  std::vector<std::thread> threads;
  std::vector<uint64_t> torn(kThreads);
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::optional<Pool::Held> kept;
      for (uint64_t i = 0; i < kRounds; ++i) {
        Pool::Held held = pool.make(thread, i);
        if (kept) torn[thread] += **kept != std::pair(thread, i - 1);
        torn[thread] += !held || *held != std::pair(thread, i);
        kept.emplace(std::move(held));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, std::vector<uint64_t>(kThreads));
  EXPECT_LE(pool.touched(), kThreads * 2);
}

}  // namespace
}  // namespace foliot
