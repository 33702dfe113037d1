// Publications on a real disk; nothing is compiled.
#include "node/repository/repository_variants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "answer/tasks/task_file.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RepositoryVariantsTest : public testing::Test {
 protected:
  RepositoryVariantsTest() { fs::create_directories(repository_); }
  ~RepositoryVariantsTest() override { fs::remove_all(repository_); }

  static ModelInfo scorer(std::string name, int64_t classes = 10) {
    ModelInfo model{.name = std::move(name)};
    model.inputs = {{"x", DataType::kFloat32, {64}, {""}}};
    model.outputs = {{"scores", DataType::kFloat32, {classes}, {""}}};
    model.buckets = {Bucket()};
    model.runnables = {{.batch_sizes = {1, 8}}};
    return model;
  }
  void serve(ModelInfo model) {
    const std::string name = model.name;
    catalog_.put({name, model.version, ModelState::kReady, {}, std::make_shared<const ModelInfo>(std::move(model))});
  }
  static TaskAddition addition() {
    return {.task = "digits",
            .variants = {{"net-float32", 0.98}, {"net-int8", 0.97}},
            .accuracy = 0.5,
            .default_slo = "100ms",
            .remark = "net: measured"};
  }
  // A draft with these variants, which are served from it.
  fs::path draft_of(const TaskAddition& added, const std::string& id = "a") {
    const fs::path draft = variants_.drafts() / id;
    for (const MeasuredVariant& variant : added.variants) {
      fs::create_directories(draft / variant.model);
      std::ofstream(draft / variant.model / "model.onnx") << variant.model;
      std::ofstream(draft / variant.model / "model.toml") << "batch_sizes = [1, 8]\n";
      if (catalog_.find(variant.model) == nullptr) serve(scorer(variant.model));
    }
    return draft;
  }
  TaskSpec task() const { return read_task("digits", repository_ / "digits" / "task.toml"); }
  std::string text_of(const fs::path& file) const {
    std::ifstream in(repository_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void expect_unpublished() {
    EXPECT_FALSE(fs::exists(repository_ / "net-float32"));
    EXPECT_FALSE(fs::exists(repository_ / "net-int8"));
    EXPECT_EQ(reads_, 0);
  }

  const fs::path repository_ = fs::path(testing::TempDir()) / fmt::format("foliot_variants_{}", ::getpid());
  Catalog catalog_;
  PackageStore packages_{repository_ / ".foliot", WeightsTier::kMemory, "cpu",
                         [](const auto&, const auto&, int, const auto&) { return Status::internal("not here"); }};
  RepositoryService models_{{.folder = repository_, .defaults = {}, .watch_interval = {}}};
  int reads_ = 0;
  RepositoryVariants variants_{{.catalog = catalog_,
                                .packages = packages_,
                                .models = models_,
                                .repository = repository_,
                                .defaults = {},
                                .read_tasks = [this] { ++reads_; }}};
};

TEST_F(RepositoryVariantsTest, ANewTaskHasItsVariants) {
  ASSERT_TRUE(variants_.check(addition()).ok());
  const Status status = variants_.publish(draft_of(addition()), addition());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(reads_, 1);
  ASSERT_TRUE(task().status.ok()) << task().status.message();
  EXPECT_EQ(task().accuracy, 0.5);
  EXPECT_EQ(task().default_slo, Duration::milliseconds(100));
  EXPECT_THAT(task().variants, testing::ElementsAre(VariantSpec{"net-int8", 0.97}, VariantSpec{"net-float32", 0.98}));
  EXPECT_EQ(text_of("net-int8/model.onnx"), "net-int8");
  EXPECT_THAT(text_of("digits/task.toml"), HasSubstr("# net: measured\n"));
}

TEST_F(RepositoryVariantsTest, ATaskThatIsThereGetsFurtherVariants) {
  fs::create_directories(repository_ / "digits");
  std::ofstream(repository_ / "digits/task.toml") << "# by hand\naccuracy = 0.1\n[[variant]]\nmodel = \"old\"\n"
                                                     "accuracy = 0.2";
  serve(scorer("old"));
  TaskAddition added = addition();
  EXPECT_THAT(variants_.check(added).message(), HasSubstr("'accuracy' is of a new task, and task 'digits' exists"));
  added.accuracy.reset();
  EXPECT_THAT(variants_.check(added).message(), HasSubstr("'default_slo' is of a new task"));
  added.default_slo.clear();
  ASSERT_TRUE(variants_.check(added).ok());
  ASSERT_TRUE(variants_.publish(draft_of(added), added).ok());
  EXPECT_THAT(text_of("digits/task.toml"), testing::StartsWith("# by hand\naccuracy = 0.1\n"));
  EXPECT_EQ(task().variants.size(), 3u);
}

TEST_F(RepositoryVariantsTest, VariantsThatDoNotFitTheTaskAreNotPublished) {
  fs::create_directories(repository_ / "digits");
  std::ofstream(repository_ / "digits/task.toml") << "[[variant]]\nmodel = \"old\"\naccuracy = 0.2\n";
  serve(scorer("old", 3));
  TaskAddition added = addition();
  added.accuracy.reset();
  added.default_slo.clear();
  EXPECT_THAT(variants_.publish(draft_of(added), added).message(), HasSubstr("scores"));
  expect_unpublished();
  EXPECT_EQ(task().variants.size(), 1u);
}

TEST_F(RepositoryVariantsTest, AnAccuracyThatNoVariantHasIsNotPublished) {
  TaskAddition added = addition();
  added.accuracy = 0.99;
  ASSERT_TRUE(variants_.check(added).ok()) << "not measured yet";
  EXPECT_THAT(variants_.publish(draft_of(added), added).message(), HasSubstr("the nearest is 'net-float32' with 0.98"));
  expect_unpublished();
}

TEST_F(RepositoryVariantsTest, NamesThatAreTakenAreRefused) {
  serve(scorer("net-int8"));
  EXPECT_EQ(variants_.check(addition()).message(), "there is a model 'net-int8' already; give another 'name'");
  catalog_.remove("net-int8");
  fs::create_directories(repository_ / "net-int8");
  EXPECT_THAT(variants_.check(addition()).message(), HasSubstr("net-int8 exists; give another 'name'"));
  fs::remove(repository_ / "net-int8");
  serve(scorer("digits"));
  EXPECT_EQ(variants_.check(addition()).message(), "'digits' is a model and no task; give another 'task'");
  catalog_.remove("digits");
  fs::create_directories(repository_ / "digits");
  EXPECT_THAT(variants_.check(addition()).message(), HasSubstr("exists and is no task"));
}

TEST_F(RepositoryVariantsTest, AFolderThatCameMeanwhileStaysAndTheOthersGoBack) {
  const fs::path draft = draft_of(addition());
  fs::create_directories(repository_ / "net-int8");
  std::ofstream(repository_ / "net-int8/model.onnx") << "another";
  const Status status = variants_.publish(draft, addition());
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("net-int8 exists since the job was submitted"));
  EXPECT_EQ(text_of("net-int8/model.onnx"), "another");
  EXPECT_FALSE(fs::exists(repository_ / "net-float32"));
  EXPECT_TRUE(fs::exists(draft / "net-float32" / "model.onnx"));
  EXPECT_FALSE(fs::exists(repository_ / "digits"));
}

// As a process that was killed between two moves leaves it.
void interrupt(const fs::path& draft, const fs::path& repository) {
  std::ofstream(draft / "publishing") << "net-float32\nnet-int8\n";
  fs::rename(draft / "net-float32", repository / "net-float32");
}

TEST_F(RepositoryVariantsTest, AnInterruptedPublicationGoesOn) {
  const fs::path draft = draft_of(addition());
  interrupt(draft, repository_);
  ASSERT_TRUE(variants_.publish(draft, addition()).ok());
  EXPECT_EQ(task().variants.size(), 2u);
  EXPECT_EQ(text_of("net-float32/model.onnx"), "net-float32");
  EXPECT_EQ(text_of("net-int8/model.onnx"), "net-int8");
  // And once more: it was done, but not kept.
  const std::string text = text_of("digits/task.toml");
  ASSERT_TRUE(variants_.publish(draft, addition()).ok());
  EXPECT_EQ(text_of("digits/task.toml"), text);
}

TEST_F(RepositoryVariantsTest, AnInterruptedPublicationIsTakenBack) {
  const fs::path draft = draft_of(addition());
  variants_.take_back(draft);
  interrupt(draft, repository_);
  variants_.take_back(draft);
  EXPECT_TRUE(fs::exists(draft / "net-float32" / "model.onnx"));
  expect_unpublished();
}

TEST_F(RepositoryVariantsTest, WhatDoesNotCompileIsNamed) {
  struct Context : JobContext {
    bool is_over() const override { return false; }
    bool is_cancelled() const override { return false; }
    void keep(uint64_t, uint64_t, const std::map<std::string, uint64_t>&) override {}
    void keep_accuracy(const std::string&, double) override {}
    void keep_bytes(uint64_t) override {}
    void set_waiting(std::string) override {}
    void wait(Duration) override {}
  } context;
  const fs::path draft = draft_of(addition());
  fs::create_directories(repository_ / ".foliot");
  EXPECT_EQ(variants_.try_out("net-int8", draft / "net-int8", context).message(), "not here");
  std::ofstream(draft / "net-int8" / "model.toml") << "batch_sizes = 3\n";
  EXPECT_THAT(variants_.try_out("net-int8", draft / "net-int8", context).message(), HasSubstr("batch_sizes"));
}

}  // namespace
}  // namespace foliot
