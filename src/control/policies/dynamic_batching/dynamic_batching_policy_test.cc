#include "control/policies/dynamic_batching/dynamic_batching_policy.h"

#include <gtest/gtest.h>

#include "control/policies/common/policy_stage.h"

namespace foliot::dynamic_batching {
namespace {

PolicyStage make_stage(uint32_t preferred_from) {
  return PolicyStage([=](const Cluster& cluster) {
    return make_dynamic_batching_policy(
        cluster, {.preferred_from = preferred_from, .queue_delay_max = Duration::milliseconds(3)});
  });
}

TEST(DynamicBatchingPolicyTest, WaitsForAPreferredSizeUntilTheDelayIsOver) {
  PolicyStage stage = make_stage(4);
  const ModelId a = stage.add_model();
  stage.request(a, 0, 100);
  stage.request(a, 1, 100);
  stage.request(a, 2, 100);
  EXPECT_TRUE(stage.plan(2).empty());
  EXPECT_EQ(stage.wake(), 3);
  const auto sent = stage.plan(3);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rows.size(), 3u);
  EXPECT_EQ(sent[0].batch_size, 4u);
}

TEST(DynamicBatchingPolicyTest, APreferredSizeGoesAtOnce) {
  PolicyStage stage = make_stage(2);
  const ModelId a = stage.add_model();
  for (int i = 0; i < 3; ++i) stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rows.size(), 2u);
}

TEST(DynamicBatchingPolicyTest, PassesOverRequestsThatWouldBeLateInTheBatch) {
  PolicyStage stage = make_stage(4);
  const ModelId a = stage.add_model();
  const RequestId urgent = stage.request(a, 0, 4);  // alone it takes 2 ms, in a batch of 4 it would take 5
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rows.size(), 4u);
  EXPECT_NE(PolicyStage::rows(sent[0])[0], urgent);
}

}  // namespace
}  // namespace foliot::dynamic_batching
