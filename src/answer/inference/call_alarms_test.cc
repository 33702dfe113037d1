#include "answer/inference/call_alarms.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

TimePoint at(int milliseconds) { return TimePoint() + Duration::milliseconds(milliseconds); }

class CallAlarmsTest : public testing::Test {
 protected:
  std::vector<TimePoint> set_;
  std::vector<uint64_t> rung_;
  Mailbox mailbox_{8, [] {}};
  CallAlarms alarms_{[this](CallId call) { rung_.push_back(call.value()); }};

  void SetUp() override {
    alarms_.use_timer([this](TimePoint due) { set_.push_back(due); });
  }
};

TEST_F(CallAlarmsTest, WhatIsDueComesThroughTheMailboxInTheOrderOfTime) {
  alarms_.add(CallId(1), at(30), mailbox_);
  alarms_.add(CallId(2), at(10), mailbox_);
  alarms_.add(CallId(3), at(20), mailbox_);
  alarms_.run(at(9));
  EXPECT_EQ(set_.back(), at(10));
  alarms_.run(at(20));
  EXPECT_EQ(set_.back(), at(30));
  EXPECT_TRUE(rung_.empty());
  mailbox_.deliver();
  EXPECT_EQ(rung_, (std::vector<uint64_t>{2, 3}));
  alarms_.run(at(30));
  EXPECT_EQ(set_.back(), TimePoint::infinite_future());
}

TEST_F(CallAlarmsTest, WhatIsRemovedDoesNotCome) {
  alarms_.add(CallId(1), at(10), mailbox_);
  alarms_.remove(CallId(1), at(10));
  alarms_.remove(CallId(2), at(10));
  alarms_.run(at(20));
  EXPECT_EQ(set_.back(), TimePoint::infinite_future());
  mailbox_.deliver();
  EXPECT_TRUE(rung_.empty());
}

TEST_F(CallAlarmsTest, OnlyAnEarlierInstantSetsTheTimer) {
  alarms_.add(CallId(1), at(20), mailbox_);
  alarms_.add(CallId(2), at(25), mailbox_);
  EXPECT_EQ(set_, std::vector{at(20)});
  alarms_.add(CallId(3), at(5), mailbox_);
  EXPECT_EQ(set_, (std::vector{at(20), at(5)}));
}

// Calls that are answered one after another leave no instant behind at which the timer rings for nothing.
TEST_F(CallAlarmsTest, ALoneCallPutsTheTimerOff) {
  alarms_.add(CallId(1), at(10), mailbox_);
  alarms_.remove(CallId(1), at(10));
  EXPECT_EQ(set_, std::vector{at(10)});
  alarms_.add(CallId(2), at(15), mailbox_);
  EXPECT_EQ(set_, (std::vector{at(10), at(15)}));
}

}  // namespace
}  // namespace foliot
