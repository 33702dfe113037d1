#include "control/controller/request_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "control/controller/cluster.h"

namespace foliot {
namespace {

class RequestTableTest : public ::testing::Test {
 protected:
  // It waits, unless there is no room.
  bool admit(uint64_t id, TimePoint deadline) {
    const RequestTable::Entry entry{
        .request = {.id = RequestId(id), .deadline = deadline, .sequence = next_sequence_++}};
    if (!table_.make_room(entry)) return false;
    for (const QueueShares::Entry& evicted : table_.evicted()) {
      table_.dequeue(table_.at(RequestId(evicted.id)));
      table_.take(RequestId(evicted.id));
    }
    table_.enqueue(table_.add(entry));
    return true;
  }
  std::vector<uint64_t> waiting() const {
    std::vector<uint64_t> ids;
    for (const Request& request : table_.waiting([](const Request&) { return true; }))
      ids.push_back(request.id.value());
    return ids;
  }

  static constexpr uint32_t kWaitingMax = 4;
  static TimePoint at(int64_t ms) { return TimePoint() + Duration::milliseconds(ms); }
  Cluster cluster_;
  FairShare fair_share_{cluster_};
  RequestTable table_{kWaitingMax, fair_share_};
  uint64_t next_sequence_ = 1;
};

TEST_F(RequestTableTest, RequestsThatWaitAreListedInTheOrderOfAdmission) {
  for (const uint64_t id : {9, 3, 7}) ASSERT_TRUE(admit(id, at(100)));
  EXPECT_EQ(waiting(), (std::vector<uint64_t>{9, 3, 7}));
  EXPECT_EQ(table_.waiting(), 3u);
  table_.dequeue(table_.at(RequestId(3)));
  EXPECT_EQ(waiting(), (std::vector<uint64_t>{9, 7}));
  EXPECT_EQ(table_.find_waiting(RequestId(3)), nullptr);
  EXPECT_NE(table_.find(RequestId(3)), nullptr);
}

TEST_F(RequestTableTest, TheLatestDeadlineGivesUpItsPlace) {
  for (const uint64_t id : {1, 2, 3, 4}) ASSERT_TRUE(admit(id, at(100 * static_cast<int64_t>(id))));
  EXPECT_FALSE(admit(5, at(900)));
  EXPECT_TRUE(admit(6, at(50)));
  EXPECT_EQ(waiting(), (std::vector<uint64_t>{1, 2, 3, 6}));
}

TEST_F(RequestTableTest, WhatComesBackWaitsWhetherOrNotThereIsRoom) {
  for (const uint64_t id : {1, 2, 3, 4}) ASSERT_TRUE(admit(id, at(100)));
  table_.dequeue(table_.at(RequestId(2)));
  ASSERT_TRUE(admit(5, at(100)));
  RequestTable::Entry& returned = table_.at(RequestId(2));
  table_.enqueue_again(returned);
  EXPECT_EQ(returned.returns, 1u);
  EXPECT_EQ(table_.waiting(), 5u);
  // What it takes is counted: there is no room for one that is as urgent.
  EXPECT_FALSE(admit(6, at(100)));
}

TEST_F(RequestTableTest, ClassesAreCountedApart) {
  ASSERT_TRUE(admit(1, at(100)));
  ASSERT_TRUE(admit(2, TimePoint::infinite_future()));
  const CountByClass& counts = table_.waiting_by_class();
  EXPECT_EQ(counts[static_cast<size_t>(table_.find(RequestId(1))->request.request_class())], 1u);
  EXPECT_EQ(counts[static_cast<size_t>(table_.find(RequestId(2))->request.request_class())], 1u);
}

TEST_F(RequestTableTest, WhatWasTakenIsUnknown) {
  ASSERT_TRUE(admit(1, at(100)));
  table_.dequeue(table_.at(RequestId(1)));
  EXPECT_EQ(table_.take(RequestId(1)).request.id, RequestId(1));
  EXPECT_EQ(table_.find(RequestId(1)), nullptr);
}

}  // namespace
}  // namespace foliot
