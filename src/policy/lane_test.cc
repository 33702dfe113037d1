#include "policy/lane.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TimePoint at(int64_t ms) { return TimePoint() + Duration::milliseconds(ms); }
Request request(uint64_t id, int64_t deadline) {
  return {.id = RequestId(id), .arrival = at(static_cast<int64_t>(id)), .deadline = at(deadline), .sequence = id};
}

TEST(LaneTest, IsOrderedByDeadlineThenArrival) {
  Lane lane;
  lane.add(request(1, 50));
  lane.add(request(2, 30));
  lane.add(request(3, 50));
  lane.add(request(4, 40));
  ASSERT_EQ(lane.size(), 4u);
  const uint64_t expected[] = {2, 4, 1, 3};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(lane[i].id, RequestId(expected[i]));
}

// Ids say nothing; of what arrived at one instant, the admission decides.
TEST(LaneTest, EqualDeadlinesAreInTheOrderOfArrivalThenAdmission) {
  Lane lane;
  lane.add({.id = RequestId(9), .arrival = at(2), .sequence = 1});
  lane.add({.id = RequestId(8), .arrival = at(2), .sequence = 2});
  lane.add({.id = RequestId(7), .arrival = at(1), .sequence = 3});
  lane.add({.id = RequestId(1), .arrival = at(3), .sequence = 4});
  const uint64_t expected[] = {7, 9, 8, 1};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(lane[i].id, RequestId(expected[i]));
  lane.remove({.id = RequestId(8), .arrival = at(2), .sequence = 2});
  EXPECT_EQ(lane[2].id, RequestId(1));
}

TEST(LaneTest, ABatchQueueIsASuffix) {
  Lane lane;
  for (uint64_t id = 1; id <= 5; ++id) lane.add(request(id, static_cast<int64_t>(id) * 10));
  EXPECT_EQ(lane.first_due_from(at(0)), 0u);
  EXPECT_EQ(lane.first_due_from(at(30)), 2u);
  EXPECT_EQ(lane.first_due_from(at(31)), 3u);
  EXPECT_EQ(lane.first_due_from(at(99)), 5u);
  lane.erase(1, 2);
  EXPECT_EQ(lane[1].id, RequestId(4));
  lane.remove(request(4, 40));
  lane.remove(request(4, 40));
  EXPECT_EQ(lane.size(), 2u);
}

TEST(LaneTest, CanKeepTheOrderOfArrival) {
  Lane lane(Lane::Order::kArrival);
  lane.add(request(1, 20));
  lane.add(request(3, 10));
  lane.add(request(2, 50));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(lane[i].id, RequestId(i + 1));
  EXPECT_EQ(lane.first_due_from(at(15)), 0u);
  EXPECT_EQ(lane.first_due_from(at(30)), 1u);
  lane.remove(request(2, 50));
  EXPECT_EQ(lane[1].id, RequestId(3));
}

}  // namespace
}  // namespace foliot
