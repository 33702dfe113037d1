#include "control/controller/device_timing.h"

#include <gtest/gtest.h>

#include "foundation/base/random.h"

namespace foliot {
namespace {

Duration us(int64_t n) { return Duration::microseconds(n); }
Duration ms(int64_t n) { return Duration::milliseconds(n); }

// A device whose INFERs take 2 ms each, one every 10 ms.
class DeviceTimingTest : public ::testing::Test {
 protected:
  // Of the next INFER: how long it was on its way, and how long its outcome was.
  void infer(Duration delivery, Duration report, OutcomeStatus status = OutcomeStatus::kDone) {
    now_ += ms(10);
    const Action action{.id = ActionId(++actions_), .expected = ms(2)};
    timing_.on_sent(action.id, now_ + us(200) + ms(2), time_, now_);
    const TimePoint begun = now_ + std::max(delivery, us(200));
    const TimePoint end = begun + (status == OutcomeStatus::kDone ? ms(2) : Duration());
    const Outcome outcome{
        .action = action.id, .status = status, .start = begun, .end = end, .output_end = end, .ready = now_ + delivery};
    last_lateness_ = end + report - (now_ + us(200) + ms(2));
    timing_.on_outcome(action, outcome, end + report);
  }

  DeviceTiming timing_;
  std::optional<Duration> time_;  // that requests have
  TimePoint now_;
  uint64_t actions_ = 0;
  Duration last_lateness_;
};

TEST_F(DeviceTimingTest, BeginsWithAPrior) {
  EXPECT_GT(timing_.margin(), us(300));
  EXPECT_LT(timing_.margin(), ms(3));
  EXPECT_GT(timing_.lookahead(), timing_.delivery());
}

TEST_F(DeviceTimingTest, FollowsTheLinks) {
  for (int i = 0; i < 300; ++i) infer(us(100), us(40));
  EXPECT_LT(timing_.margin(), us(60));
  EXPECT_NEAR(timing_.delivery().to_microseconds(), 100, 10);
  EXPECT_NEAR(timing_.report().to_microseconds(), 40, 10);
  // A few outcomes show that the device is farther away now.
  for (int i = 0; i < 3; ++i) infer(ms(5), ms(5));
  EXPECT_GE(timing_.margin(), ms(9));
  EXPECT_GE(timing_.lookahead(), ms(5));
  EXPECT_GE(timing_.report(), ms(5));
}

TEST_F(DeviceTimingTest, AnAnswerPlannedForTheMarginIsLateTwiceInAThousandTimes) {
  Random random(3);
  uint64_t late = 0;
  for (int i = 0; i < 300'000; ++i) {
    const Duration margin = timing_.margin();
    infer(us(50), us(40) + us(30).scaled(random.exponential()));
    if (i > 2000 && last_lateness_ > margin) ++late;
  }
  EXPECT_LE(late, 900u);
  EXPECT_LT(timing_.margin(), us(40 + 30 * 10));
}

// One EXEC in twenty is 6 ms late, as of code that collects garbage.
TEST_F(DeviceTimingTest, WhereTheTailIsLongBesideTheTimeOfRequestsMoreMayBeLate) {
  const auto run = [&] {
    for (int i = 0; i < 2000; ++i) infer(us(100), us(40) + us(1) * (i % 7) + (i % 20 == 0 ? ms(6) : Duration()));
    return timing_.margin();
  };
  const Duration without_deadlines = run();
  EXPECT_GE(without_deadlines, ms(6));
  time_ = ms(2000);
  EXPECT_GE(run(), ms(6));
  time_ = ms(20);
  const Duration margin = run();
  EXPECT_LT(margin, ms(4));
  time_ = ms(10);
  EXPECT_LE(run(), margin);
  time_ = ms(2000);
  EXPECT_GE(run(), ms(6)) << "it follows the requests";
}

// One EXEC in eight takes 20 ms more, and requests have 20 ms: to allow for that is to refuse all.
TEST_F(DeviceTimingTest, AMarginIsNeverAllTheTimeThatRequestsHave) {
  time_ = ms(20);
  Random random(5);
  int large = 0;
  for (int i = 0; i < 20'000; ++i) {
    infer(us(100), us(40) + (random.uniform() < 0.125 ? ms(20) : us(i % 7)));
    if (i > 1000 && timing_.margin() > ms(1)) ++large;
  }
  EXPECT_LT(large, 400) << "chance is no change";
  for (int i = 0; i < 16; ++i) infer(us(100), ms(15));
  EXPECT_GE(timing_.margin(), ms(14)) << "what has changed is";
}

// Of EXECs that are sent ahead, one that is slow makes the next three late. The device is as it was.
TEST_F(DeviceTimingTest, WhatWaitsBehindASlowExecIsNotSlowItself) {
  for (int i = 0; i < 300; ++i) infer(us(100), us(40));
  const Duration margin = timing_.margin();
  const TimePoint sent = now_ + ms(10);
  TimePoint end = sent + us(200);
  for (int64_t i = 0; i < 4; ++i) {
    timing_.on_sent(ActionId(++actions_), sent + us(200) + ms(2) * (i + 1), time_, sent);
  }
  for (uint64_t i = 4; i-- > 0;) {
    const Action action{.id = ActionId(actions_ - i), .expected = ms(2)};
    const TimePoint begun = end;
    end = begun + (i == 3 ? ms(30) : ms(2));
    timing_.on_outcome(action,
                       {.action = action.id,
                        .status = OutcomeStatus::kDone,
                        .start = begun,
                        .end = end,
                        .output_end = end,
                        .ready = sent + us(100)},
                       end + us(40));
  }
  EXPECT_LT(timing_.margin(), margin + us(50));
}

TEST_F(DeviceTimingTest, WhereTheTailIsShortTheTimeOfRequestsDoesNotMatter) {
  const auto run = [&] {
    for (int i = 0; i < 2000; ++i) infer(us(100), us(40) + us(i % 20));
    return timing_.margin();
  };
  const Duration margin = run();
  time_ = ms(10);
  EXPECT_EQ(run(), margin);
}

TEST_F(DeviceTimingTest, WhatWasRefusedAsTooLateCountsAsIfItHadRun) {
  for (int i = 0; i < 300; ++i) infer(us(100), us(40));
  for (int i = 0; i < 3; ++i) infer(ms(4), us(40), OutcomeStatus::kTooLate);
  EXPECT_GE(timing_.margin(), us(3800));
}

TEST_F(DeviceTimingTest, RefusalsWhileItIsIdleTakeTrustAndOutcomesGiveItBack) {
  for (int i = 0; i < 300; ++i) infer(us(100), us(40) + ms(i % 50 == 0 ? 20 : 0));
  for (int i = 0; i < 3; ++i) infer(us(100), ms(20));
  const Duration before = timing_.margin();
  EXPECT_GE(before, ms(19));
  now_ += ms(100);
  EXPECT_FALSE(timing_.on_refusal(now_ - ms(200), ms(5), ms(2), now_)) << "it waited for an EXEC";
  EXPECT_FALSE(timing_.on_refusal(now_, ms(2), ms(2), now_)) << "its time was too short";
  for (int i = 0; i < 15; ++i) {
    now_ += ms(6);
    EXPECT_TRUE(timing_.on_refusal(now_, ms(5), ms(2), now_));
    EXPECT_FALSE(timing_.on_refusal(now_, ms(5), ms(2), now_)) << "refused together";
  }
  EXPECT_LT(timing_.margin(), ms(1));
  infer(us(100), ms(20));
  EXPECT_GT(timing_.margin(), ms(3));
  for (int i = 0; i < 100; ++i) infer(us(100), us(40) + ms(i % 10 == 0 ? 20 : 0));
  EXPECT_GT(timing_.margin(), before / 2);
}

// It has answered so late for a while that nothing is sent to it any more.
TEST_F(DeviceTimingTest, ForgetsWhatKeepsItIdle) {
  for (int i = 0; i < 300; ++i) infer(ms(60), ms(60));
  EXPECT_GE(timing_.margin(), ms(100));
  const auto refuse_for = [&](Duration time) {  // after the last outcome
    for (Duration past; past < time; past = past + ms(10)) {
      now_ += ms(10);
      timing_.on_refusal(now_ - ms(10), ms(100), ms(2), now_);
    }
  };
  // It is still so after each time: it is asked less and less often.
  for (const Duration believed : {ms(1000), ms(1000), ms(2000), ms(4000)}) {
    now_ += ms(122);
    refuse_for(believed - ms(100));
    EXPECT_GE(timing_.margin(), ms(100)) << believed.to_milliseconds();
    refuse_for(ms(200));
    EXPECT_LT(timing_.margin(), ms(1)) << believed.to_milliseconds();
    EXPECT_LT(timing_.delivery(), ms(1));
    for (int i = 0; i < 40; ++i) infer(ms(60), ms(60));
    EXPECT_GE(timing_.margin(), ms(100));
  }
}

TEST_F(DeviceTimingTest, HasAFloorAndCanBeFixed) {
  timing_ = DeviceTiming({.margin_min = ms(4)});
  EXPECT_EQ(timing_.margin(), ms(4));
  for (int i = 0; i < 3; ++i) infer(ms(9), ms(9));
  EXPECT_GT(timing_.margin(), ms(4));
  timing_ = DeviceTiming({.margin_min = {}, .margin_fixed = us(150)});
  for (int i = 0; i < 100; ++i) infer(ms(9), ms(9));
  EXPECT_EQ(timing_.margin(), us(150));
}

}  // namespace
}  // namespace foliot
