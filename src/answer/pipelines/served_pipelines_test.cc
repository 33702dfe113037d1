#include "answer/pipelines/served_pipelines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "answer/pipelines/test_models.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Keeps what it was given until it is removed, as the controller does.
class FakeSink final : public PipelineSink {
 public:
  void add_pipeline(std::shared_ptr<const PipelineInfo> pipeline) override {
    const PipelineId id = pipeline->id;
    EXPECT_TRUE(pipelines.emplace(id, std::move(pipeline)).second);
  }
  void remove_pipeline(PipelineId pipeline) override { EXPECT_EQ(pipelines.erase(pipeline), 1u); }

  std::map<PipelineId, std::shared_ptr<const PipelineInfo>> pipelines;
};

class ServedPipelinesTest : public testing::Test {
 protected:
  ServedPipelinesTest() { served_ = std::make_unique<ServedPipelines>(catalog_, sink_); }

  void put(ModelInfo model) {
    const std::string name = model.name;
    catalog_.put({name, model.version, ModelState::kReady, {}, std::make_shared<const ModelInfo>(std::move(model))});
  }
  void put(const std::string& name, ModelState state, std::string reason = {}, bool wanted = true) {
    catalog_.put({name, "1", state, std::move(reason), nullptr, wanted});
  }
  void put_all() {
    put(test_decode("animals.decode"));
    put(test_classifier("mobilenet"));
    put(test_classifier("resnet"));
  }
  CatalogEntry shown(const std::string& name = "animals") const {
    const Catalog::EntryPtr entry = catalog_.find(name);
    return entry == nullptr ? CatalogEntry() : *entry;
  }
  std::vector<PipelineId> registered() const {
    std::vector<PipelineId> ids;
    for (const auto& [id, pipeline] : sink_.pipelines) ids.push_back(id);
    return ids;
  }

  FakeSink sink_;
  Catalog catalog_;
  std::unique_ptr<ServedPipelines> served_;
};

TEST_F(ServedPipelinesTest, APipelineIsServedWhileItsModelsAre) {
  served_->serve({test_cascade()});
  EXPECT_EQ(shown().role, EntryRole::kPipeline);
  EXPECT_EQ(shown().state, ModelState::kUnavailable);
  EXPECT_THAT(shown().reason, HasSubstr("stage 'cheap' needs model 'mobilenet', which is not in the repository"));
  EXPECT_THAT(shown().models, ElementsAre("animals.decode", "mobilenet", "resnet"));

  put(test_decode("animals.decode"));
  put(test_classifier("mobilenet"));
  put("resnet", ModelState::kLoading);
  EXPECT_EQ(shown().state, ModelState::kLoading);
  EXPECT_EQ(shown().reason, "stage 'fine' needs model 'resnet', which is LOADING");
  EXPECT_THAT(registered(), IsEmpty());

  put(test_classifier("resnet"));
  EXPECT_EQ(shown().state, ModelState::kReady);
  EXPECT_EQ(shown().reason, "");
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1)));
  EXPECT_EQ(shown().info->pipeline, sink_.pipelines.at(PipelineId(1)));

  put("resnet", ModelState::kUnavailable, "no room", false);
  EXPECT_EQ(shown().state, ModelState::kUnavailable);
  EXPECT_EQ(shown().reason, "stage 'fine' needs model 'resnet', which is UNAVAILABLE: no room");
  EXPECT_FALSE(shown().wanted) << "a client unloaded what it needs";
  EXPECT_EQ(shown().info, nullptr);
  EXPECT_THAT(registered(), IsEmpty());

  put(test_classifier("resnet"));
  EXPECT_THAT(registered(), ElementsAre(PipelineId(2)));
  EXPECT_TRUE(shown().wanted);
  catalog_.remove("resnet");
  EXPECT_THAT(shown().reason, HasSubstr("'resnet', which is not in the repository"));
}

TEST_F(ServedPipelinesTest, ModelsThatAreThereAtTheStartCount) {
  put_all();
  served_->serve({test_cascade()});
  EXPECT_EQ(shown().state, ModelState::kReady);
}

TEST_F(ServedPipelinesTest, AnUpdateServesCallsThatAreUnderWayWithTheOldModel) {
  put_all();
  served_->serve({test_cascade()});
  std::shared_ptr<const ModelInfo> call = shown().info;
  const std::weak_ptr<const ModelInfo> old_model = catalog_.find("resnet")->info;
  ModelInfo next = test_classifier("resnet");
  next.version = "2";
  put(next);
  EXPECT_EQ(shown().info->pipeline->stages[2].model->version, "2");
  EXPECT_EQ(call->pipeline->stages[2].model, old_model.lock());
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1), PipelineId(2)));
  call.reset();
  EXPECT_THAT(registered(), ElementsAre(PipelineId(2)));
  EXPECT_TRUE(old_model.expired()) << "so that it may leave";
}

TEST_F(ServedPipelinesTest, WhatChangesNothingMakesNoOtherPipeline) {
  put_all();
  served_->serve({test_cascade()});
  CatalogEntry entry = *catalog_.find("resnet");
  entry.reason = "version 2 was not taken into service";
  catalog_.put(entry);
  put(test_classifier("another"));
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1)));
  EXPECT_EQ(shown().state, ModelState::kReady);
}

TEST_F(ServedPipelinesTest, ModelsThatDoNotFitMakeItUnavailable) {
  put_all();
  served_->serve({test_cascade()});
  ModelInfo other = test_classifier("resnet");
  other.inputs[0].shape = {3, 192, 192};
  put(other);
  EXPECT_EQ(shown().state, ModelState::kUnavailable);
  EXPECT_THAT(shown().reason, HasSubstr("animals/pipeline.toml:30: stage 'fine': input 'image' of model 'resnet'"));
  EXPECT_THAT(registered(), IsEmpty());
}

TEST_F(ServedPipelinesTest, BrokenFilesAreShown) {
  PipelineSpec broken = test_cascade("broken");
  broken.status = Status::invalid_argument("broken/pipeline.toml:3: no");
  PipelineSpec nested = test_cascade("nested");
  nested.stages[1].model = "animals";
  put_all();
  put(test_decode("nested.decode"));
  served_->serve({test_cascade(), broken, nested});
  EXPECT_EQ(shown("broken").state, ModelState::kUnavailable);
  EXPECT_EQ(shown("broken").reason, "broken/pipeline.toml:3: no");
  EXPECT_EQ(shown("nested").reason,
            "nested/pipeline.toml:20: stage 'cheap' has 'animals', a pipeline; stages have models");
  EXPECT_EQ(shown().state, ModelState::kReady);
}

TEST_F(ServedPipelinesTest, AModelOfTheSameNameTakesItsPlace) {
  put_all();
  served_->serve({test_cascade()});
  put(test_classifier("animals"));
  EXPECT_EQ(shown().role, EntryRole::kModel);
  EXPECT_THAT(registered(), IsEmpty());
  put(test_classifier("resnet"));
  EXPECT_EQ(shown().role, EntryRole::kModel);
  catalog_.remove("animals");
  EXPECT_EQ(shown().role, EntryRole::kPipeline);
  EXPECT_EQ(shown().state, ModelState::kReady);
}

TEST_F(ServedPipelinesTest, AnApplicationIsNoModelOfAStage) {
  put_all();
  CatalogEntry application = *catalog_.find("resnet");
  application.role = EntryRole::kApplication;
  catalog_.put(application);
  served_->serve({test_cascade()});
  EXPECT_EQ(shown().reason, "stage 'fine' needs model 'resnet', which is an application");
}

TEST_F(ServedPipelinesTest, CallsMayOutliveIt) {
  put_all();
  served_->serve({test_cascade()});
  const std::shared_ptr<const ModelInfo> call = shown().info;
  served_.reset();
  put("resnet", ModelState::kUnavailable);
  EXPECT_EQ(shown().state, ModelState::kReady) << "nothing watches any more";
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1)));
}

TEST_F(ServedPipelinesTest, ThePipelinesOfOneModelChangeTogether) {
  PipelineSpec again = test_cascade("again");
  again.stages[2].model = "mobilenet";
  put_all();
  put(test_decode("again.decode"));
  served_->serve({test_cascade(), again});
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1), PipelineId(2)));
  EXPECT_THAT(shown("again").models, ElementsAre("again.decode", "mobilenet"));
  put("mobilenet", ModelState::kLoading);
  EXPECT_EQ(shown().state, ModelState::kLoading);
  EXPECT_EQ(shown("again").state, ModelState::kLoading);
  EXPECT_THAT(registered(), IsEmpty());
}

PipelineSpec other_definition(double limit) {
  PipelineSpec spec = test_cascade();
  spec.content = fmt::format("with {}", limit);
  for (StageSpec& stage : spec.stages) {
    for (StageSpec::When& when : stage.when) when.condition.limit = limit;
  }
  return spec;
}

TEST_F(ServedPipelinesTest, AnotherDefinitionIsForNewCalls) {
  put_all();
  served_->serve({test_cascade()});
  const auto call = shown().info;
  EXPECT_THAT(served_->replace({other_definition(0.5)}), IsEmpty());
  EXPECT_EQ(shown().state, ModelState::kReady);
  EXPECT_EQ(shown().info->pipeline->stages[1].conditions[0].limit, 0.5);
  EXPECT_EQ(call->pipeline->stages[1].conditions[0].limit, 0.8);
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1), PipelineId(2))) << "the old one has a call";
  EXPECT_THAT(served_->replace({other_definition(0.5)}), IsEmpty());
  EXPECT_EQ(registered().size(), 2u) << "nothing has changed";
}

TEST_F(ServedPipelinesTest, ADefinitionThatCannotBeServedKeepsTheOneBefore) {
  put_all();
  served_->serve({test_cascade()});
  PipelineSpec broken = test_cascade();
  broken.content.clear();
  broken.status = Status::invalid_argument("animals/pipeline.toml:3: what");
  EXPECT_THAT(served_->replace({broken}), ElementsAre(HasSubstr("pipeline.toml:3: what")));
  EXPECT_EQ(shown().state, ModelState::kReady);
  EXPECT_THAT(shown().reason, HasSubstr("not taken yet: animals/pipeline.toml:3: what"));
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1)));

  PipelineSpec waiting = other_definition(0.5);
  waiting.stages[2].model = "another";
  EXPECT_THAT(served_->replace({waiting}), ElementsAre(HasSubstr("'another', which is not in the repository")));
  EXPECT_THAT(registered(), ElementsAre(PipelineId(1)));
  put(test_classifier("another"));
  EXPECT_EQ(shown().reason, "") << "it can be served now";
  EXPECT_EQ(shown().info->pipeline->stages[2].model->name, "another");
  EXPECT_THAT(registered(), ElementsAre(PipelineId(2)));
}

TEST_F(ServedPipelinesTest, PipelinesComeAndGo) {
  put_all();
  served_->serve({});
  EXPECT_THAT(served_->replace({test_cascade()}), IsEmpty());
  EXPECT_EQ(shown().state, ModelState::kReady);
  EXPECT_THAT(served_->replace({}), IsEmpty());
  EXPECT_EQ(catalog_.find("animals"), nullptr);
  EXPECT_THAT(registered(), IsEmpty());
  put(test_classifier("resnet"));
  EXPECT_EQ(catalog_.find("animals"), nullptr);
}

}  // namespace
}  // namespace foliot
