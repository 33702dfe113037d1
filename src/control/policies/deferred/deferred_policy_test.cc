#include "control/policies/deferred/deferred_policy.h"

#include <gtest/gtest.h>

#include "control/policies/common/policy_stage.h"

namespace foliot::deferred {
namespace {

PolicyStage make_stage(uint32_t devices = 1) {
  return PolicyStage([](const Cluster& cluster) { return make_deferred_policy(cluster, {.slack = 0.1}); }, devices);
}

TEST(DeferredPolicyTest, WaitsUntilOneMoreWouldNotBeInTime) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  stage.request(a, 0, 50);
  EXPECT_TRUE(stage.plan(0).empty());
  EXPECT_EQ(stage.wake(), 47);  // two rows take 3 ms
  stage.request(a, 10, 60);
  EXPECT_TRUE(stage.plan(10).empty());
  EXPECT_EQ(stage.wake(), 45);  // three rows take as long as four: 5 ms
  const auto sent = stage.plan(45);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rows.size(), 2u);
}

TEST(DeferredPolicyTest, AFullBatchDoesNotWait) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 50);
  ASSERT_EQ(stage.plan(0).size(), 1u);
}

TEST(DeferredPolicyTest, TheSmallestInvalidAfterGoesFirst) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 50);
  for (int i = 0; i < 4; ++i) stage.request(b, 0, 40);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, b);
}

TEST(DeferredPolicyTest, BestEffortDoesNotWaitForever) {
  PolicyStage stage = make_stage();
  const ModelId a = stage.add_model();
  stage.request(a, 0, -1);
  ASSERT_EQ(stage.plan(0).size(), 1u);
}

// One that is nearly due keeps four others from a batch of their own: under load it is
// dropped, otherwise they wait.
TEST(DeferredPolicyTest, DropsTheHeadFromTheWindowOnlyUnderLoad) {
  for (const bool loaded : {false, true}) {
    PolicyStage stage = make_stage();
    const ModelId a = stage.add_model();
    if (loaded) {
      for (int i = 0; i < 2000; ++i) stage.request(a, i / 2.0, i / 2.0 + 2.5);
      stage.plan(999.9);
      stage.plan(1001);
    }
    const RequestId urgent = stage.request(a, 1010, 1014);
    for (int i = 0; i < 4; ++i) stage.request(a, 1010, 1100);
    const auto sent = stage.plan(1010);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(PolicyStage::rows(sent[0])[0] != urgent, loaded);
    EXPECT_EQ(sent[0].rows.size(), loaded ? 4u : 2u);
  }
}

}  // namespace
}  // namespace foliot::deferred
