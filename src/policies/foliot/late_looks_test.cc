// Where turns come late, as on a controller whose processor is busy: one look gives a device more than one batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "policies/common/policy_stage.h"
#include "policies/foliot/foliot_policy.h"

namespace foliot::foliot_policy {
namespace {

using testing::AnyOf;
using testing::UnorderedElementsAre;

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

TEST_F(LateLooksTest, TheSecondBatchIsOneThatCanWaitForTheFirst) {
  stage_.request(a_, 0, 13);
  stage_.request(b_, 0, 13.2);
  stage_.request(c_, 0, 100);
  EXPECT_THAT(models_sent(10), UnorderedElementsAre(AnyOf(a_, b_), c_)) << "each would be late behind the other";
}

TEST_F(LateLooksTest, ItIsOfAnotherQueue) {
  for (int i = 0; i < 5; ++i) stage_.request(a_, 0, 100);
  EXPECT_EQ(models_sent(10).size(), 1u);
}

}  // namespace
}  // namespace foliot::foliot_policy
