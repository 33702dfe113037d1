#include "cluster/sessions/task_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cluster/sessions/pipeline_registry.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTaskText = R"(
default_slo = "100ms"
[[variant]]
model = "small"
accuracy = 0.8
[[variant]]
model = "large"
accuracy = 0.95
)";

class TaskRegistryTest : public testing::Test {
 protected:
  TaskRegistryTest() {
    add_model("small", 1);
    add_model("large", 2);
  }
  void add_model(const std::string& name, uint32_t id, int64_t width = 4) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->name = name;
    model->buckets.resize(1);
    model->inputs = {{"x", DataType::kFloat32, {width}, {""}}};
    model->outputs = {{"y", DataType::kFloat32, {4}, {""}}};
    models_[name] = model;
  }
  static Tasks offered(const std::string& text, const std::string& accuracies = "") {
    return {{{{}, "digits", lines_of(text), lines_of(accuracies)}}};
  }
  static TaskRegistry::WorkerId worker(uint64_t id) { return TaskRegistry::WorkerId(id); }
  void offer(uint64_t id, const Tasks& offered) {
    if (joined_.insert(id).second) registry_.join(worker(id), "cpu", now_);
    registry_.offer(worker(id), offered);
  }
  TaskRegistry::Decisions decide() { return registry_.decide(models_, now_); }
  std::string lacking() const { return registry_.lacking().contains("digits") ? registry_.lacking().at("digits") : ""; }

  TimePoint now_ = at(1000);
  ModelsByName models_;
  TaskRegistry registry_;
  std::set<uint64_t> joined_;
};

TEST_F(TaskRegistryTest, ServesWhatAWorkerOffersWithTheVariantsThatAreServed) {
  offer(1, offered(kTaskText));
  const auto decisions = decide();
  ASSERT_EQ(decisions.added.size(), 1u);
  ASSERT_EQ(decisions.added[0]->variants.size(), 2u);
  EXPECT_EQ(decisions.added[0]->variants[1].model, models_.at("large"));
  EXPECT_EQ(decisions.added[0]->default_slo, ms(100));
  ASSERT_EQ(registry_.served().tasks.size(), 1u);
  EXPECT_EQ(registry_.served().tasks[0].id, decisions.added[0]->id);
  EXPECT_EQ(registry_.served().tasks[0].lines, lines_of(kTaskText));
  EXPECT_EQ(lacking(), "");
  EXPECT_FALSE(decide().news) << "nothing has changed";

  models_.erase("large");
  const auto fewer = decide();
  ASSERT_EQ(fewer.added.size(), 1u) << "it is another task, of the variant that is left";
  EXPECT_NE(fewer.added[0]->id, decisions.added[0]->id);
  EXPECT_EQ(fewer.added[0]->variants.size(), 1u);
  EXPECT_TRUE(registry_.serves("digits"));
  EXPECT_EQ(fewer.lacking.at("digits"), "variant 'large' is not served");

  models_.erase("small");
  EXPECT_TRUE(decide().news);
  EXPECT_THAT(registry_.served().tasks, IsEmpty());
  EXPECT_EQ(lacking(), "variant 'small' is not served; variant 'large' is not served");
}

TEST_F(TaskRegistryTest, ItIsCountedForAllOfItsVariantsAndThenLeaves) {
  offer(1, offered(kTaskText));
  const ServedTaskId first = decide().added.at(0)->id;
  const std::vector<ModelId>* models = registry_.on_request(first);
  ASSERT_NE(models, nullptr);
  EXPECT_THAT(*models, ElementsAre(ModelId(1), ModelId(2)));
  add_model("large", 3);
  ASSERT_EQ(decide().added.size(), 1u);
  now_ += ModelRegistry::kNotificationTime;
  EXPECT_THAT(registry_.take_retired(now_), IsEmpty()) << "a call is not over";
  EXPECT_TRUE(registry_.uses(ModelId(2)));
  registry_.on_answer(first);
  EXPECT_FALSE(registry_.uses(ModelId(2)));
  EXPECT_THAT(registry_.take_retired(now_), ElementsAre(first));
  EXPECT_EQ(registry_.on_request(first), nullptr);
}

TEST_F(TaskRegistryTest, ItStaysWithItsModelsWhenItsLastWorkerIsLost) {
  offer(1, offered(kTaskText));
  offer(2, offered(kTaskText));
  ASSERT_EQ(decide().added.size(), 1u);
  registry_.lose(worker(1), now_);
  registry_.lose(worker(2), now_);
  EXPECT_TRUE(registry_.changed(now_));
  EXPECT_FALSE(decide().news);
  EXPECT_FALSE(registry_.changed(now_));
  EXPECT_TRUE(registry_.serves("digits"));
  EXPECT_EQ(registry_.next(), TimePoint::infinite_future());
  models_.erase("large");
  ASSERT_EQ(decide().added.size(), 1u);
  EXPECT_EQ(lacking(), "variant 'large' is not served");
  models_.clear();
  EXPECT_TRUE(decide().news);
  EXPECT_FALSE(registry_.serves("digits"));
  EXPECT_EQ(lacking(), "") << "there is no such task any more";
}

TEST_F(TaskRegistryTest, AWorkerThatComesBackOffersItAgainOrItIsDropped) {
  offer(1, offered(kTaskText));
  const ServedTaskId first = decide().added.at(0)->id;
  registry_.lose(worker(1), now_);
  registry_.join(worker(2), "gpu", now_);
  now_ += TaskRegistry::kReturn;
  decide();
  EXPECT_TRUE(registry_.serves("digits")) << "it was offered by another kind of worker";

  registry_.join(worker(3), "cpu", now_);
  EXPECT_EQ(registry_.next(), now_ + TaskRegistry::kReturn);
  decide();
  EXPECT_TRUE(registry_.serves("digits"));
  offer(4, offered(kTaskText));
  EXPECT_FALSE(decide().news);
  EXPECT_EQ(registry_.served().tasks.at(0).id, first);
  EXPECT_EQ(registry_.next(), TimePoint::infinite_future());

  registry_.lose(worker(4), now_);
  decide();
  registry_.join(worker(5), "cpu", now_);
  now_ += TaskRegistry::kReturn - Duration::nanoseconds(1);
  EXPECT_FALSE(registry_.changed(now_));
  now_ += Duration::nanoseconds(1);
  EXPECT_TRUE(registry_.changed(now_));
  EXPECT_TRUE(decide().news);
  EXPECT_FALSE(registry_.serves("digits"));
  EXPECT_FALSE(registry_.changed(now_));
}

TEST_F(TaskRegistryTest, WhatOthersOfTheKindDoNotOfferIsDroppedWithTheWorkerThatDid) {
  offer(1, offered(kTaskText));
  offer(2, offered(kTaskText));
  ASSERT_EQ(decide().added.size(), 1u);
  offer(2, {});
  registry_.lose(worker(1), now_);
  decide();
  EXPECT_TRUE(registry_.serves("digits")) << "it may just not have offered it yet";
  EXPECT_EQ(registry_.next(), now_ + TaskRegistry::kReturn);
  now_ += TaskRegistry::kReturn;
  EXPECT_TRUE(decide().news);
  EXPECT_FALSE(registry_.serves("digits"));
}

TEST_F(TaskRegistryTest, WhatAWorkerOffersTakesThePlaceOfWhatALostOneOffered) {
  offer(1, offered(kTaskText));
  ASSERT_EQ(decide().added.size(), 1u);
  registry_.lose(worker(1), now_);
  offer(2, offered(std::string("accuracy = 0.5\n") + kTaskText));
  EXPECT_EQ(decide().added.size(), 1u);
  EXPECT_EQ(lacking(), "");
}

TEST_F(TaskRegistryTest, FilesThatSayTheSameMayDifferInComments) {
  offer(1, offered(kTaskText));
  offer(2, offered(std::string("accuracy = 0.5\n") + kTaskText));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("different files digits/task.toml"));
  EXPECT_FALSE(registry_.serves("digits"));
  offer(2, offered(std::string("# a comment\n") + kTaskText));
  EXPECT_EQ(decide().added.size(), 1u);
  EXPECT_EQ(lacking(), "");
}

TEST_F(TaskRegistryTest, WhatIsServedStaysWhileFilesChangeOneAfterTheOther) {
  const std::string changed = std::string("accuracy = 0.5\n") + kTaskText;
  offer(1, offered(kTaskText));
  offer(2, offered(kTaskText));
  decide();
  const ServedTaskId before = registry_.served().tasks.at(0).id;
  offer(1, offered(changed));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("different files digits/task.toml"));
  EXPECT_EQ(registry_.served().tasks.at(0).id, before);
  offer(2, offered("accuracy = 2\n"));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("digits/task.toml:1"));
  EXPECT_FALSE(registry_.serves("digits")) << "no worker offers it";
  offer(2, offered(kTaskText));
  EXPECT_FALSE((decide(), registry_.serves("digits"))) << "nor do they agree on another one";
  offer(2, offered(changed));
  EXPECT_EQ(decide().added.size(), 1u);
  EXPECT_EQ(lacking(), "");
  offer(2, offered("accuracy = 2\n"));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("digits/task.toml:1"));
  EXPECT_TRUE(registry_.serves("digits")) << "one worker with a broken file does not take it from the others";
  offer(2, {});
  offer(1, {});
  decide();
  EXPECT_FALSE(registry_.serves("digits"));
}

TEST_F(TaskRegistryTest, AccuraciesComeWithTheFile) {
  const std::string text = "accuracies = \"measured.toml\"\n[[variant]]\nmodel = \"small\"\n";
  offer(1, offered(text, "small = 0.7\n"));
  EXPECT_EQ(decide().added.at(0)->variants[0].accuracy, 0.7);
  offer(2, offered(text, "small = 0.6\n"));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("different files"));
  registry_.lose(worker(1), now_);
  EXPECT_EQ(decide().added.at(0)->variants[0].accuracy, 0.6);
  offer(2, offered(text));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("'measured.toml', which a worker could not read"));
  offer(2, offered(text, "small = 6\n"));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("digits/measured.toml:1"));
}

TEST_F(TaskRegistryTest, WhatCannotBeServedSaysWhy) {
  offer(1, offered("accuracy = 0.5\n"));
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("a task needs variants"));
  offer(1, offered(kTaskText));
  add_model("large", 2, 5);
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("variants must have equal inputs"));
  add_model("large", 2);
  add_model("digits", 4);
  EXPECT_THAT(decide().lacking.at("digits"), HasSubstr("a model has its name"));
  models_.erase("digits");
  registry_.decide(models_, now_, [](const std::string&) { return "a pipeline"; });
  EXPECT_THAT(lacking(), HasSubstr("a pipeline has its name"));
  EXPECT_EQ(decide().added.size(), 1u);
}

}  // namespace
}  // namespace foliot
