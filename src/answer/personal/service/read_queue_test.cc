#include "answer/personal/service/read_queue.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

constexpr TimePoint kStart = TimePoint() + Duration::seconds(1);
constexpr TimePoint at(int64_t milliseconds) { return kStart + Duration::milliseconds(milliseconds); }

ReadQueue::Read read_until(TimePoint deadline, int64_t estimate_milliseconds) {
  return {.deadline = deadline, .estimate = Duration::milliseconds(estimate_milliseconds)};
}

TEST(ReadCostTest, EstimatesByTheMedianUntilItIsOld) {
  ReadCost cost;
  EXPECT_EQ(cost.estimate(100, at(0)), Duration());
  cost.record(Duration::milliseconds(1), 10, at(0));
  cost.record(Duration::milliseconds(500), 10, at(1));  // disturbed
  cost.record(Duration::milliseconds(2), 20, at(2));
  EXPECT_EQ(cost.estimate(100, at(3)), Duration::milliseconds(10));
  EXPECT_EQ(cost.estimate(100, at(1002)), Duration::milliseconds(10));
  EXPECT_EQ(cost.estimate(100, at(1003)), Duration());
}

TEST(ReadQueueTest, RefusesWhatCannotBeMetAlone) {
  ReadQueue queue(10, 1);
  const auto refused = queue.offer(read_until(at(4), 5), at(0));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refusal, Refusal::kUnmeetable);
  EXPECT_EQ(refused->earliest, at(5));
}

TEST(ReadQueueTest, RefusesWhatTheQueueLeavesNoTimeFor) {
  ReadQueue queue(10, 1);
  EXPECT_FALSE(queue.offer(read_until(at(5), 5), at(0)));
  const auto refused = queue.offer(read_until(at(9), 5), at(0));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refusal, Refusal::kOverload);
  EXPECT_EQ(refused->earliest, at(10));
  ASSERT_TRUE(queue.take(at(0)));
  EXPECT_TRUE(queue.offer(read_until(at(9), 5), at(0))) << "what runs counts, too";
  queue.finish(Duration::milliseconds(5));
  EXPECT_FALSE(queue.offer(read_until(at(9), 5), at(0)));
}

TEST(ReadQueueTest, TwoThreadsHalveTheWait) {
  ReadQueue queue(10, 2);
  EXPECT_FALSE(queue.offer(read_until(at(100), 4), at(0)));
  EXPECT_FALSE(queue.offer(read_until(at(6), 4), at(0)));
  EXPECT_TRUE(queue.offer(read_until(at(6), 4), at(0)));
}

TEST(ReadQueueTest, IsBoundedAndInOrder) {
  ReadQueue queue(2, 1);
  EXPECT_FALSE(queue.offer(read_until(at(7), 0), at(0)));
  EXPECT_FALSE(queue.offer(read_until(at(8), 0), at(0)));
  EXPECT_EQ(queue.offer(read_until(at(9), 0), at(0))->refusal, Refusal::kOverload);
  EXPECT_EQ(queue.take(at(0))->read.deadline, at(7));
  EXPECT_EQ(queue.take(at(9))->refusal, Refusal::kExpired);
  EXPECT_FALSE(queue.take(at(9)));
}

}  // namespace
}  // namespace foliot
