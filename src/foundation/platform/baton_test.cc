#include "foundation/platform/baton.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace foliot {
namespace {

TEST(BatonTest, OneHoldsIt) {
  Baton baton;
  EXPECT_TRUE(baton.take());
  EXPECT_FALSE(baton.take());
  EXPECT_FALSE(baton.put_down()) << "another has tried";
  EXPECT_FALSE(baton.take());
  EXPECT_FALSE(baton.take());
  EXPECT_FALSE(baton.put_down());
  EXPECT_TRUE(baton.put_down());
  EXPECT_TRUE(baton.take());
}

TEST(BatonTest, DropsItWhateverOthersTried) {
  Baton baton;
  EXPECT_TRUE(baton.take());
  EXPECT_FALSE(baton.take());
  baton.drop();
  EXPECT_TRUE(baton.take());
  EXPECT_TRUE(baton.put_down());
}

// Each thread posts a piece of work, and then takes the baton or leaves the work to its holder: all of it is done,
// by one at a time, when the last thread ends.
TEST(BatonTest, NoWorkIsLeftBehind) {
  constexpr int kThreads = 4, kPieces = 50'000;
  Baton baton;
  std::atomic<int> posted{0};
  int done = 0;  // the holder's
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int piece = 0; piece < kPieces; ++piece) {
        posted.fetch_add(1, std::memory_order_relaxed);
        if (!baton.take()) continue;
        do {
          done += posted.exchange(0, std::memory_order_relaxed);
        } while (!baton.put_down());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kPieces);
}

}  // namespace
}  // namespace foliot
