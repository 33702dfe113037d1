#include "policies/common/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "base/test_time.h"

namespace foliot {
namespace {

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

TEST(LaneTest, OfflineRequestsComeLast) {
  for (const Lane::Order order : {Lane::Order::kDeadline, Lane::Order::kArrival}) {
    Lane lane(order);
    lane.add({.id = RequestId(1), .arrival = at(1), .sequence = 1, .offline = true});
    lane.add({.id = RequestId(2), .arrival = at(2), .sequence = 2, .offline = true});
    lane.add({.id = RequestId(3), .arrival = at(3), .sequence = 3});
    lane.add({.id = RequestId(4), .arrival = at(4), .deadline = at(40), .sequence = 4});
    EXPECT_EQ(lane.offline(), 2u);
    EXPECT_EQ(lane.with_deadline(), 1u);
    EXPECT_EQ(lane[2].id, RequestId(1));
    EXPECT_EQ(lane[3].id, RequestId(2));
    lane.remove({.id = RequestId(1), .arrival = at(1), .sequence = 1, .offline = true});
    EXPECT_EQ(lane.offline(), 1u);
    lane.erase(0, 3);
    EXPECT_EQ(lane.offline(), 0u);
    EXPECT_TRUE(lane.empty());
  }
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

// What a sorted vector would answer, whatever its length and however it came to be.
TEST(LaneTest, LongLanesAreLikeShortOnes) {
  Random random(1);
  Lane lane;
  std::vector<Request> model;
  const auto before = [](const Request& a, const Request& b) {
    return std::tie(a.deadline, a.arrival, a.sequence) < std::tie(b.deadline, b.arrival, b.sequence);
  };
  for (uint64_t step = 1; step <= 6000; ++step) {
    const bool grows = step < 3000 ? random.below(8) > 0 : random.below(3) == 0;
    if (grows || model.empty()) {
      Request added = request(step, static_cast<int64_t>(random.below(4) == 0 ? random.below(2000) : 2000 + step));
      if (random.below(3) == 0) added.deadline = TimePoint::infinite_future();
      lane.add(added);
      model.insert(std::upper_bound(model.begin(), model.end(), added, before), added);
    } else if (random.below(2) == 0) {
      const size_t at = random.below(model.size());
      lane.remove(model[at]);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const size_t from = random.below(3) == 0 ? 0 : random.below(model.size());
      const size_t count = std::min<size_t>(model.size() - from, 1 + random.below(random.below(50) == 0 ? 1500 : 16));
      lane.erase(from, count);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(from),
                  model.begin() + static_cast<std::ptrdiff_t>(from + count));
    }
    ASSERT_EQ(lane.size(), model.size());
    if (model.empty()) continue;
    const size_t at = random.below(model.size());
    ASSERT_EQ(lane[at].id, model[at].id);
    const auto due = [&](TimePoint deadline) {
      return static_cast<size_t>(std::ranges::lower_bound(model, deadline, {}, &Request::deadline) - model.begin());
    };
    ASSERT_EQ(lane.first_due_from(model[at].deadline), due(model[at].deadline));
    ASSERT_EQ(lane.with_deadline(), due(TimePoint::infinite_future()));
  }
}

}  // namespace
}  // namespace foliot
