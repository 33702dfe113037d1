#include "engine/worker/io_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "foundation/base/random.h"

namespace foliot {
namespace {

TEST(IoCacheTest, GivesBlocksThatDoNotOverlapAndTakesThemAllBack) {
  constexpr uint64_t kBytes = 64 * 1024;
  IoCache cache(kBytes, 32);
  Random random(1);
  std::vector<IoCache::Block> out;
  for (int step = 0; step < 20'000; ++step) {
    if (out.size() < 32 && random.uniform() < 0.55) {
      if (const auto block = cache.acquire(1 + random.below(6000))) {
        EXPECT_EQ(block->offset % 64, 0u);
        EXPECT_LE(block->offset + block->bytes, kBytes);
        for (const IoCache::Block& other : out) {
          ASSERT_TRUE(block->offset + block->bytes <= other.offset || other.offset + other.bytes <= block->offset);
        }
        out.push_back(*block);
      }
    } else if (!out.empty()) {
      const size_t i = random.below(out.size());
      cache.release(out[i]);
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  EXPECT_GT(cache.used_bytes(), 0u);
  EXPECT_EQ(cache.used_bytes(), kBytes - cache.free_bytes());
  for (const IoCache::Block& block : out) cache.release(block);
  EXPECT_EQ(cache.free_bytes(), kBytes);
  EXPECT_EQ(cache.used_bytes(), 0u);
  EXPECT_TRUE(cache.acquire(kBytes).has_value());  // in one piece again
}

TEST(IoCacheTest, GrowsBehindWhatThereIs) {
  IoCache cache(1024, 4);
  const auto first = cache.acquire(1024);
  ASSERT_TRUE(first.has_value());
  cache.grow(4096);
  cache.grow(2048);  // less than there is
  EXPECT_EQ(cache.free_bytes(), 3072u);
  const auto second = cache.acquire(3072);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->offset, 1024u);
  cache.release(*second);
  cache.grow(8192);  // what is free joins what is new
  EXPECT_TRUE(cache.acquire(7168).has_value());
  cache.release(*first);
  EXPECT_EQ(cache.free_bytes(), 1024u);
}

TEST(IoCacheTest, WhatIsNewDoesNotJoinWhatIsFreeElsewhere) {
  IoCache cache(2048, 4);
  const auto first = cache.acquire(1024);
  const auto second = cache.acquire(1024);
  ASSERT_TRUE(first && second);
  cache.release(*first);
  cache.grow(4096);
  EXPECT_FALSE(cache.acquire(2049).has_value()) << "the second lies between";
  const auto third = cache.acquire(2048);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->offset, 2048u);
}

TEST(IoCacheTest, ReportsWhenNothingFits) {
  IoCache cache(1024, 4);
  EXPECT_TRUE(cache.acquire(1000).has_value());
  EXPECT_FALSE(cache.acquire(1).has_value());
}

}  // namespace
}  // namespace foliot
