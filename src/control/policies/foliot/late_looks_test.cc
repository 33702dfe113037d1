// Where turns come late, as on a controller whose processor is busy: one look gives a device more than one batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "control/policies/common/policy_stage.h"
#include "control/policies/foliot/foliot_policy.h"

namespace foliot::foliot_policy {
namespace {

using testing::ElementsAre;

class LateLooksTest : public testing::Test {
 protected:
  std::vector<ModelId> models_sent(double at) {
    std::vector<ModelId> models;
    for (const Action& action : stage_.plan(at)) models.push_back(action.model);
    return models;
  }

  PolicyStage stage_{[](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8};
  ModelId a_ = stage_.add_model();
  ModelId b_ = stage_.add_model();
  ModelId c_ = stage_.add_model();
};

// One row takes 2 ms.
TEST_F(LateLooksTest, ALookThatComesLaterThanAnExecTakesGivesTwoBatches) {
  for (const ModelId model : {a_, b_, c_}) stage_.request(model, 0, 100);
  EXPECT_EQ(models_sent(2.5).size(), 2u);
}

TEST_F(LateLooksTest, AnEarlierOneGivesOne) {
  for (const ModelId model : {a_, b_, c_}) stage_.request(model, 0, 100);
  EXPECT_EQ(models_sent(1.5).size(), 1u);
}

// Each would be late behind the other. Of four devices that could run both the choice counts a quarter of what they
// take.
TEST_F(LateLooksTest, TheSecondBatchIsOneThatCanWaitForTheFirst) {
  PolicyStage stage([](const Cluster& cluster) { return make_foliot_policy(cluster); }, 4, 8);
  stage.request(stage.add_model({0, 1, 2, 3}), 0, 13);
  stage.request(stage.add_model({0, 1, 2, 3}), 0, 13.5);
  const std::vector<Action> sent = stage.plan(10);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_NE(sent[0].device, sent[1].device);
}

TEST_F(LateLooksTest, OfThoseItIsTheOneThatHasToStartFirst) {
  stage_.request(a_, 0, 50);
  stage_.request(b_, 0, 200);
  stage_.request(c_, 0, 100);
  EXPECT_THAT(models_sent(10), ElementsAre(a_, c_));
}

// Four rows take 5 ms, and end at 15. Then one of the others can be met, and the choice leaves out the first.
TEST_F(LateLooksTest, WhatTheChoiceLeavesOutIsNotSent) {
  for (int i = 0; i < 4; ++i) stage_.request(c_, 0, 15.4);
  stage_.request(a_, 0, 17.5);
  stage_.request(b_, 0, 18);
  EXPECT_THAT(models_sent(10), ElementsAre(c_, b_));
}

TEST_F(LateLooksTest, ItIsOfAnotherQueue) {
  for (int i = 0; i < 40; ++i) stage_.request(a_, 0, 100);
  stage_.request(b_, 0, 200);
  EXPECT_THAT(models_sent(10), ElementsAre(a_, b_));
}

}  // namespace
}  // namespace foliot::foliot_policy
