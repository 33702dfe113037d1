#include "controller/backlog.h"

#include <gtest/gtest.h>

#include <memory>

namespace foliot {
namespace {

Duration ms(int64_t n) { return Duration::milliseconds(n); }

// Two models: LOAD takes 20 ms, EXEC of 1 and 4 rows 2 and 4 ms. A device holds the first.
class BacklogTest : public ::testing::Test {
 protected:
  BacklogTest() {
    cluster_.copies = {1, 0};
    for (uint32_t id = 0; id < 2; ++id) {
      auto model = std::make_shared<ModelInfo>();
      model->id = ModelId(id);
      model->batch_sizes = {1, 4};
      model->seed_load = ms(20);
      model->buckets = {{.dimensions = {}, .seed_exec = {ms(2), ms(4)}}};
      cluster_.models.push_back(model);
      backlog_.on_model_added(*model);
    }
  }
  static Request request(uint32_t model) { return {.model = ModelId(model)}; }
  void exec(Duration exec, uint32_t rows) {
    Action action{.model = ModelId(0)};
    for (uint32_t i = 0; i < rows; ++i) action.rows.add({});
    backlog_.on_exec(action, exec);
  }

  Cluster cluster_;
  Backlog backlog_{cluster_};
};

TEST_F(BacklogTest, ARowTakesItsPartOfABatch) {
  EXPECT_EQ(backlog_.exec(ModelId(0), BucketId(0)), ms(1));
  for (int i = 0; i < 100; ++i) exec(ms(6), 2);
  EXPECT_NEAR(backlog_.exec(ModelId(0), BucketId(0)).to_milliseconds(), 3, 0.01);
}

TEST_F(BacklogTest, WhatWaitsIsSharedByDevicesAndByThoseThatHoldTheModel) {
  for (int i = 0; i < 12; ++i) backlog_.add(request(0));
  EXPECT_EQ(backlog_.before(ModelId(0), 4), ms(12));  // one device holds it
  EXPECT_EQ(backlog_.before(ModelId(1), 4), ms(3));
  cluster_.copies[0] = 2;
  EXPECT_EQ(backlog_.before(ModelId(0), 4), ms(6));
}

TEST_F(BacklogTest, AnAbsentModelIsLoadedOnce) {
  EXPECT_EQ(backlog_.cost(request(0)), ms(1));
  EXPECT_EQ(backlog_.cost(request(1)), ms(21));
  backlog_.add(request(1));
  EXPECT_EQ(backlog_.cost(request(1)), ms(1));
  backlog_.add(request(1));
  EXPECT_EQ(backlog_.before(ModelId(0), 1), ms(20));
  cluster_.copies[1] = 1;
  backlog_.remove(ModelId(1), ms(1));
  EXPECT_EQ(backlog_.before(ModelId(0), 1), ms(1));
  backlog_.remove(ModelId(1), ms(1));
  EXPECT_EQ(backlog_.before(ModelId(1), 1), Duration());
}

}  // namespace
}  // namespace foliot
