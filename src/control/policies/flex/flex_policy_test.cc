#include "control/policies/flex/flex_policy.h"

#include <gtest/gtest.h>

#include "control/policies/common/policy_stage.h"

namespace foliot::flex {
namespace {

TEST(FlexPolicyTest, TheLargestBatchGoesFirst) {
  PolicyStage stage(make_flex_policy);
  const ModelId few = stage.add_model();
  const ModelId many = stage.add_model();
  stage.request(few, 0, 10);
  for (int i = 0; i < 4; ++i) stage.request(many, 1, 100);
  const auto sent = stage.plan(1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, many);
  EXPECT_EQ(sent[0].rows.size(), 4u);
}

TEST(FlexPolicyTest, ABatchIsAsLargeAsItsMostUrgentRequestAllows) {
  PolicyStage stage(make_flex_policy);
  const ModelId a = stage.add_model();
  const RequestId urgent = stage.request(a, 0, 4.5);  // 4 rows take 5 ms
  for (int i = 0; i < 3; ++i) stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].batch_size, 2u);
  EXPECT_EQ(PolicyStage::rows(sent[0])[0], urgent);
}

TEST(FlexPolicyTest, WhatTimeHasMadeSmallerMovesBack) {
  PolicyStage stage(make_flex_policy);
  const ModelId shrinking = stage.add_model();
  const ModelId other = stage.add_model();
  for (int i = 0; i < 4; ++i) stage.request(shrinking, 0, 5.5);
  for (int i = 0; i < 4; ++i) stage.request(other, 0, 100);
  // At 0 all four could go together; at 2 two of them could.
  const auto sent = stage.plan(2);
  ASSERT_GE(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, other);
}

}  // namespace
}  // namespace foliot::flex
