#include "control/fleet/scalers/worker_autoscaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/fleet/scalers/fake_worker_pool.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class WorkerAutoscalerTest : public testing::Test {
 protected:
  WorkerAutoscalerTest() { make({.kinds = {{"cpu", {27, 1, 3}}, {"gpu", {850, 0, 2}}}}); }
  void make(WorkerAutoscalerOptions options) { autoscaler_.emplace(std::move(options), pool_); }
  void add(const std::string& kind, double utilisation) {
    const uint32_t number = pool_.sizes[kind]++;
    workers_.push_back({.name = kind + "-" + std::to_string(number), .kind = kind, .utilisation = utilisation});
  }
  std::string step(const DeviceDemand& demand = {}) {
    now_ += Duration::seconds(2);
    return autoscaler_->step(workers_, demand, now_).message();
  }

  FakeWorkerPool pool_;
  std::optional<WorkerAutoscaler> autoscaler_;
  std::vector<WorkerView> workers_;
  TimePoint now_;
};

TEST_F(WorkerAutoscalerTest, AKindThatIsBusyOnAllItsWorkersGetsOneMore) {
  add("cpu", 0.9);
  add("cpu", 0.7);
  EXPECT_EQ(step(), "");
  EXPECT_EQ(pool_.sizes["cpu"], 2u);
  workers_[1].utilisation = 0.81;
  EXPECT_EQ(step(), "");
  EXPECT_EQ(pool_.sizes["cpu"], 3u);
  EXPECT_EQ(step(), "") << "no other while it starts";
  EXPECT_EQ(pool_.sizes["cpu"], 3u);
  pool_.sizes["cpu"] = 2;
  add("cpu", 0.9);
  EXPECT_THAT(step(), HasSubstr("kind 'cpu' needs another worker, and has its maximum of 3"));
}

TEST_F(WorkerAutoscalerTest, AWorkerThatDoesNotComeIsStartedAgain) {
  add("gpu", 0.9);
  add("cpu", 0.1);
  step();
  EXPECT_EQ(pool_.sizes["gpu"], 2u);
  pool_.sizes["gpu"] = 1;
  for (int i = 0; i < 44; ++i) step();
  EXPECT_EQ(pool_.sizes["gpu"], 1u);
  step();
  EXPECT_EQ(pool_.sizes["gpu"], 2u);
}

TEST_F(WorkerAutoscalerTest, WorkersThatThePoolBringsByItselfAreNotAskedForAgain) {
  make({.kinds = {{"cpu", {27, 1, 9}}}});
  add("cpu", 0.9);
  pool_.sizes["cpu"] = 4;  // three ended, and the pool starts them again
  EXPECT_EQ(step(), "");
  EXPECT_EQ(pool_.sizes["cpu"], 4u);
}

TEST_F(WorkerAutoscalerTest, WhereSomeAreNotThereTheLastLeavesAlone) {
  add("cpu", 0.1);
  add("cpu", 0.1);
  add("cpu", 0.1);
  workers_.erase(workers_.begin());  // cpu-0 has ended
  for (WorkerView& worker : workers_) worker.may_leave = true;
  for (int i = 0; i < 17; ++i) step();
  EXPECT_EQ(pool_.sizes["cpu"], 2u);
}

TEST_F(WorkerAutoscalerTest, SoDoesAKindThatIsInterferedOnAll) {
  add("cpu", 0.1);
  add("gpu", 0.5);
  step();
  EXPECT_EQ(pool_.sizes["gpu"], 1u);
  workers_[1].interfered = true;
  step();
  EXPECT_EQ(pool_.sizes["gpu"], 2u);
  EXPECT_EQ(pool_.sizes["cpu"], 1u);
}

TEST_F(WorkerAutoscalerTest, WhereMostWorkersAreOverloadedOneStartsOfTheirKind) {
  make({.kinds = {{"cpu", {27, 1, 9}}, {"gpu", {850, 0, 2}}}});
  for (int i = 0; i < 4; ++i) add("cpu", 0.5);
  add("gpu", 0.5);
  for (size_t i = 0; i < 4; ++i) workers_[i].overloaded = true;
  step();
  EXPECT_EQ(pool_.sizes["cpu"], 4u) << "4 of 5 are not more than 80 %";
  workers_[4].overloaded = true;
  step();
  EXPECT_EQ(pool_.sizes["cpu"], 5u);
  EXPECT_EQ(pool_.sizes["gpu"], 1u);
}

TEST_F(WorkerAutoscalerTest, WhatTheModelAutoscalerLacksAndTheLeastAreStarted) {
  step({.lacking = {{"gpu", 1}}});
  EXPECT_EQ(pool_.sizes["gpu"], 1u);
  EXPECT_EQ(pool_.sizes["cpu"], 1u);
}

TEST_F(WorkerAutoscalerTest, AllThatAreLackedStartAtOnce) {
  make({.kinds = {{"cpu", {27, 1, 9}}}, .budget = 200});
  add("cpu", 0.3);
  EXPECT_EQ(step({.lacking = {{"cpu", 3}}}), "");
  EXPECT_EQ(pool_.sizes["cpu"], 4u);
  EXPECT_EQ(step({.lacking = {{"cpu", 3}}}), "");
  EXPECT_EQ(pool_.sizes["cpu"], 4u) << "they start";
  EXPECT_EQ(step({.lacking = {{"cpu", 5}}}), "");
  EXPECT_EQ(pool_.sizes["cpu"], 6u) << "two more are lacked meanwhile";
  EXPECT_EQ(step({.lacking = {{"cpu", 8}}}), "");
  EXPECT_EQ(pool_.sizes["cpu"], 7u) << "the budget has no more";
  EXPECT_THAT(step({.lacking = {{"cpu", 8}}}), HasSubstr("the budget is 200; raise it"));
}

TEST_F(WorkerAutoscalerTest, OneThatIsNotNeededIsDrainedAndLeavesWhenItMay) {
  add("cpu", 0.3);
  add("cpu", 0.3);
  for (int i = 0; i < 15; ++i) step();
  EXPECT_THAT(autoscaler_->draining(), IsEmpty());
  step();
  EXPECT_THAT(autoscaler_->draining(), ElementsAre("cpu-1"));
  step();
  EXPECT_EQ(pool_.sizes["cpu"], 2u);
  workers_[1].may_leave = true;
  step();
  EXPECT_EQ(pool_.sizes["cpu"], 1u);
  workers_.pop_back();
  for (int i = 0; i < 40; ++i) step();
  EXPECT_EQ(pool_.sizes["cpu"], 1u) << "the least";
  EXPECT_THAT(autoscaler_->draining(), IsEmpty());
}

TEST_F(WorkerAutoscalerTest, NoneLeavesThatAutoscalersOfModelsWouldLack) {
  add("cpu", 0.1);
  add("cpu", 0.1);
  const DeviceDemand demand = demand_of({{"cpu", 2}}, workers_);
  for (int i = 0; i < 40; ++i) step(demand);
  EXPECT_THAT(autoscaler_->draining(), IsEmpty());
  for (int i = 0; i < 16; ++i) step();
  EXPECT_THAT(autoscaler_->draining(), ElementsAre("cpu-1"));
  step(demand);
  EXPECT_THAT(autoscaler_->draining(), IsEmpty()) << "it is taken back";
}

TEST_F(WorkerAutoscalerTest, DemandIsComparedWithTheDevicesOfAllWorkers) {
  add("cpu", 0.1);
  add("cpu", 0.1);
  workers_[0].devices = 3;
  const auto demand = [&](uint32_t devices) { return demand_of({{"cpu", devices}}, workers_); };
  EXPECT_THAT(demand(5).lacking, ElementsAre(Pair("cpu", 1)));
  EXPECT_THAT(demand(8).lacking, ElementsAre(Pair("cpu", 2))) << "of three devices each";
  EXPECT_THAT(demand(4).lacking, IsEmpty());
  EXPECT_THAT(demand(2).kept, ElementsAre("cpu")) << "without the larger one there is a single device";
  EXPECT_THAT(demand(1).kept, IsEmpty());
  EXPECT_THAT(demand_of({{"tpu", 1}}, workers_).lacking, ElementsAre(Pair("tpu", 1)));
}

TEST_F(WorkerAutoscalerTest, ADrainedOneIsTakenBackBeforeAnotherStarts) {
  add("cpu", 0.3);
  add("cpu", 0.3);
  for (int i = 0; i < 16; ++i) step();
  EXPECT_THAT(autoscaler_->draining(), ElementsAre("cpu-1"));
  workers_[0].utilisation = 0.9;
  step();
  EXPECT_THAT(autoscaler_->draining(), IsEmpty());
  EXPECT_EQ(pool_.sizes["cpu"], 2u);
}

TEST_F(WorkerAutoscalerTest, TheBudgetAndAPoolThatRefusesAreNamed) {
  make({.kinds = {{"cpu", {27, 1, 3}}, {"gpu", {850, 0, 2}}}, .budget = 910});
  add("cpu", 0.1);
  add("gpu", 0.9);
  EXPECT_THAT(step(), HasSubstr("would cost 1727 micro-dollars per second, and the budget is 910; raise it"));
  pool_.failure = Status::unavailable("quota reached");
  workers_[0].utilisation = 0.9;
  workers_[1].utilisation = 0.1;
  EXPECT_EQ(step(), "workers of kind 'cpu': quota reached");
  pool_.failure = Status();
  EXPECT_EQ(step(), "");
  EXPECT_EQ(pool_.sizes["cpu"], 2u);
}

}  // namespace
}  // namespace foliot
