#include "engine/worker/executor_queue.h"

#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

TEST(ExecutorQueueTest, TakesTheEarliestFirstAndEqualsInOrder) {
  ExecutorQueue<int> queue(8);
  queue.push(1, at(5), at(9));
  queue.push(2, at(3), at(9));
  queue.push(3, at(5), at(9));
  queue.push(4, at(3), at(9));
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 4);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 3);
}

TEST(ExecutorQueueTest, KeepsWindowsStrictly) {
  ExecutorQueue<int> queue(1);
  EXPECT_EQ(queue.head_state(at(0)), HeadState::kNone);
  queue.push(1, at(3), at(5));
  EXPECT_TRUE(queue.full());
  EXPECT_EQ(queue.head_state(at(3) - Duration::nanoseconds(1)), HeadState::kWaiting);
  EXPECT_EQ(queue.head_state(at(3)), HeadState::kOpen);
  EXPECT_EQ(queue.head_state(at(5)), HeadState::kOpen);
  EXPECT_EQ(queue.head_state(at(5) + Duration::nanoseconds(1)), HeadState::kTooLate);
}

}  // namespace
}  // namespace foliot
