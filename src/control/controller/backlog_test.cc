#include "control/controller/backlog.h"

#include <gtest/gtest.h>

#include <memory>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

// Two models: LOAD takes 20 ms, EXEC of 1 and 4 rows 2 and 4 ms. A device holds the first.
class BacklogTest : public ::testing::Test {
 protected:
  BacklogTest() {
    cluster_.add_device(KindId(), 10);
    for (uint32_t id = 0; id < 2; ++id) {
      auto model = std::make_shared<ModelInfo>();
      model->id = ModelId(id);
      model->only().batch_sizes = {1, 4};
      model->only().seed_load = ms(20);
      model->buckets.resize(1);
      model->only().seed_exec = {{ms(2), ms(4)}};
      cluster_.add_model(model);
      backlog_.on_model_added(*model);
    }
    cluster_.copies = {1, 0};
  }
  // `wait`: until its deadline.
  static Request request(uint32_t model, Duration wait = Duration::seconds(1)) {
    return {.model = ModelId(model), .arrival = at(ms(0)), .deadline = at(wait)};
  }
  static TimePoint at(Duration after) { return TimePoint() + Duration::seconds(9) + after; }
  void exec(Duration exec, uint32_t batch_size) {
    backlog_.on_exec({.model = ModelId(0), .batch_size = batch_size, .rows = {}}, exec);
  }
  // So many a second of the first model, for five seconds before at(ms(0)).
  void arrive(int64_t rate) {
    for (int64_t i = -5 * rate; i <= 0; ++i) backlog_.on_arrival(request(0), at(Duration::seconds(1) * i / rate));
  }

  Cluster cluster_;
  Backlog backlog_{cluster_};
};

TEST_F(BacklogTest, ARowThatComesAloneRunsAlone) {
  EXPECT_EQ(backlog_.exec(request(0)), ms(2));
  for (int i = 0; i < 100; ++i) exec(ms(3), 1);
  EXPECT_NEAR(backlog_.exec(request(0)).to_milliseconds(), 3, 0.01);
}

TEST_F(BacklogTest, ARowTakesItsPartOfTheBatchThatFillsWhileItCouldWait) {
  arrive(200);
  EXPECT_EQ(backlog_.exec(request(0)), ms(1));
  EXPECT_NEAR(backlog_.exec(request(0, ms(14))).to_milliseconds(), 4 / 3.0, 0.05) << "two more come in 10 ms";
  EXPECT_EQ(backlog_.exec(request(0, ms(4))), ms(2)) << "one comes with every 5 ms";
  EXPECT_EQ(backlog_.exec(request(0, ms(3))), ms(2)) << "no time for a batch";
  Request patient = request(0);
  patient.deadline = TimePoint::infinite_future();
  EXPECT_EQ(backlog_.exec(patient), ms(1));
  for (int i = 0; i < 100; ++i) exec(ms(6), 4);
  EXPECT_NEAR(backlog_.exec(request(0)).to_milliseconds(), 1.5, 0.01);
}

TEST_F(BacklogTest, ARowTakesItsPartOfTheBatchOfWhatWaits) {
  EXPECT_EQ(backlog_.add(request(0)), ms(2));
  EXPECT_EQ(backlog_.add(request(0)), ms(2));
  EXPECT_NEAR(backlog_.add(request(0)).to_milliseconds(), 4 / 3.0, 0.001);
  EXPECT_EQ(backlog_.add(request(0)), ms(1));
  EXPECT_EQ(backlog_.add(request(0, ms(3))), ms(2));
}

// Batches that leave others waiting are what the policy makes of it.
TEST_F(BacklogTest, ARowTakesItsPartOfTheBatchesThatRanThoughOthersWaited) {
  arrive(1000);
  const auto send = [&](uint32_t batch_size) {
    Action action{.model = ModelId(0), .batch_size = batch_size, .rows = {}};
    for (uint32_t i = 0; i < batch_size; ++i) action.rows.add({});
    backlog_.on_sent(action);
  };
  send(1);
  EXPECT_EQ(backlog_.exec(request(0)), ms(1)) << "nothing was left";
  backlog_.add(request(0));
  for (int i = 0; i < 100; ++i) send(1);
  EXPECT_NEAR(backlog_.exec(request(0)).to_milliseconds(), 2, 0.01);
  for (int i = 0; i < 100; ++i) send(4);
  EXPECT_NEAR(backlog_.exec(request(0)).to_milliseconds(), 1, 0.01);
}

// The first model is asked for so often that its batches are full.
TEST_F(BacklogTest, WhatWaitsIsSharedByDevicesAndByThoseThatHoldTheModel) {
  arrive(1000);
  for (int i = 0; i < 12; ++i) backlog_.add(request(0));
  EXPECT_EQ(backlog_.before(ModelId(0), 4), ms(12));  // one device holds it
  EXPECT_EQ(backlog_.before(ModelId(1), 4), ms(3));
  cluster_.copies[0] = 2;
  EXPECT_EQ(backlog_.before(ModelId(0), 4), ms(6));
}

TEST_F(BacklogTest, AnAbsentModelIsLoadedOnce) {
  EXPECT_EQ(backlog_.cost(request(0)), ms(2));
  EXPECT_EQ(backlog_.cost(request(1)), ms(22));
  const Duration first = backlog_.add(request(1));
  EXPECT_EQ(first, ms(2));
  EXPECT_EQ(backlog_.cost(request(1)), ms(2));
  const Duration second = backlog_.add(request(1));
  EXPECT_EQ(backlog_.before(ModelId(0), 1), ms(20));
  cluster_.copies[1] = 1;
  backlog_.remove(request(1), first);
  EXPECT_EQ(backlog_.before(ModelId(0), 1), second);
  backlog_.remove(request(1), second);
  EXPECT_EQ(backlog_.before(ModelId(1), 1), Duration());
}

}  // namespace
}  // namespace foliot
