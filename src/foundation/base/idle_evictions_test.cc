#include "foundation/base/idle_evictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using Evictions = IdleEvictions<int>;

// What is offered for eviction when none is taken.
std::vector<int> offered(Evictions& evictions) {
  std::vector<int> order;
  EXPECT_FALSE(evictions.evict([&](int connection) {
    order.push_back(connection);
    return false;
  }));
  return order;
}

TEST(IdleEvictionsTest, TheOneIdleLongestGoesFirst) {
  Evictions evictions(Duration::milliseconds(100), 10);
  evictions.set_candidates({{at(3), 30}, {at(1), 10}, {at(2), 20}});
  int evicted = 0;
  EXPECT_TRUE(evictions.evict([&](int connection) {
    evicted = connection;
    return true;
  }));
  EXPECT_EQ(evicted, 10);
  EXPECT_THAT(offered(evictions), ElementsAre(20, 30));
  EXPECT_THAT(offered(evictions), ElementsAre());
}

TEST(IdleEvictionsTest, OfManyThoseIdleLongestAreCandidates) {
  Evictions evictions(Duration::milliseconds(100), 2);
  evictions.set_candidates({{at(3), 30}, {at(1), 10}, {at(2), 20}});
  EXPECT_THAT(offered(evictions), ElementsAre(10, 20));
}

TEST(IdleEvictionsTest, NewCandidatesReplaceThoseThatWereLeft) {
  Evictions evictions(Duration::milliseconds(100), 2);
  evictions.set_candidates({{at(1), 10}});
  evictions.set_candidates({{at(2), 20}});
  EXPECT_THAT(offered(evictions), ElementsAre(20));
  evictions.set_candidates({{at(1), 10}});
  evictions.set_candidates({});
  EXPECT_THAT(offered(evictions), ElementsAre());
}

TEST(IdleEvictionsTest, CandidatesAreDueOnceEachInterval) {
  Evictions evictions(Duration::milliseconds(100), 2);
  EXPECT_TRUE(evictions.due(at(5)));
  EXPECT_FALSE(evictions.due(at(5)));
  EXPECT_FALSE(evictions.due(at(104)));
  EXPECT_TRUE(evictions.due(at(105)));
  EXPECT_FALSE(evictions.due(at(106)));
}

}  // namespace
}  // namespace foliot
