#include "control/policies/foliot/blocking_cost.h"

#include <gtest/gtest.h>

#include "control/policies/common/test_dispatcher.h"

namespace foliot::foliot_policy {
namespace {

class BlockingCostTest : public ::testing::Test {
 protected:
  static TimePoint at(double ms) { return TimePoint() + Duration::from_milliseconds(ms); }
  static Duration ms(double value) { return Duration::from_milliseconds(value); }

  ModelId add(const std::vector<uint32_t>& holders) {
    const ModelInfo& model = dispatcher_.add_model(models_++, 1);
    board_.on_model_added(model);
    for (const uint32_t device : holders) {
      dispatcher_.load(DeviceId(device), model.id, {});
      dispatcher_.finish();
      board_.set_loaded(DeviceId(device), model.id, true);
    }
    return model.id;
  }
  // One request every `gap` ms, each with `slo` ms; for ten seconds, or from `begin` until `end` ms.
  void ask(ModelId model, double gap, double slo, double begin = 0, double end = 10'000) {
    for (double now = begin; now < end; now += gap) {
      board_.note_arrival({.model = model, .arrival = at(now), .deadline = at(now + slo)}, at(now));
    }
  }

  TestDispatcher dispatcher_{3, 8};
  Board board_{dispatcher_.cluster()};
  BlockingCost cost_{board_};
  uint32_t models_ = 0;
};

// EXEC of one takes 2 ms: with 6 ms what comes in the first 6 ms of 10 is lost.
TEST_F(BlockingCostTest, CountsWhatComesTooEarlyInALongExec) {
  const ModelId tight = add({0});
  ask(tight, 10, 6);
  EXPECT_EQ(cost_.lost(DeviceId(0), ms(3.9), ms(500), at(10'000)), 0);
  EXPECT_NEAR(cost_.lost(DeviceId(0), ms(10), ms(500), at(10'000)), 0.6, 0.1);
  EXPECT_NEAR(cost_.lost(DeviceId(0), ms(24), ms(500), at(10'000)), 2.0, 0.3);
}

TEST_F(BlockingCostTest, AddsUpTheModelsOfTheDevice) {
  ask(add({0}), 10, 6);
  ask(add({0}), 10, 8);
  EXPECT_NEAR(cost_.lost(DeviceId(0), ms(10), ms(500), at(10'000)), 0.6 + 0.4, 0.15);
  EXPECT_EQ(cost_.lost(DeviceId(1), ms(10), ms(500), at(10'000)), 0);
}

TEST_F(BlockingCostTest, WhatHasAsMuchTimeAsItselfCostsABatchNothing) {
  ask(add({0}), 10, 6);
  EXPECT_EQ(cost_.lost(DeviceId(0), ms(24), ms(5.9), at(10'000)), 0);
  EXPECT_GT(cost_.lost(DeviceId(0), ms(24), ms(6), at(10'000)), 0);
}

TEST_F(BlockingCostTest, LongDeadlinesCostNothing) {
  ask(add({0}), 10, 60);
  EXPECT_EQ(cost_.lost(DeviceId(0), ms(50), ms(500), at(10'000)), 0);
}

TEST_F(BlockingCostTest, WhatAnotherIdleDeviceHoldsCostsNothing) {
  const ModelId tight = add({0, 1});
  ask(tight, 10, 6);
  EXPECT_EQ(cost_.lost(DeviceId(0), ms(24), ms(500), at(10'000)), 0);
  const RequestId request(1);
  dispatcher_.now = at(10'000);
  dispatcher_.infer(DeviceId(1), tight, BucketId(0), 4, {}, std::span(&request, 1), {at(10'000), at(10'001)});
  EXPECT_GT(cost_.lost(DeviceId(0), ms(24), ms(500), at(10'000)), 0);
}

TEST_F(BlockingCostTest, EachLookCountsAModelOnce) {
  const ModelId alone = add({0});
  const ModelId shared = add({0, 1});
  for (const ModelId model : {alone, shared}) ask(model, 10, 6);
  const auto lost_while_the_other_is_busy = [&](double now) {
    const RequestId request(1);
    dispatcher_.now = at(now);
    dispatcher_.infer(DeviceId(1), shared, BucketId(0), 4, {}, std::span(&request, 1), {at(now), at(now + 1)});
    return cost_.lost(DeviceId(0), ms(24), ms(500), at(now));
  };
  const double first = lost_while_the_other_is_busy(10'000);
  EXPECT_GT(first, 2.5);
  for (double now = 10'000; now < 10'400; now += 100) {
    for (const ModelId model : {alone, shared}) ask(model, 10, 6, now, now + 100);
    EXPECT_NEAR(lost_while_the_other_is_busy(now + 100), first, first / 10);
  }
}

// The third device is idle, but holds only the other model.
TEST_F(BlockingCostTest, OfModelsHeldElsewhereTheOneHeldByTheFewestDecides) {
  const ModelId wide = add({0, 1, 2});
  const ModelId narrow = add({0, 1});
  for (const ModelId model : {wide, narrow, add({0, 1, 2})}) ask(model, 20, 6);
  EXPECT_EQ(cost_.lost(DeviceId(0), ms(24), ms(500), at(10'000)), 0);
  const RequestId request(1);
  dispatcher_.now = at(10'000);
  dispatcher_.infer(DeviceId(1), narrow, BucketId(0), 4, {}, std::span(&request, 1), {at(10'000), at(10'001)});
  EXPECT_GT(cost_.lost(DeviceId(0), ms(24), ms(500), at(10'000)), 0);
}

}  // namespace
}  // namespace foliot::foliot_policy
