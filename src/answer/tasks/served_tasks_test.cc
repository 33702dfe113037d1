#include "answer/tasks/served_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "answer/tasks/task_interface.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Keeps what it was given until it is removed, as the controller does.
class FakeTaskSink final : public TaskSink {
 public:
  void add_task(std::shared_ptr<const TaskInfo> task) override {
    const ServedTaskId id = task->id;
    EXPECT_TRUE(tasks.emplace(id, std::move(task)).second);
  }
  void remove_task(ServedTaskId task) override { EXPECT_EQ(tasks.erase(task), 1u); }

  std::map<ServedTaskId, std::shared_ptr<const TaskInfo>> tasks;
};

ModelInfo classifier(std::string name, uint32_t batch_most = 8) {
  ModelInfo model{.name = std::move(name)};
  model.inputs = {{"image", DataType::kFloat32, {1, 28, 28}, {"", "", ""}}};
  model.outputs = {{"scores", DataType::kFloat32, {10}, {""}}};
  model.buckets = {Bucket()};
  model.runnables = {{.batch_sizes = {1, batch_most}}};
  return model;
}

TaskSpec digits() {
  TaskSpec spec;
  spec.name = "digits";
  spec.file = "digits/task.toml";
  spec.default_slo = Duration::milliseconds(100);
  spec.accuracy = 0.5;
  spec.variants = {{"int8", 0.9}, {"fp32", 0.98}};
  return spec;
}

class ServedTasksTest : public testing::Test {
 protected:
  ServedTasksTest() { served_ = std::make_unique<ServedTasks>(catalog_, sink_); }

  void put(ModelInfo model) {
    const std::string name = model.name;
    catalog_.put({name, model.version, ModelState::kReady, {}, std::make_shared<const ModelInfo>(std::move(model))});
  }
  CatalogEntry shown() const {
    const Catalog::EntryPtr entry = catalog_.find("digits");
    return entry == nullptr ? CatalogEntry() : *entry;
  }
  std::vector<ServedTaskId> registered() const {
    std::vector<ServedTaskId> ids;
    for (const auto& [id, task] : sink_.tasks) ids.push_back(id);
    return ids;
  }

  FakeTaskSink sink_;
  Catalog catalog_;
  std::unique_ptr<ServedTasks> served_;
};

TEST_F(ServedTasksTest, ATaskIsServedWithTheVariantsThatAreReady) {
  served_->serve({digits()});
  EXPECT_EQ(shown().role, EntryRole::kTask);
  EXPECT_EQ(shown().state, ModelState::kUnavailable);
  EXPECT_THAT(shown().reason, HasSubstr("variant 'int8' is not in the repository"));
  EXPECT_THAT(shown().models, ElementsAre("int8", "fp32"));
  EXPECT_THAT(registered(), IsEmpty());

  catalog_.put({"fp32", "1", ModelState::kLoading, {}, nullptr});
  EXPECT_EQ(shown().state, ModelState::kLoading);
  put(classifier("int8", 4));
  EXPECT_EQ(shown().state, ModelState::kReady);
  EXPECT_EQ(shown().reason, "variant 'fp32' is LOADING");
  EXPECT_THAT(registered(), ElementsAre(ServedTaskId(1)));

  put(classifier("fp32"));
  EXPECT_EQ(shown().reason, "");
  EXPECT_THAT(registered(), ElementsAre(ServedTaskId(2)));
  const ModelInfo info = *shown().info;
  EXPECT_EQ(info.task, sink_.tasks.at(ServedTaskId(2)));
  EXPECT_EQ(info.default_slo, Duration::milliseconds(100));
  EXPECT_EQ(info.batch_size_max(), 4u);
  ASSERT_EQ(info.task->variants.size(), 2u);
  EXPECT_EQ(info.task->variants[0].model->name, "int8");
  EXPECT_EQ(info.task->variants[1].accuracy, 0.98);

  catalog_.remove("int8");
  catalog_.remove("fp32");
  EXPECT_EQ(shown().state, ModelState::kUnavailable);
  EXPECT_THAT(registered(), IsEmpty());
}

TEST_F(ServedTasksTest, CallsUnderWayKeepTheOldTask) {
  served_->serve({digits()});
  put(classifier("int8"));
  std::shared_ptr<const ModelInfo> call = shown().info;
  put(classifier("fp32"));
  EXPECT_THAT(registered(), ElementsAre(ServedTaskId(1), ServedTaskId(2)));
  call.reset();
  EXPECT_THAT(registered(), ElementsAre(ServedTaskId(2)));
}

TEST_F(ServedTasksTest, VariantsHaveOneInterface) {
  served_->serve({digits()});
  put(classifier("int8"));
  ModelInfo other = classifier("fp32");
  other.inputs.front().type = DataType::kUint8;
  put(other);
  EXPECT_EQ(shown().state, ModelState::kUnavailable);
  EXPECT_THAT(shown().reason, HasSubstr("digits/task.toml: variant 'fp32' has input 'image' of UINT8, not FP32, as "
                                        "variant 'int8' has"));
  EXPECT_THAT(registered(), IsEmpty());
}

TEST_F(ServedTasksTest, AVariantIsAModel) {
  TaskSpec spec = digits();
  spec.variants = {{"pipe", 0.9}};
  catalog_.put({.name = "pipe",
                .version = "1",
                .state = ModelState::kReady,
                .reason = {},
                .info = std::make_shared<const ModelInfo>(classifier("pipe")),
                .role = EntryRole::kPipeline});
  served_->serve({spec});
  EXPECT_EQ(shown().reason, "variant 'pipe' is a pipeline, and not a model");
}

TEST_F(ServedTasksTest, ABrokenTaskIsShownWithItsReason) {
  TaskSpec spec = digits();
  spec.status = Status::invalid_argument("digits/task.toml:3: wrong");
  served_->serve({spec});
  put(classifier("int8"));
  EXPECT_EQ(shown().state, ModelState::kUnavailable);
  EXPECT_EQ(shown().reason, "digits/task.toml:3: wrong");
}

TEST(TaskInterfaceTest, NamesEveryDifference) {
  const ModelInfo wanted = classifier("a");
  const auto difference = [&](const auto& change) {
    ModelInfo model = classifier("b");
    change(model);
    return interface_difference(wanted, model);
  };
  EXPECT_EQ(difference([](ModelInfo&) {}), "");
  EXPECT_EQ(difference([](ModelInfo& m) { m.batching = false; }), "has no batch dimension");
  EXPECT_EQ(difference([](ModelInfo& m) { m.inputs.front().name = "x"; }), "has 'x' as input 1, not 'image'");
  EXPECT_EQ(difference([](ModelInfo& m) { m.outputs.clear(); }), "has 0 outputs, not 1");
  EXPECT_EQ(difference([](ModelInfo& m) { m.outputs.front().shape = {9}; }),
            "has output 'scores' of shape [9], not [10]");
  EXPECT_EQ(difference([](ModelInfo& m) { m.buckets.push_back(Bucket{{{"n", 3}}}); }), "has other buckets");
}

TEST_F(ServedTasksTest, AnotherDefinitionIsForNewCalls) {
  served_->serve({digits()});
  put(classifier("int8"));
  const auto call = shown().info;
  TaskSpec changed = digits();
  changed.variants[0].accuracy = 0.8;
  EXPECT_TRUE(served_->replace({changed}).empty());
  EXPECT_EQ(shown().info->task->variants[0].accuracy, 0.8);
  EXPECT_EQ(call->task->variants[0].accuracy, 0.9);
  EXPECT_THAT(registered(), ElementsAre(ServedTaskId(1), ServedTaskId(2)));
}

TEST_F(ServedTasksTest, ADefinitionThatCannotBeServedKeepsTheOneBefore) {
  served_->serve({digits()});
  put(classifier("int8"));
  TaskSpec broken = digits();
  broken.status = Status::invalid_argument("digits/task.toml:3: what");
  EXPECT_THAT(served_->replace({broken}), ElementsAre(HasSubstr("task.toml:3: what")));
  EXPECT_EQ(shown().state, ModelState::kReady);
  EXPECT_THAT(shown().reason, HasSubstr("not taken yet: digits/task.toml:3: what"));
  EXPECT_TRUE(served_->replace({digits()}).empty());
  EXPECT_THAT(shown().reason, testing::Not(HasSubstr("not taken")));
}

TEST_F(ServedTasksTest, TasksComeAndGo) {
  put(classifier("int8"));
  served_->serve({});
  EXPECT_TRUE(served_->replace({digits()}).empty());
  EXPECT_EQ(shown().state, ModelState::kReady);
  EXPECT_TRUE(served_->replace({}).empty());
  EXPECT_EQ(catalog_.find("digits"), nullptr);
  EXPECT_TRUE(registered().empty());
}

}  // namespace
}  // namespace foliot
