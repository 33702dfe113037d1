#include "control/policies/clockwork/clockwork_policy.h"

#include <gtest/gtest.h>

#include "control/policies/common/policy_stage.h"

namespace foliot::clockwork {
namespace {

PolicyStage make_stage(uint32_t devices = 1, uint32_t pages = 8) {
  return PolicyStage([](const Cluster& cluster) { return make_clockwork_policy(cluster); }, devices, pages);
}

TEST(ClockworkPolicyTest, TheStrategyThatHasToStartFirstGoesFirst) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  stage.request(a, 0, 50);
  const RequestId urgent = stage.request(b, 0, 40);
  const auto sent = stage.plan(0);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{urgent});
  EXPECT_EQ(sent[0].latest, PolicyStage::at(38));
}

TEST(ClockworkPolicyTest, ABatchGrowsWhileItIsFilledAndItsHeadAllows) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 50);
  EXPECT_EQ(stage.plan(0)[0].batch_size, 4u);

  PolicyStage tight = make_stage();
  const ModelId b = tight.add_model();
  const RequestId head = tight.request(b, 0, 4);  // with two rows it takes 3 ms, with four 5
  for (int i = 0; i < 4; ++i) tight.request(b, 0, 50);
  const auto sent = tight.plan(0);
  EXPECT_EQ(sent[0].batch_size, 2u);
  EXPECT_EQ(PolicyStage::rows(sent[0])[0], head);
}

TEST(ClockworkPolicyTest, KeepsFiveMillisecondsAhead) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  for (int i = 0; i < 12; ++i) stage.request(a, 0, 100 + i);
  // 5 ms each: after the first there is no less than 5 ms of work.
  EXPECT_EQ(stage.plan(0).size(), 1u);
  EXPECT_EQ(stage.plan(1).size(), 1u);
}

TEST(ClockworkPolicyTest, RefusesWhatCanNoLongerBeMet) {
  PolicyStage stage = make_stage();
  const ModelId cold = stage.add_model({});
  const RequestId request = stage.request(cold, 0, 9);  // LOAD and EXEC take 10 ms
  EXPECT_TRUE(stage.plan(0).empty()) << "a LOAD would not help it";
  EXPECT_TRUE(stage.refused().empty());
  stage.plan(7.1);
  EXPECT_EQ(stage.refused(), std::vector{request});
}

// It was expected to take 2 ms when it was asked for first, and then took 6.
TEST(ClockworkPolicyTest, RefusesByWhatWasMeasuredLast) {
  PolicyStage stage = make_stage();
  const ModelId slow = stage.add_model();
  const ModelId other = stage.add_model();
  stage.request(slow, 0, 50);
  const Action first = stage.plan(0).at(0);
  stage.set_exec(slow, Duration::milliseconds(6));
  stage.finish(first, 6, Duration::milliseconds(6));
  stage.set_exec(other, Duration::milliseconds(30));
  stage.request(other, 6, 100);
  ASSERT_EQ(stage.plan(6).size(), 1u);
  const RequestId behind = stage.request(slow, 7, 20);
  stage.plan(13.9);
  EXPECT_TRUE(stage.refused().empty());
  stage.plan(14.1);
  EXPECT_EQ(stage.refused(), std::vector{behind});
}

TEST(ClockworkPolicyTest, LoadsTheModelWithTheMostDemandFirstAndEvictsTheLeastRecentlyUsed) {
  PolicyStage stage = make_stage(1, 2);
  stage.add_model();
  stage.add_model();
  const ModelId little = stage.add_model({});
  const ModelId much = stage.add_model({});
  stage.request(little, 0, 100);
  for (int i = 0; i < 3; ++i) stage.request(much, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].type, ActionType::kUnload);
  EXPECT_EQ(sent[0].model, ModelId(0));
  EXPECT_EQ(sent[1].type, ActionType::kLoad);
  EXPECT_EQ(sent[1].model, much);
}

TEST(ClockworkPolicyTest, ADemandThatItsHoldersMeetIsNotLoadedAgain) {
  PolicyStage stage = make_stage(2);
  const ModelId a = stage.add_model({0});
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 100);
  for (const Action& action : stage.plan(0)) EXPECT_EQ(action.type, ActionType::kInfer);

  // 200 requests are 400 ms of work, four times what one device can do in 100 ms.
  PolicyStage busy = make_stage(2);
  const ModelId b = busy.add_model({0});
  for (int i = 0; i < 200; ++i) busy.request(b, 0, 100);
  const auto sent = busy.plan(0);
  EXPECT_EQ(sent.back().type, ActionType::kLoad);
  EXPECT_EQ(sent.back().device, DeviceId(1));
}

// Of devices that as much is asked of it is the first. The device is given one batch of four rows.
TEST(ClockworkPolicyTest, LoadsWhereTheLeastIsAskedForAndNotWhereMuchWas) {
  for (const int rows : {4, 12}) {
    PolicyStage stage = make_stage(2);
    const ModelId hot = stage.add_model({0});
    for (int i = 0; i < rows; ++i) stage.request(hot, 0, 1000 + i);
    ASSERT_EQ(stage.plan(0).size(), 1u);
    stage.request(stage.add_model({}), 0, 1000);
    const auto sent = stage.plan(0);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].type, ActionType::kLoad);
    EXPECT_EQ(sent[0].device, DeviceId(rows == 4 ? 0 : 1)) << rows << " rows";
  }
}

TEST(ClockworkPolicyTest, LoadsAModelThatFailedOnAnotherDeviceAndLaterThereAgain) {
  PolicyStage stage([](const Cluster& cluster) { return make_clockwork_policy(cluster); }, 2);
  const ModelId a = stage.add_model({});
  stage.request(a, 0, 1000);
  const auto first = stage.plan(0);
  ASSERT_EQ(first.size(), 1u);
  stage.fail(first[0], 1);
  const auto second = stage.plan(1);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].type, ActionType::kLoad);
  EXPECT_NE(second[0].device, first[0].device);
  stage.fail(second[0], 11);
  for (double now = 11; now < 101; now += 10) EXPECT_TRUE(stage.plan(now).empty()) << now;
  const auto third = stage.plan(101);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(third[0].device, first[0].device) << "where the back-off is over";
  EXPECT_EQ(stage.backing_off(), 0u);
}

}  // namespace
}  // namespace foliot::clockwork
