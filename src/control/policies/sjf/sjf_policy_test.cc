#include "control/policies/sjf/sjf_policy.h"

#include <gtest/gtest.h>

#include "control/policies/common/policy_stage.h"

namespace foliot::sjf {
namespace {

std::unique_ptr<Policy> make(const Cluster& cluster) { return make_sjf_policy(cluster); }

TEST(SjfPolicyTest, ServesTheShortestFirst) {
  PolicyStage stage(make);
  const ModelId slow = stage.add_model();
  const ModelId fast = stage.add_model();
  stage.set_exec(fast, Duration::milliseconds(1));
  stage.request(slow, 0, 20);
  const RequestId first = stage.request(fast, 1, 100);
  const RequestId second = stage.request(fast, 1, 50);
  const auto sent = stage.plan(1);
  ASSERT_GE(sent.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(sent[0]), std::vector{first});
  stage.finish(sent[0], 2, Duration::milliseconds(1));
  const auto next = stage.plan(2);
  ASSERT_GE(next.size(), 1u);
  EXPECT_EQ(PolicyStage::rows(next[0]), std::vector{second});
}

}  // namespace
}  // namespace foliot::sjf
