#include "control/fleet/scalers/worker_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

// Worker a has devices 0 and 1, worker b device 2, of four lanes.
class WorkerLoadsTest : public testing::Test {
 protected:
  WorkerLoadsTest() {
    cluster_.add_device(cluster_.intern_kind("cpu"), 8);
    cluster_.add_device(cluster_.intern_kind("cpu"), 8);
    DeviceModel& of_four_lanes = cluster_.add_device(cluster_.intern_kind("gpu"), 0);
    of_four_lanes.lose();
    of_four_lanes.join(8, 4, {}, 0, at(0));
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(0);
    model->buckets.resize(1);
    model->runnables = {{.kind = "cpu", .batch_sizes = {1, 2}, .seed_exec = {{ms(20), ms(30)}}},
                        {.kind = "gpu", .batch_sizes = {1, 2}, .seed_exec = {{ms(20), ms(30)}}}};
    cluster_.add_model(model);
    for (const uint32_t device : {0U, 1U, 2U}) join(device);
  }
  void join(uint32_t device) { loads_.on_device({.device = DeviceId(device), .joined = true}, at(0)); }
  void exec(uint32_t device, Duration took, int64_t when, OutcomeStatus status = OutcomeStatus::kDone) {
    const Action action{.type = ActionType::kInfer, .device = DeviceId(device), .batch_size = 2};
    loads_.on_outcome(action, {.status = status, .duration = took}, at(when));
  }
  const WorkerView& of(const std::string& worker) const {
    return *std::ranges::find(views_, worker, &WorkerView::name);
  }

  std::map<uint32_t, std::string> workers_ = {{0, "a"}, {1, "a"}, {2, "b"}};
  std::vector<WorkerView> views_;
  int times_ = 0;
  Cluster cluster_;
  WorkerLoads loads_{cluster_, [this](DeviceId device) { return workers_.at(device.value()); },
                     [this](const std::vector<WorkerView>& views) {
                       views_ = views;
                       ++times_;
                     },
                     at(0)};
};

TEST_F(WorkerLoadsTest, SaysWhoIsThere) {
  EXPECT_THAT(views_, ElementsAre(Field(&WorkerView::name, "a"), Field(&WorkerView::name, "b")));
  EXPECT_EQ(of("a").kind, "cpu");
  EXPECT_EQ(of("b").kind, "gpu");
  EXPECT_TRUE(of("a").may_leave);
  EXPECT_EQ(of("a").devices, 2u);
  EXPECT_EQ(of("b").devices, 1u);
  loads_.on_device({.device = DeviceId(2), .state = DeviceState::kSuspected}, at(1));
  EXPECT_EQ(views_.size(), 2u);
  loads_.on_device({.device = DeviceId(2), .state = DeviceState::kDraining}, at(1));
  EXPECT_EQ(views_.size(), 2u) << "it has not left";
  loads_.on_device({.device = DeviceId(2), .state = DeviceState::kLost}, at(2));
  EXPECT_THAT(views_, ElementsAre(Field(&WorkerView::name, "a")));
  loads_.on_device({.device = DeviceId(0), .state = DeviceState::kLost}, at(2));
  EXPECT_EQ(views_.size(), 1u) << "it has another device";
  loads_.on_device({.device = DeviceId(1), .state = DeviceState::kLost}, at(2));
  EXPECT_THAT(views_, IsEmpty());
}

TEST_F(WorkerLoadsTest, AWorkerIsAsBusyAsItsBusiestDevice) {
  exec(0, ms(500), 600);
  exec(1, ms(1000), 1100);
  exec(1, ms(200), 1200, OutcomeStatus::kFailed);
  exec(2, ms(1000), 1500);  // one lane of four
  loads_.on_time(at(1999));
  EXPECT_EQ(of("a").utilisation, 0);
  loads_.on_time(at(2000));
  EXPECT_DOUBLE_EQ(of("a").utilisation, 0.5);
  EXPECT_DOUBLE_EQ(of("b").utilisation, 0.125);
  loads_.on_request({}, at(4000));
  EXPECT_EQ(of("a").utilisation, 0) << "of the last two seconds alone";
}

TEST_F(WorkerLoadsTest, OverloadedIsLeftAtALowerBoundThanItIsEnteredAt) {
  const auto busy = [&](int64_t milliseconds, int64_t until) {
    exec(0, ms(milliseconds), until - 1);
    loads_.on_time(at(until));
    return of("a").overloaded;
  };
  EXPECT_FALSE(busy(1880, 2000));
  EXPECT_TRUE(busy(1920, 4000));
  EXPECT_TRUE(busy(1720, 6000));
  EXPECT_FALSE(busy(1680, 8000));
}

TEST_F(WorkerLoadsTest, InterferedIsWhereExecsTakeLongerThanProfiled) {
  const auto slow = [&](Duration took, int64_t until) {
    exec(0, took, until - 1);
    loads_.on_time(at(until));
    return of("a").interfered;
  };
  EXPECT_FALSE(slow(ms(35), 2000));
  EXPECT_TRUE(slow(ms(37), 4000));
  EXPECT_TRUE(slow(ms(34), 6000));
  EXPECT_FALSE(slow(ms(32), 8000));
  EXPECT_FALSE(slow(ms(1950), 10000)) << "overloaded instead";
  exec(2, ms(90), 11000);
  loads_.on_time(at(12000));
  EXPECT_FALSE(of("b").interfered) << "beside others";
}

// Nothing happened in between, until the other worker left.
TEST_F(WorkerLoadsTest, WhatWasBusyLongAgoIsNot) {
  exec(0, ms(2000), 1000);
  loads_.on_time(at(2000));
  EXPECT_EQ(of("a").utilisation, 1);
  loads_.on_device({.device = DeviceId(2), .state = DeviceState::kLost}, at(60'000));
  EXPECT_EQ(of("a").utilisation, 0);
  EXPECT_FALSE(of("a").overloaded);
}

TEST_F(WorkerLoadsTest, OneThatComesAgainHasNoPast) {
  exec(2, ms(8000), 1000);
  loads_.on_time(at(2000));
  EXPECT_TRUE(of("b").overloaded);
  join(2);
  EXPECT_FALSE(of("b").overloaded);
  EXPECT_EQ(of("b").utilisation, 0);
}

}  // namespace
}  // namespace foliot
