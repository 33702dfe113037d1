#include "control/fleet/scalers/model_autoscaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/fleet/scalers/greedy.h"
#include "control/fleet/scalers/test_problems.h"

namespace foliot {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

class AbsentSolver : public Solver {
 public:
  Result<ScalingPlan> solve(const ScalingProblem&, Duration) override { return Status::unavailable("no solver"); }
};

// LOADs take: A 2 s, B 5 s, C 10 s.
class ModelAutoscalerTest : public testing::Test {
 protected:
  ModelAutoscalerTest() {
    for (size_t i = 0; i < 3; ++i) fleet_.variants[i].load = Duration::seconds(i == 0 ? 2 : i == 1 ? 5 : 10);
  }
  ScalingDeltas step(double load) {
    fleet_.load = load;
    now_ += Duration::seconds(1);
    const ScalingStep step = autoscaler_.step(fleet_, now_);
    status_ = step.status;
    for (size_t i = 0; i < step.deltas.size(); ++i) fleet_.variants[i].running += step.deltas[i];
    return step.deltas;
  }
  void expect_nothing(double load, int steps) {
    for (int i = 0; i < steps; ++i) EXPECT_THAT(step(load), Each(0)) << "step " << i;
  }
  std::vector<int64_t> running() const {
    return {fleet_.variants[0].running, fleet_.variants[1].running, fleet_.variants[2].running};
  }

  GreedyMixedSolver solver_;
  ModelAutoscaler autoscaler_{solver_};
  ScalingProblem fleet_ = table_2(0, 300);
  TimePoint now_;
  Status status_;
};

TEST_F(ModelAutoscalerTest, ScalesUpAtOnceBelowItsHeadroom) {
  EXPECT_THAT(step(9.6), ElementsAre(3, 0, 0)) << "1.05 * 9.6 is above 10";
  fleet_.variants[0].running = 2;
  EXPECT_THAT(step(9.5), Each(0));
}

TEST_F(ModelAutoscalerTest, AnUpgradeUnloadsWhenItsLoadsAreOver) {
  step(9);
  EXPECT_THAT(step(90), ElementsAre(0, 1, 0)) << "and the two of A are to leave";
  expect_nothing(90, 4);
  EXPECT_THAT(running(), ElementsAre(2, 1, 0));
  EXPECT_EQ(step(90)[0], -2) << "after the 5 s of B's LOAD";
  expect_nothing(90, 20);
}

TEST_F(ModelAutoscalerTest, UnloadsAreCancelledWhenTheLoadRises) {
  step(9);
  step(90);
  EXPECT_THAT(step(104), Each(0)) << "with the two of A, 110 can be taken";
  expect_nothing(104, 9);
  EXPECT_THAT(running(), ElementsAre(2, 1, 0));
}

TEST_F(ModelAutoscalerTest, ScalesDownAfterTheTimeOfALoad) {
  fleet_.variants[1].running = 3;
  expect_nothing(150, 5);
  EXPECT_EQ(step(150)[1], -1) << "5 s after it could first have been";
  EXPECT_THAT(running(), ElementsAre(0, 2, 0));
}

TEST_F(ModelAutoscalerTest, ASpikeRestartsTheWaitAndTheHighestLoadCounts) {
  fleet_.variants[1].running = 3;
  expect_nothing(150, 3);
  expect_nothing(280, 1);
  expect_nothing(10, 2);
  expect_nothing(150, 3);
  EXPECT_EQ(step(10)[1], -1) << "two are kept for the 150 of a moment ago";
}

TEST_F(ModelAutoscalerTest, ADowngradeLoadsFirst) {
  fleet_.variants[1].running = 1;
  expect_nothing(4, 5);
  EXPECT_THAT(step(4), ElementsAre(1, 0, 0));
  EXPECT_THAT(running(), ElementsAre(1, 1, 0));
  expect_nothing(4, 1);
  EXPECT_EQ(step(4)[1], -1);
}

TEST_F(ModelAutoscalerTest, WhereDevicesAreMissingAsMuchAsFitsIsLoaded) {
  fleet_.resources = {{"cpu cores", 20}, {"gpus", 0}};
  fleet_.variants[0].needs = {4};
  fleet_.variants[1].needs = {0, 1};
  fleet_.variants[2].needs = {0, 1};
  EXPECT_THAT(step(100), ElementsAre(5, 0, 0));
  EXPECT_EQ(status_.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(step(100), testing::AnyOf(IsEmpty(), Each(0)));
  fleet_.resources[1].total = 1;
  EXPECT_EQ(step(100)[1], 1);
  EXPECT_TRUE(status_.ok());
}

TEST_F(ModelAutoscalerTest, WhatGoesWrongIsReportedAndChangesNothing) {
  AbsentSolver absent;
  ModelAutoscaler autoscaler(absent);
  fleet_.load = 10;
  const ScalingStep step = autoscaler.step(fleet_, now_);
  EXPECT_EQ(step.status.message(), "no solver");
  EXPECT_THAT(step.deltas, Each(0));
  fleet_.variants[1].price = -1;
  EXPECT_EQ(autoscaler_.step(fleet_, now_).status.code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
