#include "control/fleet/scalers/task_scaler.h"

#include <gtest/gtest.h>

#include "control/fleet/scalers/greedy.h"

namespace foliot {
namespace {

// Models: 0 is "small" (10 ms: 25 rows per second by a share), 1 is "large" (40 ms: 6.25).
class TaskScalerTest : public testing::Test {
 protected:
  TaskScalerTest() {
    for (const auto& [name, exec_ms] : {std::pair{"small", 10}, {"large", 40}}) {
      auto model = std::make_shared<ModelInfo>();
      model->id = ModelId(static_cast<uint32_t>(models_.size()));
      model->name = name;
      models_.push_back(model);
      view_.models.push_back({.served = true,
                              .kinds = {{.kind = KindId(0),
                                         .batch_sizes = {1},
                                         .execs = {Duration::milliseconds(exec_ms)},
                                         .load = Duration::seconds(2)}}});
    }
    view_.kinds = {{.name = "cpu", .devices_up = 2}};
    scaler_.add(task(1, "photos", 0));
  }
  std::shared_ptr<const TaskInfo> task(uint32_t id, std::string name, double accuracy) const {
    auto made = std::make_shared<TaskInfo>();
    made->id = ServedTaskId(id);
    made->name = std::move(name);
    made->accuracy = accuracy;
    made->variants = {{models_[0], 0.7}, {models_[1], 0.9}};
    return made;
  }
  TaskScaler::Step step(double rate) {
    view_.models[0].rate = rate;
    return scaler_.step(view_, now_ += Duration::seconds(1));
  }
  static uint32_t copies(const TaskScaler::Step& step, uint32_t model) {
    return step.targets.of(ModelId(model)).copies_least;
  }

  std::vector<std::shared_ptr<const ModelInfo>> models_;
  ClusterView view_;
  GreedyMixedSolver solver_;
  TaskScaler scaler_{solver_, {.hourly_dollars = {{"cpu", 1}}}};
  TimePoint now_;
};

TEST_F(TaskScalerTest, CopiesFollowTheLoad) {
  EXPECT_EQ(copies(step(0), 0), 0u);
  EXPECT_EQ(copies(step(90), 0), 1u) << "four shares, 5 % of headroom included";
  const TaskScaler::Step more = step(130);
  EXPECT_EQ(copies(more, 0), 2u) << "six shares, of two devices";
  EXPECT_TRUE(more.troubles.empty());
  EXPECT_EQ(copies(more, 1), 0u) << "it costs more";
  EXPECT_FALSE(more.targets.of(ModelId(0)).constrains_copies() &&
               more.targets.of(ModelId(0)).copies_most != ModelTarget::kNoLimit);
}

TEST_F(TaskScalerTest, CopiesGoWhenTheLoadStaysAwayForAsLongAsALoad) {
  step(130);
  EXPECT_EQ(copies(step(10), 0), 2u);
  EXPECT_EQ(copies(step(10), 0), 2u);
  EXPECT_EQ(copies(step(10), 0), 1u);
}

TEST_F(TaskScalerTest, WhatDoesNotFitIsReported) {
  const TaskScaler::Step short_of = step(500);
  ASSERT_TRUE(short_of.troubles.contains("photos"));
  EXPECT_EQ(short_of.troubles.at("photos").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(copies(short_of, 0), 2u);
}

TEST_F(TaskScalerTest, KindsThatAreComparedWithoutAPriceAreNamed) {
  EXPECT_TRUE(step(10).unpriced.empty());
  view_.kinds.push_back({.name = "fast", .devices_up = 0});
  view_.models[1].kinds.push_back(
      {.kind = KindId(1), .batch_sizes = {1}, .execs = {Duration::milliseconds(5)}, .load = Duration::seconds(2)});
  EXPECT_TRUE(step(10).unpriced.empty()) << "no device of it is there";
  view_.kinds[1].devices_up = 1;
  EXPECT_EQ(step(10).unpriced.at("photos"), std::vector<std::string>{"fast"});
}

TEST_F(TaskScalerTest, AccuracyThatIsAskedForByDefaultCounts) {
  scaler_.remove(ServedTaskId(1));
  scaler_.add(task(2, "exact photos", 0.8));
  const TaskScaler::Step exact = step(10);
  EXPECT_EQ(copies(exact, 0), 0u);
  EXPECT_EQ(copies(exact, 1), 1u);
}

TEST_F(TaskScalerTest, TasksShareDevices) {
  scaler_.add(task(2, "exact photos", 0.8));
  const TaskScaler::Step both = step(20);
  EXPECT_EQ(copies(both, 0), 1u);
  EXPECT_EQ(copies(both, 1), 1u);
  view_.kinds.front().devices_up = 0;
  EXPECT_TRUE(step(20).troubles.contains("photos"));
}

TEST_F(TaskScalerTest, ATaskWithOtherVariantsKeepsWhatIsLoaded) {
  step(130);
  scaler_.add(task(2, "photos", 0));
  scaler_.remove(ServedTaskId(1));
  EXPECT_EQ(copies(step(130), 0), 2u);
}

}  // namespace
}  // namespace foliot
