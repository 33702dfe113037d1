#include "control/policies/edf/edf_policy.h"

#include <gtest/gtest.h>

#include "control/policies/common/policy_stage.h"

namespace foliot::edf {
namespace {

std::unique_ptr<Policy> make(const Cluster& cluster) { return make_edf_policy(cluster); }

TEST(EdfPolicyTest, ServesOneAtATimeInTheOrderOfDeadlines) {
  PolicyStage stage(make);
  const ModelId a = stage.add_model();
  const ModelId b = stage.add_model();
  stage.request(a, 0, -1);
  stage.request(a, 0, 100);
  const RequestId urgent = stage.request(b, 1, 20);
  const RequestId next_urgent = stage.request(a, 2, 50);
  const auto sent = stage.plan(2);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{urgent});
  stage.finish(sent[0], 4, Duration::milliseconds(2));
  const auto next = stage.plan(4);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(next[0]), std::vector{next_urgent});
}

TEST(EdfPolicyTest, UsesEveryDeviceThatHoldsTheModel) {
  PolicyStage stage(make, 3);
  const ModelId a = stage.add_model({0, 2});
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].device, DeviceId(0));
  EXPECT_EQ(sent[1].device, DeviceId(2));
}

TEST(EdfPolicyTest, LoadsAModelThatFailedOnAnotherDeviceAndLaterThereAgain) {
  PolicyStage stage([](const Cluster& cluster) { return make_edf_policy(cluster); }, 2);
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

// At 95 neither can be met any more; with the paper's query drop the one that has not expired
// is run all the same, and is late.
TEST(EdfPolicyTest, ThePapersQueryDropRunsWhatCannotBeMet) {
  const auto expired_only = [](const Cluster& cluster) { return make_edf_policy(cluster, QueryDrop::kExpired); };
  for (const bool drops_expired_only : {false, true}) {
    PolicyStage stage(drops_expired_only ? PolicyStage::Factory(expired_only) : PolicyStage::Factory(make));
    const ModelId a = stage.add_model({0});
    stage.request(a, 0, 90);
    const RequestId late = stage.request(a, 0, 96);
    const auto sent = stage.plan(95);
    EXPECT_EQ(sent.size(), drops_expired_only ? 1u : 0u);
    EXPECT_EQ(stage.refused().size(), drops_expired_only ? 1u : 2u);
    if (!drops_expired_only) continue;
    EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{late});
  }
}

}  // namespace
}  // namespace foliot::edf
