#include "control/policies/foliot/offline_parts.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "control/policies/common/policy_stage.h"
#include "control/policies/foliot/foliot_policy.h"

namespace foliot::foliot_policy {
namespace {

constexpr double kSlo = 200;

// A device with two contexts. One row of `batch_` takes 9.8 ms in twenty operators; `online_` 2 ms.
class OfflinePartsTest : public testing::Test {
 protected:
  explicit OfflinePartsTest(uint32_t contexts = 2) {
    stage_.set_lane_count(0, 1, contexts);
    batch_ = stage_.add_model({0}, 20);
    online_ = stage_.add_model();
    stage_.set_exec(batch_, Duration::microseconds(9800));
  }

  // So that requests of online_ are expected.
  void ask_online() {
    for (int i = 0; i < 20; ++i) {
      stage_.request(online_, 10 * i, 10 * i + kSlo);
      for (const Action& action : stage_.plan(10 * i)) finish(action, 10 * i + 2);
    }
  }
  void finish(const Action& action, double when) { stage_.finish(action, when, Duration::milliseconds(2)); }
  std::vector<Action> plan(double when) { return stage_.plan(when); }
  // The first part of an offline batch that comes at 200 ms.
  Action begin() {
    ask_online();
    stage_.offline_request(batch_, 200);
    const std::vector<Action> sent = plan(200);
    EXPECT_EQ(sent.size(), 1u);
    return sent.at(0);
  }

  PolicyStage stage_{[](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8};
  ModelId batch_;
  ModelId online_;
};

TEST_F(OfflinePartsTest, APartTakesAMillisecondAndTheNextOneFollows) {
  Action part = begin();
  EXPECT_EQ(part.range, (OperatorRange{0, 2}));
  EXPECT_EQ(part.expected, Duration::microseconds(980));
  int parts = 1;
  for (double now = 201; !part.range.ends(); ++now, ++parts) {
    EXPECT_TRUE(plan(now - 0.5).empty()) << "the next one is sent after its outcome";
    finish(part, now);
    const std::vector<Action> next = plan(now);
    ASSERT_EQ(next.size(), 1u);
    EXPECT_EQ(next[0].range.first, part.range.last);
    EXPECT_EQ(next[0].context, part.context);
    part = next[0];
  }
  EXPECT_EQ(parts, 10);
  finish(part, 212);
  EXPECT_TRUE(plan(212).empty());
}

TEST_F(OfflinePartsTest, BatchesAreAsLargeAsTheirLongestOperatorAllows) {
  stage_.set_exec(batch_, Duration::milliseconds(19), 1);
  stage_.set_exec(batch_, Duration::milliseconds(30), 2);
  ask_online();
  for (int i = 0; i < 4; ++i) stage_.offline_request(batch_, 200);
  const std::vector<Action> sent = plan(200);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].batch_size, 2u) << "an operator of four rows takes 1.5 ms";
  EXPECT_EQ(sent[0].rows.size(), 2u);
}

TEST_F(OfflinePartsTest, ARequestRunsBetweenTwoParts) {
  const Action part = begin();
  finish(part, 202);
  const RequestId request = stage_.request(online_, 202, 202 + kSlo);
  const std::vector<Action> between = plan(202);
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(between[0]), std::vector{request});
  finish(between[0], 204);
  const std::vector<Action> next = plan(204);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range.first, part.range.last);
}

TEST_F(OfflinePartsTest, NoSecondBatchBeginsBeforeTheFirstHasEnded) {
  const Action part = begin();
  stage_.offline_request(batch_, 200);
  EXPECT_TRUE(plan(201.5).empty());
  finish(part, 202);
  const std::vector<Action> next = plan(202);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_FALSE(next[0].range.begins());
}

TEST_F(OfflinePartsTest, WhereNothingHasADeadlineBatchesRunWhole) {
  stage_.offline_request(batch_, 0);
  const std::vector<Action> sent = plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].range.whole());
}

TEST_F(OfflinePartsTest, WhatIsShortRunsWhole) {
  ask_online();
  const ModelId tiny = stage_.add_model();
  stage_.set_exec(tiny, Duration::microseconds(900));
  stage_.offline_request(tiny, 200);
  const std::vector<Action> sent = plan(200);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].range.whole());
}

TEST_F(OfflinePartsTest, WhatCannotGoOnForASecondIsFinishedFirst) {
  const Action part = begin();
  finish(part, 202);
  double now = 202;
  for (; now < 1190; now += 2) {
    stage_.request(online_, now, now + kSlo);
    const std::vector<Action> sent = plan(now);
    ASSERT_EQ(sent.size(), 1u);
    ASSERT_TRUE(sent[0].range.whole());
    finish(sent[0], now + 2);
  }
  stage_.request(online_, 1202, 1202 + kSlo);
  const std::vector<Action> sent = plan(1202);
  ASSERT_GE(sent.size(), 1u);
  EXPECT_EQ(sent[0].range, (OperatorRange{part.range.last, OperatorRange::kEnd}));
}

TEST_F(OfflinePartsTest, ADeviceThatLeavesGoesOn) {
  const Action part = begin();
  stage_.drain(0, 201);
  finish(part, 202);
  const std::vector<Action> next = plan(202);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range.first, part.range.last);
}

TEST_F(OfflinePartsTest, ASuspectedDeviceGoesOnWhenItIsUpAgain) {
  const Action part = begin();
  stage_.suspect(0, 201);
  finish(part, 202);
  EXPECT_TRUE(plan(202).empty());
  stage_.recover(0, 203);
  const std::vector<Action> next = plan(203);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range.first, part.range.last);
}

TEST_F(OfflinePartsTest, ALostDeviceHasNothingToGoOnWith) {
  const Action part = begin();
  finish(part, 202);
  stage_.restart(0, 203);
  stage_.offline_request(batch_, 203);
  std::optional<Action> again;
  for (double now = 203; now < 250 && !again; now += 5) {
    for (const Action& action : plan(now)) {
      if (action.type == ActionType::kInfer && action.model == batch_) again = action;
      finish(action, now + 4);
    }
  }
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->range.begins());
}

class OneContextTest : public OfflinePartsTest {
 protected:
  OneContextTest() : OfflinePartsTest(1) {}
};

TEST_F(OneContextTest, BatchesRunWhole) { EXPECT_TRUE(begin().range.whole()); }

}  // namespace
}  // namespace foliot::foliot_policy
