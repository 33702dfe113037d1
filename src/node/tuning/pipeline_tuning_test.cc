#include "node/tuning/pipeline_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Of 10 queries per second, which come evenly; a replica takes 10.
constexpr const char* kPlan = R"(pipeline = "animals"
rate = 10
[[stage]]
name = "fine"
model = "resnet"
kind = "cpu"
batch = 1
replicas = 1
visited = 1
throughput = 10
[[window]]
length = "1s"
queries = 10
)";

PipelineInfo animals(uint32_t id = 1) {
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(4);
  model->name = "resnet";
  PipelineInfo info{.id = PipelineId(id), .name = "animals", .stages = {}, .outputs = {}};
  info.stages.push_back({.name = "fine", .model = std::move(model)});
  return info;
}

class PipelineTuningTest : public testing::Test {
 protected:
  PipelineTuningTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "animals");
    for (uint32_t i = 0; i < 3; ++i) {
      tuning_.on_device({.device = DeviceId(i), .joined = true, .kind = "cpu"}, at(0));
    }
  }
  void write(const std::string& text) { std::ofstream(folder_ / "animals" / "plan.toml") << text; }
  void run(int count, TimePoint now, uint32_t pipeline = 1) {
    const PipelineInfo info = animals(pipeline);
    for (int i = 0; i < count; ++i) tuning_.on_run({}, &info, now);
  }
  uint32_t copies() const { return targets_.empty() ? 0 : targets_.back().of(ModelId(4)).copies_least; }
  // Looks at the files until what has changed has stayed the same.
  void look_twice() {
    for (int i = 0; i < 2; ++i) tuning_.step(now_ += Duration::seconds(5));
  }

  const fs::path folder_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_foliot_tuning";
  TuningMetrics metrics_;
  std::vector<Targets> targets_;
  std::vector<std::string> lines_;
  TimePoint now_ = at(100'000);
  PipelineTuning tuning_{
      {.plans = folder_},
      metrics_,
      [this](Targets targets) { targets_.push_back(std::move(targets)); },
      [this](const std::string& line, bool trouble) { lines_.push_back((trouble ? "trouble: " : "") + line); }};
};

TEST_F(PipelineTuningTest, RunsBecomeTargetsLinesAndMetrics) {
  write(kPlan);
  ASSERT_TRUE(tuning_.open().ok());
  tuning_.step(now_);
  EXPECT_THAT(targets_, IsEmpty());
  tuning_.on_pipeline(animals());
  run(10, now_);
  tuning_.step(now_);
  EXPECT_EQ(copies(), 1u);
  EXPECT_THAT(targets_.back().of(ModelId(4)).kinds, ElementsAre("cpu"));
  EXPECT_THAT(lines_, ElementsAre("pipeline 'animals' is tuned; replicas: fine 1"));
  tuning_.step(now_ += ms(100));
  EXPECT_THAT(targets_, SizeIs(1)) << "nothing has changed";

  run(20, now_ += ms(100));
  run(100, now_, 7);  // of another
  tuning_.step(now_);
  EXPECT_EQ(copies(), 3u);
  EXPECT_THAT(metrics_.text(), HasSubstr("replicas_wanted{pipeline=\"animals\",stage=\"fine\"} 3\n"));
  run(20, now_);
  tuning_.on_device({.device = DeviceId(0), .state = DeviceState::kLost}, now_);
  tuning_.step(now_ += ms(100));
  EXPECT_EQ(copies(), 5u);
  tuning_.step(now_ += ms(100));
  EXPECT_THAT(lines_.back(), HasSubstr("trouble: tuned pipelines want 5 devices of kind 'cpu', and 2 are up"));
  EXPECT_THAT(lines_, SizeIs(2)) << "once";
  EXPECT_EQ(tuning_.devices_wanted().at("cpu"), 5u);

  tuning_.step(now_ += Duration::seconds(60));
  EXPECT_EQ(copies(), 1u);
  run(50, now_);
  tuning_.on_pipeline_removed(PipelineId(1));
  tuning_.step(now_ += ms(100));
  EXPECT_THAT(targets_.back().models, IsEmpty());
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("animals")));
}

TEST_F(PipelineTuningTest, ADamagedPlanIsReportedOnceAndReadAgain) {
  write("pipeline = 'animals'\nrate = 0\n");
  ASSERT_TRUE(tuning_.open().ok());
  tuning_.on_pipeline(animals());
  for (int i = 0; i < 3; ++i) tuning_.step(now_);
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_.front(), HasSubstr("trouble: pipeline 'animals' is not tuned: "));
  EXPECT_THAT(lines_.front(), HasSubstr("animals/plan.toml:2: 'rate' must be above 0"));
  EXPECT_THAT(targets_, IsEmpty());
  write(kPlan);
  look_twice();
  EXPECT_EQ(copies(), 1u);
  fs::remove(folder_ / "animals" / "plan.toml");
  look_twice();
  EXPECT_EQ(copies(), 0u);
}

TEST_F(PipelineTuningTest, RunsBeyondTheLimitAreNotCountedWhichIsReported) {
  write(kPlan);
  ASSERT_TRUE(tuning_.open().ok());
  tuning_.on_pipeline(animals());
  run(static_cast<int>(PipelineTuning::kArrivalsMax) + 3, now_);
  tuning_.step(now_);
  EXPECT_THAT(lines_, testing::Contains(HasSubstr("and 3 were not counted")));
}

TEST_F(PipelineTuningTest, AFolderThatIsNotThereIsNamed) {
  PipelineTuning other(
      {.plans = folder_ / "absent"}, metrics_, [](Targets) {}, [](const std::string&, bool) {});
  EXPECT_THAT(other.open().message(), HasSubstr("foliot_tuning/absent"));
  EXPECT_THAT(find_pipeline_tuner("best").status().message(), HasSubstr("there are by_ratio, printed and replan"));
  EXPECT_TRUE(std::holds_alternative<ReplanOptions>(*find_pipeline_tuner("replan")));
}

}  // namespace
}  // namespace foliot
