#include "control/policies/foliot/lane_division.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "control/policies/common/policy_stage.h"
#include "control/policies/foliot/foliot_policy.h"

namespace foliot::foliot_policy {
namespace {

constexpr double kSlo = 20;  // of the short one, in ms

// A device of two lanes. One row of `short_` takes 2 ms on both and on one; each row of `long_`, in fifty operators,
// 100 and 180.
class LaneDivisionTest : public testing::Test {
 protected:
  LaneDivisionTest() {
    stage_.set_lane_count(0, 2, /*context_count=*/2);
    short_ = stage_.add_model();
    long_ = stage_.add_model({0}, 50);
    stage_.set_exec(short_, Duration::milliseconds(2), 0, width_index(1, 2));
    set_long(100, 180);
  }
  void set_long(int64_t both, int64_t one) {
    for (const auto& [index, rows] : {std::pair(0u, 1), {1u, 2}, {2u, 4}}) {
      stage_.set_exec(long_, Duration::milliseconds(both * rows), index);
      stage_.set_exec(long_, Duration::milliseconds(one * rows), index, width_index(1, 2));
    }
  }
  // The short one every 10 ms from `begin` on, and the long one, with 2 s, every so many; what is sent at each time is
  // over 2 ms later, but of the long one as long as it takes. Returns the INFERs of the long one.
  std::vector<Action> ask(double begin, double end, double every) {
    std::vector<Action> longs;
    std::vector<std::pair<double, Action>> running;
    for (double now = begin; now < end; now += 1) {
      for (size_t i = 0; i < running.size();) {
        if (running[i].first > now) {
          ++i;
          continue;
        }
        stage_.finish(running[i].second, now, running[i].second.expected);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      }
      const auto step = static_cast<int64_t>(now - begin);
      if (step % 10 == 0) stage_.request(short_, now, now + kSlo);
      if (step % static_cast<int64_t>(every) == 5) stage_.request(long_, now, now + 2000);
      for (const Action& sent : stage_.plan(now)) {
        const double takes = sent.model == long_ ? std::max(1.0, sent.expected.to_milliseconds()) : 2;
        running.emplace_back(now + takes, sent);
        if (sent.model == long_) longs.push_back(sent);
        if (sent.model == short_) ++short_sent_;
      }
    }
    return longs;
  }

  PolicyStage stage_{[](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8};
  ModelId short_;
  ModelId long_;
  int short_sent_ = 0;
};

TEST_F(LaneDivisionTest, ALongExecLeavesALaneToRequestsThatHaveLessTime) {
  ask(0, 4000, 2000);  // so that what a long one takes is known
  const std::vector<Action> sent = ask(4000, 4100, 100);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].lanes.count, 1u);
  EXPECT_TRUE(sent[0].range.whole());
  EXPECT_EQ(short_sent_, 410) << "none waits for it";
}

TEST_F(LaneDivisionTest, ASecondOneWaitsForTheLaneOfTheFirst) {
  ask(0, 4000, 2000);
  const std::vector<Action> sent = ask(4000, 4300, 100);
  ASSERT_GE(sent.size(), 2u);
  for (const Action& action : sent) EXPECT_EQ(action.lanes, sent[0].lanes);
}

TEST_F(LaneDivisionTest, WhereLongExecsWouldKeepALaneBusyTheyTakeAllInParts) {
  ask(0, 20'000, 200);  // 0.9 of a lane
  const std::vector<Action> sent = ask(20'000, 20'300, 300);
  ASSERT_FALSE(sent.empty());
  for (const Action& action : sent) {
    EXPECT_EQ(action.lanes.count, 2u);
    EXPECT_FALSE(action.range.whole());
  }
  EXPECT_EQ(short_sent_, 2030) << "they are served between parts";
}

TEST_F(LaneDivisionTest, LanesThatDoMuchMoreApartAreSharedWhereAllTogetherDoTooLittle) {
  for (int i = 0; i < 20; ++i) set_long(100, 102);      // more often than is remembered
  const std::vector<Action> sent = ask(0, 20'000, 60);  // 1.7 of the device, or 0.9 of both lanes
  ASSERT_GT(sent.size(), 100u);
  for (const Action& action : std::span(sent).last(50)) {
    EXPECT_EQ(action.lanes.count, 1u);
    EXPECT_TRUE(action.range.whole());
  }
}

TEST_F(LaneDivisionTest, WhatIsNotInTimeOnOneLaneTakesAll) {
  set_long(1200, 2200);  // of 2 s
  ask(0, 3000, 1500);
  const std::vector<Action> sent = ask(3000, 6000, 3000);
  ASSERT_FALSE(sent.empty());
  for (const Action& action : sent) EXPECT_EQ(action.lanes.count, 2u);
}

// It was asked for without a pause, and now is once in 2 s: neither its rate then nor that it had no deadlines lets it
// hold up requests that have less time.
TEST_F(LaneDivisionTest, WhatWasAskedForOftenDoesNotBlock) {
  double now = 0;
  for (; now < 4000; now += 100) {
    stage_.request(long_, now, -1);
    for (const Action& sent : stage_.plan(now)) stage_.finish(sent, now + 99, sent.expected);
  }
  ask(now, now + 12'000, 1'000'000);
  const int before = short_sent_;
  const std::vector<Action> sent = ask(now + 12'000, now + 22'000, 2000);
  ASSERT_GE(sent.size(), 5u);
  for (const Action& action : sent) {
    const bool is_apart = action.lanes.count == 1 || !action.range.whole();
    EXPECT_TRUE(is_apart) << "a long one takes all lanes at once";
  }
  EXPECT_EQ(short_sent_ - before, 1000);
}

// A long one has a lane when so many come that the device goes over to EXECs on all lanes: the others wait for both.
TEST_F(LaneDivisionTest, WhileItWaitsForAllLanesShortExecsHaveThoseThatAreFree) {
  ask(0, 4000, 2000);  // so that what a long one takes is known
  stage_.request(long_, 10'000, 12'000);
  stage_.request(long_, 10'000, 12'000);
  const std::vector<Action> longs = stage_.plan(10'000);
  ASSERT_EQ(longs.size(), 1u);
  ASSERT_EQ(longs[0].lanes.count, 1u);
  int shorts = 0;
  for (double now = 10'010; now < 10'310; now += 10) {
    stage_.request(long_, now, now + 2000);
    stage_.request(short_, now, now + kSlo);
    for (const Action& sent : stage_.plan(now)) {
      EXPECT_EQ(sent.model, short_);
      EXPECT_NE(sent.lanes, longs[0].lanes);
      stage_.finish(sent, now + 2, Duration::milliseconds(2));
      ++shorts;
    }
  }
  EXPECT_EQ(shorts, 30);
}

// Two of three lanes leave one that is of no use: one row takes 2 ms on all, 3 on two and 6 on one.
TEST(LanesThatAreLeftOver, CountAsTaken) {
  PolicyStage stage([](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8);
  stage.set_lane_count(0, 3, /*context_count=*/2);
  const ModelId model = stage.add_model();
  std::vector<std::pair<double, Action>> running;
  for (double now = 0; now < 2000; now += 0.5) {
    std::erase_if(running, [&](const auto& one) {
      if (one.first > now) return false;
      stage.finish(one.second, now, one.second.expected);
      return true;
    });
    if (static_cast<int64_t>(now * 2) % 4 == 0) stage.request(model, now, now + 5);
    for (const Action& sent : stage.plan(now)) {
      EXPECT_EQ(sent.lanes.count, 3u) << "at " << now << " ms";
      running.emplace_back(now + sent.expected.to_milliseconds(), sent);
    }
  }
}

}  // namespace
}  // namespace foliot::foliot_policy
