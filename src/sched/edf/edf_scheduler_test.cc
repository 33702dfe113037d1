#include "sched/edf/edf_scheduler.h"

#include <gtest/gtest.h>

#include "policy/policy_stage.h"

namespace foliot::edf {
namespace {

TEST(EdfSchedulerTest, ServesOneAtATimeInTheOrderOfDeadlines) {
  PolicyStage stage(make_edf_scheduler);
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

TEST(EdfSchedulerTest, UsesEveryDeviceThatHoldsTheModel) {
  PolicyStage stage(make_edf_scheduler, 3);
  const ModelId a = stage.add_model({0, 2});
  for (int i = 0; i < 4; ++i) stage.request(a, 0, 100);
  const auto sent = stage.plan(0);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].device, DeviceId(0));
  EXPECT_EQ(sent[1].device, DeviceId(2));
}

}  // namespace
}  // namespace foliot::edf
