#include "answer/inference/call_alarms.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

TimePoint at(int milliseconds) { return TimePoint() + Duration::milliseconds(milliseconds); }

class CallAlarmsTest : public testing::Test {
 protected:
  int wakes_ = 0;
  std::vector<uint64_t> rung_;
  Mailbox mailbox_{8, [] {}};
  CallAlarms alarms_{[this](CallId call) { rung_.push_back(call.value()); }};
};

TEST_F(CallAlarmsTest, WhatIsDueComesThroughTheMailboxInTheOrderOfTime) {
  alarms_.add(CallId(1), at(30), mailbox_);
  alarms_.add(CallId(2), at(10), mailbox_);
  alarms_.add(CallId(3), at(20), mailbox_);
  EXPECT_EQ(alarms_.run(at(9)), at(10));
  EXPECT_EQ(alarms_.run(at(20)), at(30));
  EXPECT_TRUE(rung_.empty());
  mailbox_.deliver();
  EXPECT_EQ(rung_, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(alarms_.run(at(30)), TimePoint::infinite_future());
}

TEST_F(CallAlarmsTest, WhatIsRemovedDoesNotCome) {
  alarms_.add(CallId(1), at(10), mailbox_);
  alarms_.remove(CallId(1), at(10));
  alarms_.remove(CallId(2), at(10));
  EXPECT_EQ(alarms_.run(at(20)), TimePoint::infinite_future());
  mailbox_.deliver();
  EXPECT_TRUE(rung_.empty());
}

TEST_F(CallAlarmsTest, OnlyAnEarlierInstantWakesAndOnce) {
  alarms_.set_wake([this] { ++wakes_; });
  EXPECT_EQ(alarms_.run(at(0)), TimePoint::infinite_future());
  alarms_.add(CallId(1), at(20), mailbox_);
  alarms_.add(CallId(2), at(10), mailbox_);
  EXPECT_EQ(wakes_, 1);
  EXPECT_EQ(alarms_.run(at(1)), at(10));
  alarms_.add(CallId(3), at(15), mailbox_);
  EXPECT_EQ(wakes_, 1);
  alarms_.add(CallId(4), at(5), mailbox_);
  EXPECT_EQ(wakes_, 2);
}

}  // namespace
}  // namespace foliot
