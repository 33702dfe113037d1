#include "control/policies/common/request_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

Request request(uint64_t id, int64_t deadline) {
  return {.id = RequestId(id), .arrival = at(static_cast<int64_t>(id)), .deadline = at(deadline), .sequence = id};
}

TEST(RequestQueueTest, IsOrderedByDeadlineThenArrival) {
  RequestQueue queue;
  queue.add(request(1, 50));
  queue.add(request(2, 30));
  queue.add(request(3, 50));
  queue.add(request(4, 40));
  ASSERT_EQ(queue.size(), 4u);
  const uint64_t expected[] = {2, 4, 1, 3};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(queue[i].id, RequestId(expected[i]));
}

// Ids say nothing; of what arrived at one instant, the admission decides.
TEST(RequestQueueTest, EqualDeadlinesAreInTheOrderOfArrivalThenAdmission) {
  RequestQueue queue;
  queue.add({.id = RequestId(9), .arrival = at(2), .sequence = 1});
  queue.add({.id = RequestId(8), .arrival = at(2), .sequence = 2});
  queue.add({.id = RequestId(7), .arrival = at(1), .sequence = 3});
  queue.add({.id = RequestId(1), .arrival = at(3), .sequence = 4});
  const uint64_t expected[] = {7, 9, 8, 1};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(queue[i].id, RequestId(expected[i]));
  queue.remove({.id = RequestId(8), .arrival = at(2), .sequence = 2});
  EXPECT_EQ(queue[2].id, RequestId(1));
}

TEST(RequestQueueTest, OfflineRequestsComeLast) {
  for (const RequestQueue::Order order : {RequestQueue::Order::kDeadline, RequestQueue::Order::kArrival}) {
    RequestQueue queue(order);
    queue.add({.id = RequestId(1), .arrival = at(1), .sequence = 1, .offline = true});
    queue.add({.id = RequestId(2), .arrival = at(2), .sequence = 2, .offline = true});
    queue.add({.id = RequestId(3), .arrival = at(3), .sequence = 3});
    queue.add({.id = RequestId(4), .arrival = at(4), .deadline = at(40), .sequence = 4});
    EXPECT_EQ(queue.offline(), 2u);
    EXPECT_EQ(queue.with_deadline(), 1u);
    EXPECT_EQ(queue[2].id, RequestId(1));
    EXPECT_EQ(queue[3].id, RequestId(2));
    queue.remove({.id = RequestId(1), .arrival = at(1), .sequence = 1, .offline = true});
    EXPECT_EQ(queue.offline(), 1u);
    queue.erase(0, 3);
    EXPECT_EQ(queue.offline(), 0u);
    EXPECT_TRUE(queue.empty());
  }
}

TEST(RequestQueueTest, ABatchQueueIsASuffix) {
  RequestQueue queue;
  for (uint64_t id = 1; id <= 5; ++id) queue.add(request(id, static_cast<int64_t>(id) * 10));
  EXPECT_EQ(queue.first_due_from(at(0)), 0u);
  EXPECT_EQ(queue.first_due_from(at(30)), 2u);
  EXPECT_EQ(queue.first_due_from(at(31)), 3u);
  EXPECT_EQ(queue.first_due_from(at(99)), 5u);
  queue.erase(1, 2);
  EXPECT_EQ(queue[1].id, RequestId(4));
  queue.remove(request(4, 40));
  queue.remove(request(4, 40));
  EXPECT_EQ(queue.size(), 2u);
}

TEST(RequestQueueTest, CanKeepTheOrderOfArrival) {
  RequestQueue queue(RequestQueue::Order::kArrival);
  queue.add(request(1, 20));
  queue.add(request(3, 10));
  queue.add(request(2, 50));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(queue[i].id, RequestId(i + 1));
  EXPECT_EQ(queue.first_due_from(at(15)), 0u);
  EXPECT_EQ(queue.first_due_from(at(30)), 1u);
  queue.remove(request(2, 50));
  EXPECT_EQ(queue[1].id, RequestId(3));
}

// What a sorted vector would answer, whatever its length and however it came to be.
TEST(RequestQueueTest, LongQueuesAreLikeShortOnes) {
  Random random(1);
  RequestQueue queue;
  std::vector<Request> model;
  const auto before = [](const Request& a, const Request& b) {
    return std::tie(a.deadline, a.arrival, a.sequence) < std::tie(b.deadline, b.arrival, b.sequence);
  };
  for (uint64_t step = 1; step <= 6000; ++step) {
    const bool grows = step < 3000 ? random.below(8) > 0 : random.below(3) == 0;
    if (grows || model.empty()) {
      Request added = request(step, static_cast<int64_t>(random.below(4) == 0 ? random.below(2000) : 2000 + step));
      if (random.below(3) == 0) added.deadline = TimePoint::infinite_future();
      queue.add(added);
      model.insert(std::upper_bound(model.begin(), model.end(), added, before), added);
    } else if (random.below(2) == 0) {
      const size_t at = random.below(model.size());
      queue.remove(model[at]);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const size_t from = random.below(3) == 0 ? 0 : random.below(model.size());
      const size_t count = std::min<size_t>(model.size() - from, 1 + random.below(random.below(50) == 0 ? 1500 : 16));
      queue.erase(from, count);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(from),
                  model.begin() + static_cast<std::ptrdiff_t>(from + count));
    }
    ASSERT_EQ(queue.size(), model.size());
    if (model.empty()) continue;
    const size_t at = random.below(model.size());
    ASSERT_EQ(queue[at].id, model[at].id);
    const auto due = [&](TimePoint deadline) {
      return static_cast<size_t>(std::ranges::lower_bound(model, deadline, {}, &Request::deadline) - model.begin());
    };
    ASSERT_EQ(queue.first_due_from(model[at].deadline), due(model[at].deadline));
    ASSERT_EQ(queue.with_deadline(), due(TimePoint::infinite_future()));
  }
}

}  // namespace
}  // namespace foliot
