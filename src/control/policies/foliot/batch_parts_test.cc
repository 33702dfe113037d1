#include "control/policies/foliot/batch_parts.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "control/policies/common/policy_stage.h"
#include "control/policies/foliot/foliot_policy.h"

namespace foliot::foliot_policy {
namespace {

constexpr double kSlo = 200;

// A device with two contexts. One row of `batch_` takes 9.8 ms in twenty operators; `online_` 2 ms.
class BatchPartsTest : public testing::Test {
 protected:
  explicit BatchPartsTest(uint32_t contexts = 2) {
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

TEST_F(BatchPartsTest, APartTakesAMillisecondAndTheNextOneFollows) {
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

TEST_F(BatchPartsTest, BatchesAreAsLargeAsTheirLongestOperatorAllows) {
  stage_.set_exec(batch_, Duration::milliseconds(19), 1);
  stage_.set_exec(batch_, Duration::milliseconds(30), 2);
  ask_online();
  for (int i = 0; i < 4; ++i) stage_.offline_request(batch_, 200);
  const std::vector<Action> sent = plan(200);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].batch_size, 2u) << "an operator of four rows takes 1.5 ms";
  EXPECT_EQ(sent[0].rows.size(), 2u);
}

TEST_F(BatchPartsTest, ARequestRunsBetweenTwoParts) {
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

TEST_F(BatchPartsTest, NoSecondBatchBeginsBeforeTheFirstHasEnded) {
  const Action part = begin();
  stage_.offline_request(batch_, 200);
  EXPECT_TRUE(plan(201.5).empty());
  finish(part, 202);
  const std::vector<Action> next = plan(202);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_FALSE(next[0].range.begins());
}

TEST_F(BatchPartsTest, WhereNothingHasADeadlineBatchesRunWhole) {
  stage_.offline_request(batch_, 0);
  const std::vector<Action> sent = plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].range.whole());
}

TEST_F(BatchPartsTest, WhatIsShortRunsWhole) {
  ask_online();
  const ModelId tiny = stage_.add_model();
  stage_.set_exec(tiny, Duration::microseconds(900));
  stage_.offline_request(tiny, 200);
  const std::vector<Action> sent = plan(200);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].range.whole());
}

TEST_F(BatchPartsTest, WhatCannotGoOnForASecondIsFinishedFirst) {
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

TEST_F(BatchPartsTest, ADeviceThatLeavesGoesOn) {
  const Action part = begin();
  stage_.drain(0, 201);
  finish(part, 202);
  const std::vector<Action> next = plan(202);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range.first, part.range.last);
}

TEST_F(BatchPartsTest, ASuspectedDeviceGoesOnWhenItIsUpAgain) {
  const Action part = begin();
  stage_.suspect(0, 201);
  finish(part, 202);
  EXPECT_TRUE(plan(202).empty());
  stage_.recover(0, 203);
  const std::vector<Action> next = plan(203);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range.first, part.range.last);
}

TEST_F(BatchPartsTest, ALostDeviceHasNothingToGoOnWith) {
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

// One row of `long_` takes 100 ms in twenty operators, and requests of `tight_`, of 2 ms, come every 20 ms with 30 ms.
class DeadlinePartsTest : public testing::Test {
 protected:
  explicit DeadlinePartsTest(uint32_t contexts = 2) {
    stage_.set_lane_count(0, 1, contexts);
    long_ = stage_.add_model({0}, 20);
    tight_ = stage_.add_model();
    for (const uint32_t size : {0, 1, 2}) stage_.set_exec(long_, Duration::milliseconds(100 * (size + 1)), size);
    stage_.request(long_, 0, 2000);
    for (const Action& action : plan(0)) finish(action, 100);
    for (int i = 6; i < 20; ++i) {
      stage_.request(tight_, 20 * i, 20 * i + 30);
      for (const Action& action : plan(20 * i)) finish(action, 20 * i + 2);
    }
  }
  // The first part of a batch that comes at 400 ms and is due at `deadline`.
  Action begin(double deadline) {
    request_ = stage_.request(long_, 400, deadline);
    const std::vector<Action> sent = plan(400);
    EXPECT_EQ(sent.size(), 1u);
    return sent.at(0);
  }
  void finish(const Action& action, double when) { stage_.finish(action, when, Duration::milliseconds(2)); }
  std::vector<Action> plan(double when) { return stage_.plan(when); }

  PolicyStage stage_{[](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8};
  ModelId long_;
  ModelId tight_;
  RequestId request_;
};

TEST_F(DeadlinePartsTest, ABatchThatOthersCannotWaitForRunsInParts) {
  const Action part = begin(2400);
  EXPECT_EQ(part.range, (OperatorRange{0, 1}));
  finish(part, 405);
  const RequestId tight = stage_.request(tight_, 405, 435);
  const std::vector<Action> between = plan(405);
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(between[0]), std::vector{tight});
  finish(between[0], 407);
  const std::vector<Action> next = plan(407);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range, (OperatorRange{1, 2}));
}

// 95 ms are left of it, and 180 ms of its time.
TEST_F(DeadlinePartsTest, WhatIsUnfinishedHasHalfOfTheDeviceUntilItsEnd) {
  finish(begin(585), 405);
  stage_.request(tight_, 405, 435);
  const std::vector<Action> next = plan(405);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range, (OperatorRange{1, 2}));
}

TEST_F(DeadlinePartsTest, WhatCannotEndInTimeAnyMoreIsRefused) {
  finish(begin(585), 520);
  EXPECT_TRUE(plan(520).empty());
  EXPECT_EQ(stage_.refused(), std::vector{request_});
}

TEST_F(DeadlinePartsTest, ASecondOneWaitsForTheEndOfTheFirst) {
  finish(begin(2400), 405);
  stage_.request(long_, 405, 2405);
  const std::vector<Action> next = plan(405);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].range, (OperatorRange{1, 2}));
}

TEST_F(DeadlinePartsTest, WhereNoTimeIsLeftForPartsItRunsWhole) {
  stage_.set_delivery(0, 0.2);
  EXPECT_TRUE(begin(503).range.whole());
}

class OneContextTest : public BatchPartsTest {
 protected:
  OneContextTest() : BatchPartsTest(1) {}
};

TEST_F(OneContextTest, BatchesRunWhole) { EXPECT_TRUE(begin().range.whole()); }

}  // namespace
}  // namespace foliot::foliot_policy
