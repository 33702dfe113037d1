#include "control/controller/wanted_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/controller/test_controller.h"

namespace foliot {
namespace {

class WantedTargetsTest : public ControllerTest {
 protected:
  WantedTargetsTest() { add("a", 2); }
  void add(const char* name, uint32_t id) {
    auto model = std::make_shared<ModelInfo>(*controller_->cluster().models[0]);
    model->id = ModelId(id);
    model->name = name;
    controller_->add_model(model, at(0));
  }
  void set_named(const NamedTargets& targets) {
    wanted_.set_named(std::make_shared<const NamedTargets>(targets));
    apply();
  }
  void apply() { wanted_.apply(*controller_, at(0)); }
  ModelTarget target(uint32_t model) { return controller_->cluster().target(ModelId(model)); }

  std::vector<std::string> lines_;
  WantedTargets wanted_{[this](const std::string& line) { lines_.push_back(line); }};
};

const ModelTarget kSingle{.batch_most = 1};
const ModelTarget kKept{.copies_least = 1};

TEST_F(WantedTargetsTest, NamedOnesHoldForLaterVersions) {
  set_named({{"a", kSingle}});
  add("a", 3);
  apply();
  EXPECT_EQ(target(2), kSingle);
  EXPECT_EQ(target(3), kSingle);
  set_named({});
  EXPECT_EQ(target(2), ModelTarget());
  EXPECT_EQ(target(3), ModelTarget());
}

TEST_F(WantedTargetsTest, AnOperatorsGoBeforeThoseOfAutoscalers) {
  set_named({{"a", kSingle}});
  wanted_.scale(Autoscaler::kPipelines, {{{ModelId(0), kKept}, {ModelId(2), kKept}, {ModelId(7), kKept}}});
  apply();
  EXPECT_EQ(target(0), kKept);
  EXPECT_EQ(target(2), kSingle);
  set_named({});
  EXPECT_EQ(target(2), kKept);
  EXPECT_THAT(lines_, testing::IsEmpty()) << "model 7 has left";
}

TEST_F(WantedTargetsTest, AModelThatLeftHasNoneWhenItsIdIsAnothers) {
  wanted_.scale(Autoscaler::kPipelines, {{{ModelId(2), kKept}}});
  wanted_.forget(ModelId(2));
  apply();
  EXPECT_EQ(target(2), ModelTarget());
}

TEST_F(WantedTargetsTest, WhatCannotBeSetIsReportedOnceAndTriedAgain) {
  set_named({{"a", {.kinds = {"tpu"}}}, {"b", kSingle}});
  apply();
  EXPECT_EQ(lines_, (std::vector<std::string>{"targets of model 'b': it is not served, so far",
                                              "targets of model 'a': kinds has 'tpu', and must be of cpu"}));
  EXPECT_EQ(target(2), ModelTarget());
  controller_->join_device(DeviceId(1), 4, {}, at(30), "tpu");
  add("b", 3);
  apply();
  EXPECT_EQ(target(2).kinds, std::vector<std::string>{"tpu"});
  EXPECT_EQ(target(3), kSingle);
  EXPECT_EQ(lines_.size(), 2u);
  set_named({{"c", kSingle}});
  set_named({{"c", kSingle}});
  EXPECT_EQ(lines_.size(), 4u) << "of another file it is reported anew";
}

TEST_F(WantedTargetsTest, WithoutModelsNothingIsReported) {
  Controller empty(
      {}, [](const Cluster&) { return std::make_unique<ScriptedPolicy>(); }, sink_, sink_);
  wanted_.set_named(std::make_shared<const NamedTargets>(NamedTargets{{"a", kSingle}}));
  wanted_.apply(empty, at(0));
  EXPECT_THAT(lines_, testing::IsEmpty());
}

TEST_F(WantedTargetsTest, UnusedTheyTakeNothingBack) {
  ASSERT_TRUE(controller_->set_targets({{{ModelId(0), kKept}}}, at(0)).ok());
  EXPECT_TRUE(wanted_.unused());
  apply();
  EXPECT_EQ(target(0), kKept);
  wanted_.scale(Autoscaler::kTasks, {});
  apply();
  EXPECT_EQ(target(0), ModelTarget());
}

}  // namespace
}  // namespace foliot
