#include "control/policies/inferline/inferline_policy.h"

#include <gtest/gtest.h>

#include <vector>

#include "control/policies/common/policy_stage.h"

namespace foliot::inferline {
namespace {

TEST(InferlinePolicyTest, TakesAllThatWaitsAtOnceUpToTheLargestBatch) {
  PolicyStage stage(make_inferline_policy);
  const ModelId a = stage.add_model();
  const RequestId first = stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);  // it does not wait for more
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{first});
  std::vector<RequestId> waiting;
  for (int i = 1; i <= 5; ++i) waiting.push_back(stage.request(a, i * 0.1, 100));
  stage.finish(sent[0], 2, Duration::milliseconds(2));
  const auto next = stage.plan(2);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].batch_size, 4u);
  EXPECT_EQ(PolicyStage::rows(next[0]), std::vector(waiting.begin(), waiting.begin() + 4));
}

TEST(InferlinePolicyTest, TakesTheSmallestBatchSizeThatHoldsThem) {
  PolicyStage stage(make_inferline_policy);
  const ModelId a = stage.add_model();
  for (int i = 0; i < 3; ++i) stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].batch_size, 4u);
  EXPECT_EQ(sent[0].rows.size(), 3u);
}

TEST(InferlinePolicyTest, KeepsTheOrderOfArrivalWhateverTheDeadlines) {
  PolicyStage stage(make_inferline_policy);
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  const RequestId first = stage.request(a, 0, 100);
  stage.request(b, 0.5, 10);
  const RequestId third = stage.request(a, 1, 6);
  const auto sent = stage.plan(1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), (std::vector{first, third}));
}

TEST(InferlinePolicyTest, PassesOverWhatWouldBeLateInTheBatch) {
  PolicyStage stage(make_inferline_policy);
  const ModelId a = stage.add_model();
  stage.request(a, 0, 4);  // 4 rows take 5 ms
  std::vector<RequestId> others;
  for (int i = 0; i < 3; ++i) others.push_back(stage.request(a, 0, 100));
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), others);
}

TEST(InferlinePolicyTest, WhereAllWouldBeLateTheBatchIsSmaller) {
  PolicyStage stage(make_inferline_policy);
  const ModelId a = stage.add_model();
  const RequestId first = stage.request(a, 0, 4);  // 2 rows take 3 ms
  const RequestId second = stage.request(a, 0, 4);
  for (int i = 0; i < 2; ++i) stage.request(a, 0, 4);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), (std::vector{first, second}));
}

TEST(InferlinePolicyTest, DropsWhatCanNoLongerBeMetAlone) {
  PolicyStage stage(make_inferline_policy);
  const ModelId a = stage.add_model();
  const RequestId late = stage.request(a, 0, 5);
  const RequestId in_time = stage.request(a, 1, 20);
  const auto sent = stage.plan(4);
  EXPECT_EQ(stage.refused(), std::vector{late});
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{in_time});
}

}  // namespace
}  // namespace foliot::inferline
