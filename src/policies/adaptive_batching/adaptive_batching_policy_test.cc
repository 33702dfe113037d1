#include "policies/adaptive_batching/adaptive_batching_policy.h"

#include <gtest/gtest.h>

#include "policies/common/policy_stage.h"

namespace foliot::adaptive_batching {
namespace {

// Four requests at a time, one wave after the other, each EXEC taking this long;
// returns the size of the largest batch of the last wave.
uint32_t settled_batch_size(PolicyStage& stage, ModelId model, Duration exec, double slo) {
  uint32_t largest = 0;
  for (int wave = 0; wave < 10; ++wave) {
    const double start = wave * 1000;
    largest = 0;
    for (int i = 0; i < 4; ++i) stage.request(model, start, start + slo);
    for (double now = start; now < start + 100; now += 1) {
      for (const Action& action : stage.plan(now)) {
        largest = std::max(largest, action.batch_size);
        stage.finish(action, now, exec);
      }
    }
  }
  return largest;
}

TEST(AdaptiveBatchingPolicyTest, BatchesGrowAsFarAsTheObjectiveAllows) {
  PolicyStage stage([](const Cluster& cluster) { return make_adaptive_batching_policy(cluster); });
  EXPECT_EQ(settled_batch_size(stage, stage.add_model(), Duration::milliseconds(5), 50), 4u);
  EXPECT_EQ(settled_batch_size(stage, stage.add_model(), Duration::milliseconds(30), 50), 1u);
}

TEST(AdaptiveBatchingPolicyTest, WaitsForCompanyUpToTheDelay) {
  PolicyStage stage([](const Cluster& cluster) { return make_adaptive_batching_policy(cluster); });
  const ModelId a = stage.add_model();
  settled_batch_size(stage, a, Duration::milliseconds(5), 50);
  stage.request(a, 20'000, 20'050);
  EXPECT_TRUE(stage.plan(20'000).empty());
  EXPECT_EQ(stage.wake(), 20'002);
  EXPECT_EQ(stage.plan(20'002).size(), 1u);
}

}  // namespace
}  // namespace foliot::adaptive_batching
