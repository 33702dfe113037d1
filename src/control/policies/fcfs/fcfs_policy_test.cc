#include "control/policies/fcfs/fcfs_policy.h"

#include <gtest/gtest.h>

#include "control/policies/common/policy_stage.h"

namespace foliot::fcfs {
namespace {

std::unique_ptr<Policy> make(const Cluster& cluster) { return make_fcfs_policy(cluster); }

TEST(FcfsPolicyTest, ServesOneAtATimeInTheOrderOfArrival) {
  PolicyStage stage(make);
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  const RequestId first = stage.request(a, 0, 100);
  const RequestId second = stage.request(b, 1, 20);
  stage.request(a, 2, 50);
  const auto sent = stage.plan(2);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{first});
  EXPECT_EQ(sent[0].batch_size, 1u);
  stage.finish(sent[0], 4, Duration::milliseconds(2));
  const auto next = stage.plan(4);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(next[0]), std::vector{second});
}

TEST(FcfsPolicyTest, DropsWhatCanNoLongerBeMet) {
  PolicyStage stage(make);
  const ModelId a = stage.add_model();
  const RequestId late = stage.request(a, 0, 5);
  const RequestId in_time = stage.request(a, 1, 20);
  const auto sent = stage.plan(4);
  EXPECT_EQ(stage.refused(), std::vector{late});
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{in_time});
}

TEST(FcfsPolicyTest, LoadsTheModelOfTheFirstRequest) {
  PolicyStage stage(make);
  const ModelId a = stage.add_model({});
  stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].type, ActionType::kLoad);
  stage.finish(sent[0], 8, Duration::milliseconds(8));
  const auto next = stage.plan(8);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].type, ActionType::kInfer);
}

}  // namespace
}  // namespace foliot::fcfs
