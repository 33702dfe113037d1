#include "control/policies/foliot/lane_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "control/policies/common/policy_stage.h"
#include "control/policies/foliot/foliot_policy.h"

namespace foliot::foliot_policy {
namespace {

PolicyStage one_device() {
  return PolicyStage([](const Cluster& cluster) { return make_foliot_policy(cluster); }, 1, 8);
}

// A device of four lanes.
class LaneChoiceTest : public ::testing::Test {
 protected:
  LaneChoiceTest() {
    stage_.set_lane_count(0, 4);
    for (ModelId& model : models_) model = stage_.add_model();
  }
  PolicyStage stage_ = one_device();
  std::array<ModelId, 5> models_;
};

TEST_F(LaneChoiceTest, WhatWaitsAloneTakesAllThatAreFree) {
  stage_.request(models_[0], 0, 100);
  const auto sent = stage_.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].lanes, (LaneInterval{0, 4}));
}

TEST_F(LaneChoiceTest, LanesAreSharedAmongWhatWaits) {
  for (int i = 0; i < 2; ++i) stage_.request(models_[i], 0, 100);
  const auto two = stage_.plan(0);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].lanes, (LaneInterval{0, 2}));
  EXPECT_EQ(two[1].lanes, (LaneInterval{2, 2}));
}

TEST_F(LaneChoiceTest, WhereAsManyWaitAsThereAreLanesEachTakesOne) {
  for (const ModelId model : models_) stage_.request(model, 0, 100);
  std::vector<Action> sent = stage_.plan(0);
  const std::vector<Action> more = stage_.plan(0.001);  // a turn looks at so many only
  sent.insert(sent.end(), more.begin(), more.end());
  ASSERT_EQ(sent.size(), 4u) << "the fifth waits";
  uint64_t taken = 0;
  for (const Action& action : sent) {
    EXPECT_EQ(action.lanes.count, 1u);
    EXPECT_EQ(taken & action.lanes.bits(), 0u);
    taken |= action.lanes.bits();
  }
}

// One row takes 2 ms on all lanes, and is expected to take 8 on one.
TEST_F(LaneChoiceTest, WhatWouldBeLateOnOneLaneTakesMore) {
  for (int i = 1; i < 5; ++i) stage_.request(models_[i], 0, 100);
  stage_.request(models_[0], 0, 9.5);
  const auto sent = stage_.plan(5);
  const auto urgent = std::ranges::find(sent, models_[0], &Action::model);
  ASSERT_NE(urgent, sent.end());
  EXPECT_GE(urgent->lanes.count, 2u);
}

// The same after a request has waited in vain: the others would be late for the lanes.
TEST_F(LaneChoiceTest, UnderOverloadWhatWouldBeLateOnOneLaneTakesNoMore) {
  stage_.request(models_[1], 0, 10);
  EXPECT_TRUE(stage_.plan(20).empty());
  for (int i = 1; i < 5; ++i) stage_.request(models_[i], 20, 120);
  stage_.request(models_[0], 20, 29.5);
  const auto sent = stage_.plan(25);
  ASSERT_FALSE(sent.empty());
  for (const Action& action : sent) EXPECT_EQ(action.lanes.count, 1u);
}

// As long on one lane as on all.
TEST_F(LaneChoiceTest, LanesThatGainNothingAreLeftToOthers) {
  stage_.request(models_[0], 0, 100);
  stage_.set_exec(models_[0], Duration::milliseconds(2), 0, 1);
  const auto sent = stage_.plan(0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].lanes, (LaneInterval{0, 1}));
}

// One row takes 2 ms on all lanes, and 4 on two, as is known once it has run there: two of
// them end sooner on average one after the other.
TEST_F(LaneChoiceTest, WhatEndsSoonerInTurnIsNotSharedOnceThatIsKnown) {
  const auto two_at = [&](double when) {
    for (int i = 0; i < 2; ++i) stage_.request(models_[i], when, when + 100);
    return stage_.plan(when);
  };
  for (const Action& tried : two_at(0)) {
    EXPECT_EQ(tried.lanes.count, 2u);
    stage_.finish(tried, 4, Duration::milliseconds(4));
  }
  const auto sent = two_at(3'600'000);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent[0].lanes, (LaneInterval{0, 4}));
}

// 2 ms on all lanes, 2.6 on two.
TEST_F(LaneChoiceTest, WhatWaitsAloneTakesFewerLanesWhereMoreWillCome) {
  stage_.set_exec(models_[0], Duration::microseconds(2600), 0, width_index(2, 4));
  const auto one_at = [&](double when) {
    stage_.request(models_[0], when, when + 100);
    const auto sent = stage_.plan(when);
    EXPECT_EQ(sent.size(), 1u);
    stage_.finish(sent.at(0), when + 2, Duration::milliseconds(2));
    return sent.at(0).lanes.count;
  };
  EXPECT_EQ(one_at(0), 4u);
  uint32_t width = 0;
  for (int i = 1; i < 2000; ++i) width = one_at(2.5 * i);
  EXPECT_EQ(width, 2u);
  EXPECT_EQ(one_at(3'600'000), 4u) << "long after";
}

// Microseconds of one row by the number of lanes, of 16.
const std::map<uint32_t, int64_t> kRowOnLanes{{1, 12800}, {2, 7040}, {4, 4160}, {8, 2720}, {16, 2000}};

// The lanes that a model comes to take that is asked for so often, with deadlines of 100 ms. Two rows and
// four take so many times as long as one.
uint32_t lanes_at(double requests_per_second, double two, double four) {
  PolicyStage stage = one_device();
  stage.set_lane_count(0, 16);
  const ModelId model = stage.add_model();
  for (const auto& [width, exec] : kRowOnLanes) {
    const Duration row = Duration::microseconds(exec);
    stage.set_exec(model, row, 0, width_index(width, 16));
    stage.set_exec(model, row.scaled(two), 1, width_index(width, 16));
    stage.set_exec(model, row.scaled(four), 2, width_index(width, 16));
  }
  uint32_t width = 0;
  for (int i = 1; i < 6000; ++i) {
    const double when = i * 1000 / requests_per_second;
    stage.request(model, when, when + 100);
    const auto sent = stage.plan(when);
    EXPECT_EQ(sent.size(), 1u);
    if (sent.empty()) return 0;
    width = sent[0].lanes.count;
    stage.finish(sent[0], when + 0.1, Duration::microseconds(kRowOnLanes.at(width)));
  }
  return width;
}

// 1,125 requests per second keep 16 lanes to nine tenths busy on one lane each; on two or more they
// are more than the device can do, though each would be over sooner.
TEST_F(LaneChoiceTest, LanesThatDoNotKeepUpAreNotTaken) { EXPECT_EQ(lanes_at(1125, 2, 4), 1u); }

// 1,800 are more than any width can do one by one. Batches of four keep all up but the widest.
TEST_F(LaneChoiceTest, LanesThatKeepUpWithBatchesThatGrowAreTaken) { EXPECT_EQ(lanes_at(1800, 1.2, 1.5), 4u); }

// Models of a device of 16 lanes, of which the heavy one takes twenty times as long as the light one.
class LightAndHeavy {
 public:
  LightAndHeavy() {
    stage_.set_lane_count(0, 16);
    light_ = stage_.add_model();
    heavy_ = stage_.add_model();
    for (const auto& [width, exec] : kMicroseconds) {
      stage_.set_exec(light_, Duration::microseconds(exec), 0, width_index(width, 16));
      stage_.set_exec(heavy_, Duration::microseconds(20 * exec), 0, width_index(width, 16));
    }
  }
  // One request on an idle device; the lanes that it takes.
  uint32_t run_light(double when) { return run(light_, 1, when); }
  uint32_t run_heavy(double when) { return run(heavy_, 20, when); }

 private:
  static inline const std::map<uint32_t, int64_t> kMicroseconds{{1, 6400}, {2, 3520}, {4, 2080}, {8, 1360}, {16, 1000}};

  uint32_t run(ModelId model, int64_t times, double when) {
    stage_.request(model, when, when + 1000);
    const auto sent = stage_.plan(when);
    EXPECT_EQ(sent.size(), 1u);
    const uint32_t width = sent.at(0).lanes.count;
    stage_.finish(sent[0], when + 0.1, Duration::microseconds(kMicroseconds.at(width) * times));
    return width;
  }

  PolicyStage stage_ = one_device();
  ModelId light_, heavy_;
};

// 500 requests per second that take 1 ms on all of 16 lanes each leave much of the device idle. One
// that takes twenty times as long is no reason to run it on one lane, as if all that come were like it.
TEST_F(LaneChoiceTest, AHeavyBatchAmongLightOnesTakesManyLanes) {
  LightAndHeavy models;
  for (int i = 1; i < 1000; ++i) models.run_light(2.0 * i);
  EXPECT_GE(models.run_heavy(2000), 8u);
}

// Half of the device's time is taken by batches of 20 ms on all lanes. One that takes 1 ms there lets others wait for
// that long only.
TEST_F(LaneChoiceTest, ALightBatchAmongHeavyOnesTakesManyLanes) {
  LightAndHeavy models;
  for (int i = 1; i < 1000; ++i) models.run_heavy(40.0 * i);
  EXPECT_GE(models.run_light(40'000), 8u);
}

}  // namespace
}  // namespace foliot::foliot_policy
