#include "answer/tasks/task_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace foliot {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TaskSpec parse(const std::string& text, const Accuracies& measured = {}) {
  return parse_task("digits", "digits/task.toml", text,
                    [measured](const std::string&) -> Result<Accuracies> { return measured; });
}

std::string error_of(const std::string& text, const Accuracies& measured = {}) {
  const TaskSpec spec = parse(text, measured);
  EXPECT_EQ(spec.status.code(), StatusCode::kInvalidArgument) << text;
  return std::string(spec.status.message());
}

TEST(TaskFileTest, ReadsVariantsByAccuracy) {
  const TaskSpec spec = parse(
      "default_slo = \"100ms\"\naccuracy = 0.9\naccuracies = \"measured.toml\"\n"
      "[[variant]]\nmodel = \"fp32\"\naccuracy = 0.98\n[[variant]]\nmodel = \"int8\"\n",
      {{"int8", 0.97}});
  ASSERT_TRUE(spec.status.ok()) << spec.status.message();
  EXPECT_EQ(spec.default_slo, Duration::milliseconds(100));
  EXPECT_EQ(spec.accuracy, 0.9);
  ASSERT_EQ(spec.variants.size(), 2u);
  EXPECT_EQ(spec.variants[0].model, "int8");
  EXPECT_EQ(spec.variants[0].accuracy, 0.97);
  EXPECT_EQ(spec.variants[1].model, "fp32");
}

TEST(TaskFileTest, NamesWhatIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("a task needs variants"));
  EXPECT_THAT(error_of("[[variant]]\naccuracy = 0.5\n"), HasSubstr("digits/task.toml:1: a variant needs a model"));
  EXPECT_THAT(error_of("[[variant]]\nmodel = \"a\"\naccuracy = 1.5\n"), HasSubstr("'accuracy'"));
  EXPECT_THAT(error_of("[[variant]]\nmodel = \"a\"\naccuracy = nan\n"), HasSubstr("'accuracy'"));
  EXPECT_THAT(error_of("[[variant]]\nmodel = \"a\"\n"), HasSubstr("variant 'a' needs an accuracy"));
  EXPECT_THAT(error_of("[[variant]]\nmodel = \"digits\"\naccuracy = 1\n"), HasSubstr("the task itself"));
  EXPECT_THAT(error_of("[[variant]]\nmodel = \"a\"\naccuracy = 1\n[[variant]]\nmodel = \"a\"\naccuracy = 0.5\n"),
              HasSubstr("variant 'a' twice"));
  EXPECT_THAT(error_of("accuracy = 0.9\n[[variant]]\nmodel = \"a\"\naccuracy = 0.8\n"),
              HasSubstr("at least 0.9 by 'accuracy', and no variant has that; the nearest is 'a' with 0.8"));
  EXPECT_THAT(error_of("variants = 3\n"), HasSubstr("variants"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "[[variant]]\nmodel = \"m" + std::to_string(i) + "\"\naccuracy = 0.5\n";
  EXPECT_THAT(error_of(many), HasSubstr("it has 65 variants; at most 64"));
}

TEST(TaskFileTest, AccuraciesAreNumbersFromZeroToOne) {
  const auto good = parse_accuracies("a = 0.5\n\"b-1\" = 1\n", "f");
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_EQ(good->at("b-1"), 1.0);
  EXPECT_THAT(parse_accuracies("a = 2\n", "f").status().message(), HasSubstr("f:1"));
  EXPECT_THAT(parse_accuracies("a = \"x\"\n", "f").status().message(), HasSubstr("must be a number from 0 to 1"));
}

class TaskFolderTest : public testing::Test {
 protected:
  TaskFolderTest() : root_(fs::temp_directory_path() / ("task_file_test_" + std::to_string(getpid()))) {
    fs::create_directories(root_ / "digits");
  }
  ~TaskFolderTest() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) { std::ofstream(root_ / file) << text; }

  const fs::path root_;
};

TEST_F(TaskFolderTest, AccuraciesAreInTheTasksFolder) {
  write("digits/task.toml", "accuracies = \"measured.toml\"\n[[variant]]\nmodel = \"a\"\n");
  write("digits/measured.toml", "a = 0.7\n");
  write("outside.toml", "a = 0.7\n");
  auto tasks = scan_tasks(root_);
  ASSERT_TRUE(tasks.ok());
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_TRUE(tasks->front().status.ok()) << tasks->front().status.message();
  EXPECT_EQ(tasks->front().variants.front().accuracy, 0.7);

  write("digits/task.toml", "accuracies = \"../outside.toml\"\n[[variant]]\nmodel = \"a\"\n");
  EXPECT_THAT(scan_tasks(root_)->front().status.message(), HasSubstr("is not in the task's folder"));
  fs::create_symlink(root_ / "outside.toml", root_ / "digits/link.toml");
  write("digits/task.toml", "accuracies = \"link.toml\"\n[[variant]]\nmodel = \"a\"\n");
  EXPECT_THAT(scan_tasks(root_)->front().status.message(), HasSubstr("is not in the task's folder"));
}

TEST_F(TaskFolderTest, ATaskIsNothingElse) {
  write("digits/task.toml", "[[variant]]\nmodel = \"a\"\naccuracy = 1\n");
  write("digits/model.onnx", "");
  EXPECT_THAT(scan_tasks(root_)->front().status.message(), HasSubstr("a task is nothing else besides"));
}

}  // namespace
}  // namespace foliot
