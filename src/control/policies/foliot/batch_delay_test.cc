#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "control/policies/common/policy_stage.h"
#include "control/policies/foliot/foliot_policy.h"

namespace foliot::foliot_policy {
namespace {

class BatchDelayTest : public testing::Test {
 protected:
  BatchDelayTest() : a_(stage_.add_model({0}, 1, Duration::milliseconds(5))) {}
  // What is sent at `now`, in rows.
  std::vector<size_t> sent(double now) {
    std::vector<size_t> rows;
    for (const Action& action : stage_.plan(now)) rows.push_back(action.rows.size());
    return rows;
  }

  PolicyStage stage_{[](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8};
  const ModelId a_;
};

TEST_F(BatchDelayTest, ABatchThatIsNotFullWaitsForMoreRows) {
  stage_.request(a_, 0, 50);
  EXPECT_THAT(sent(0), testing::IsEmpty());
  stage_.request(a_, 2, 52);
  EXPECT_THAT(sent(2), testing::IsEmpty());
  EXPECT_THAT(sent(4.8), testing::IsEmpty());
  EXPECT_THAT(sent(5), testing::ElementsAre(2));
}

TEST_F(BatchDelayTest, AFullBatchDoesNotWait) {
  for (int i = 0; i < 4; ++i) stage_.request(a_, 0, 50);
  EXPECT_THAT(sent(0), testing::ElementsAre(4));
}

TEST_F(BatchDelayTest, NoneWaitsUntilItWouldBeLate) {
  stage_.request(a_, 0, 5);  // and takes 2 ms, and is looked at 1 ms before
  EXPECT_THAT(sent(0), testing::IsEmpty());
  EXPECT_THAT(sent(2), testing::ElementsAre(1));
}

TEST_F(BatchDelayTest, OthersNeedNotWait) {
  const ModelId other = stage_.add_model();
  stage_.request(a_, 0, 50);
  stage_.request(other, 0, 50);
  const std::vector<Action> actions = stage_.plan(0);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].model, other);
}

TEST_F(BatchDelayTest, WhileTheDeviceIsBusyABatchWaitsLonger) {
  for (int i = 0; i < 4; ++i) stage_.request(a_, 0, 50);
  const std::vector<Action> first = stage_.plan(0);
  ASSERT_EQ(first.size(), 1u);
  stage_.request(a_, 0, 50);
  EXPECT_THAT(sent(4.9), testing::IsEmpty()) << "though the device is free within a millisecond";
  stage_.request(a_, 5.5, 55.5);
  EXPECT_THAT(sent(5.5), testing::IsEmpty()) << "its outcome is late";
  stage_.finish(first[0], 6, Duration::milliseconds(6));
  EXPECT_THAT(sent(6), testing::ElementsAre(2));
}

TEST_F(BatchDelayTest, OnlyItsOwnModelsAnswersAreAwaited) {
  const ModelId other = stage_.add_model();
  stage_.request(other, 0, 50);
  ASSERT_EQ(sent(0).size(), 1u);  // until 2, and its outcome is late
  stage_.request(a_, 0, 50);
  EXPECT_THAT(sent(4.9), testing::IsEmpty());
  EXPECT_THAT(sent(5), testing::ElementsAre(1));
}

TEST_F(BatchDelayTest, WhereTheModelSaysNothingItFollowsFromWhatABatchSaves) {
  const ModelId b = stage_.add_model({0}, 1, std::nullopt);
  double now = 0;
  const auto run = [&] {
    const std::vector<Action> actions = stage_.plan(now);
    for (const Action& action : actions) stage_.finish(action, now + 3, Duration::milliseconds(3));
    return actions.size();
  };
  stage_.request(b, 0, 40);
  EXPECT_EQ(run(), 1u) << "nothing is known of how often requests come";
  for (now = 4; now < 2000; now += 4) {
    stage_.request(b, now, now + 40);
    run();
  }
  now += 5;  // until nothing waits
  run();
  now += 7;
  const double arrival = now;
  stage_.request(b, arrival, arrival + 40);
  EXPECT_EQ(run(), 0u);
  now = arrival + 4.9;
  EXPECT_EQ(run(), 0u);
  now = arrival + 5;
  EXPECT_EQ(run(), 1u) << "after a sixth of what 40 ms leave beside two batches of 5";
  now = arrival + 10;
  stage_.request(b, now, -1);
  EXPECT_EQ(run(), 1u) << "of no deadline there is no part";
}

TEST_F(BatchDelayTest, RequestsWithoutADeadlineWaitToo) {
  stage_.request(a_, 0, -1);
  EXPECT_THAT(sent(0), testing::IsEmpty());
  EXPECT_THAT(sent(5), testing::ElementsAre(1));
}

}  // namespace
}  // namespace foliot::foliot_policy
