#include "cluster/sessions/pipeline_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kText = R"(
[[stage]]
name = "one"
model = "a"
inputs = { x = "x" }
[[stage]]
name = "two"
model = "b"
inputs = { x = "one.y" }
[[output]]
name = "y"
from = "two.y"
)";

class PipelineRegistryTest : public testing::Test {
 protected:
  PipelineRegistryTest() {
    add_model("a", 1);
    add_model("b", 2);
  }
  void add_model(const std::string& name, uint32_t id) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->name = name;
    model->version = "1";
    model->buckets.resize(1);
    model->only().batch_sizes = {1, 2};
    model->inputs = {{"x", DataType::kFloat32, {4}, {""}}};
    model->outputs = {{"y", DataType::kFloat32, {4}, {""}}};
    models_[name] = model;
  }
  static Pipelines offered(const std::string& text) { return {{{{}, "p", lines_of(text)}}}; }
  static PipelineRegistry::WorkerId worker(uint64_t id) { return PipelineRegistry::WorkerId(id); }
  void offer(uint64_t id, const Pipelines& offered) {
    if (joined_.insert(id).second) registry_.join(worker(id), "cpu", now_);
    registry_.offer(worker(id), offered);
  }
  PipelineRegistry::Decisions decide() { return registry_.decide(models_, now_); }
  std::string reason() const { return registry_.lacking().contains("p") ? registry_.lacking().at("p") : ""; }

  TimePoint now_ = at(1000);
  ModelsByName models_;
  PipelineRegistry registry_;
  std::set<uint64_t> joined_;
};

TEST_F(PipelineRegistryTest, LinesAreTheTextAgain) {
  EXPECT_THAT(lines_of("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST_F(PipelineRegistryTest, ServesWhatAWorkerOffersWhileItsModelsAreServed) {
  offer(1, offered(kText));
  EXPECT_TRUE(registry_.changed(now_));
  const auto decisions = decide();
  ASSERT_EQ(decisions.added.size(), 1u);
  EXPECT_TRUE(decisions.news);
  EXPECT_EQ(decisions.added[0]->stages[1].model, models_.at("b"));
  ASSERT_EQ(registry_.served().pipelines.size(), 1u);
  EXPECT_EQ(registry_.served().pipelines[0].id, decisions.added[0]->id);
  EXPECT_FALSE(decide().news) << "nothing has changed";

  models_.erase("b");
  EXPECT_TRUE(decide().news);
  EXPECT_THAT(registry_.served().pipelines, IsEmpty());
  EXPECT_THAT(reason(), HasSubstr("stage 'two' needs model 'b'"));
}

TEST_F(PipelineRegistryTest, ItIsAnotherOneWithAnotherVersionOfAModel) {
  offer(1, offered(kText));
  const PipelineId first = decide().added.at(0)->id;
  add_model("b", 3);
  const auto decisions = decide();
  ASSERT_EQ(decisions.added.size(), 1u);
  EXPECT_NE(decisions.added[0]->id, first);
  EXPECT_EQ(decisions.added[0]->stages[1].model->id, ModelId(3));
}

TEST_F(PipelineRegistryTest, ItStaysWithItsModelsWhenItsLastWorkerIsLost) {
  offer(1, offered(kText));
  ASSERT_EQ(decide().added.size(), 1u);
  registry_.lose(worker(1), now_);
  EXPECT_FALSE(decide().news);
  EXPECT_TRUE(registry_.serves("p"));
  models_.erase("b");
  EXPECT_TRUE(decide().news) << "a stage has no model";
  EXPECT_FALSE(registry_.serves("p"));
}

TEST_F(PipelineRegistryTest, ItRunsForThoseThatAskedForItAndThenLeaves) {
  offer(1, offered(kText));
  const PipelineId first = decide().added.at(0)->id;
  ASSERT_NE(registry_.on_request(first), nullptr);
  offer(1, {});
  decide();
  now_ += ModelRegistry::kNotificationTime;
  EXPECT_THAT(registry_.take_retired(now_), IsEmpty()) << "a run is not over";
  EXPECT_TRUE(registry_.uses(ModelId(2)));
  registry_.on_answer(first);
  EXPECT_FALSE(registry_.uses(ModelId(2)));
  EXPECT_EQ(registry_.next(), now_);
  EXPECT_THAT(registry_.take_retired(now_), ElementsAre(first));
  EXPECT_EQ(registry_.on_request(first), nullptr);
}

TEST_F(PipelineRegistryTest, FilesThatDifferAreAnErrorUntilTheyDoNot) {
  offer(1, offered(kText));
  offer(2, offered(std::string("default_slo = \"1s\"\n") + kText));
  EXPECT_THAT(decide().lacking.at("p"), HasSubstr("different files p/pipeline.toml"));
  EXPECT_THAT(decide().lacking, IsEmpty()) << "the reason is known";
  offer(2, offered(std::string("# a comment\n") + kText));
  EXPECT_EQ(decide().added.size(), 1u);
  EXPECT_EQ(reason(), "");
}

TEST_F(PipelineRegistryTest, WhatCannotBeServedSaysWhy) {
  offer(1, offered("[[stage]]\nname = \"one\"\n"));
  EXPECT_THAT(decide().lacking.at("p"), HasSubstr("p/pipeline.toml:1"));
  auto narrow = std::make_shared<ModelInfo>(*models_.at("b"));
  narrow->inputs[0].shape = {5};
  models_["b"] = narrow;
  offer(1, offered(kText));
  EXPECT_THAT(decide().lacking.at("p"), HasSubstr("two"));
  add_model("b", 2);
  add_model("p", 4);
  EXPECT_THAT(decide().lacking.at("p"), HasSubstr("a model has its name"));
}

}  // namespace
}  // namespace foliot
