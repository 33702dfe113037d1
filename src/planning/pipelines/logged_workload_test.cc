#include "planning/pipelines/logged_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/pipelines/pipeline_file.h"
#include "foundation/core/stage_visit.h"
#include "observe/request_log/log_writer.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kPage = 1000;

constexpr const char* kCascadeFile = R"(
[[stage]]
name = "cheap"
model = "mobilenet"
inputs = { image = "photo" }
[[stage]]
name = "fine"
model = "resnet"
inputs = { image = "photo" }
when = [{ output = "cheap.scores", below = 0.8 }]
[[output]]
name = "scores"
from = ["fine.scores", "cheap.scores"]
)";

Duration ms(double value) { return Duration::from_milliseconds(value); }

class LoggedWorkloadTest : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = LogWriter::open({.folder = folder_});
    ASSERT_TRUE(writer.ok());
    writer_ = std::move(*writer);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void request(RequestId id, std::string_view model, double arrival, double slo = 0) {
    RequestRecord record{
        .id = id, .model = model, .arrival = TimePoint() + ms(arrival), .departure = TimePoint() + ms(arrival + 5)};
    if (slo > 0) record.slo = ms(slo);
    writer_->add(record);
  }
  void action(ActionType type, std::string_view model, double duration, uint32_t size = 0, double start = 0,
              LaneInterval lanes = {}) {
    ActionRecord record{.id = ActionId(++actions_), .type = type};
    record.model = model;
    record.pages = 3;
    record.start = TimePoint() + ms(start);
    record.duration = ms(duration);
    record.batch_size = size;
    record.lanes = lanes;
    writer_->add(record);
  }
  Result<LoggedWorkload> read(const std::vector<PipelineSpec>& pipelines = {}) {
    writer_.reset();
    const auto log = Log::read(folder_);
    EXPECT_TRUE(log.ok()) << log.status().message();
    return read_logged_workload(*log, pipelines, kPage, "LOG");
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("foliot_workload_" + std::to_string(getpid()));
  std::unique_ptr<LogWriter> writer_;
  uint64_t actions_ = 0;
};

TEST_F(LoggedWorkloadTest, ReplaysEachModelWithAndWithoutDeadline) {
  request(RequestId(1), "a", 100, 20);
  request(RequestId(2), "b", 110, 30);
  request(RequestId(3), "b", 105, 50);
  request(RequestId(4), "b", 125, 40);
  request(RequestId(5), "b", 130);
  for (const double load : {8.0, 9.0, 30.0}) action(ActionType::kLoad, "b", load);
  for (const double exec : {2.0, 4.0, 90.0}) action(ActionType::kInfer, "b", exec, 2);
  action(ActionType::kInfer, "b", 3, 4);
  action(ActionType::kInfer, "a", 1, 1);
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();

  ASSERT_EQ(logged->workload.streams.size(), 3u);
  const Stream& late = logged->workload.streams[1];
  EXPECT_EQ(late.name, "b, best effort");
  EXPECT_TRUE(late.best_effort);
  EXPECT_THAT(late.arrivals.instants, ElementsAre(ms(30)));
  const Stream& b = logged->workload.streams[2];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.slo, ms(40));
  EXPECT_THAT(b.arrivals.instants, ElementsAre(ms(5), ms(10), ms(25)));
  EXPECT_EQ(logged->length, ms(31));

  ASSERT_EQ(logged->workload.groups.size(), 2u);
  const ModelProfile* const profile = logged->profiles.find(logged->workload.groups[1].profile);
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->weights_bytes, 3 * kPage);
  EXPECT_EQ(profile->load, ms(9));
  EXPECT_THAT(profile->batch_sizes, ElementsAre(1, 2, 4));
  EXPECT_THAT(profile->exec, ElementsAre(ms(4), ms(4), ms(4)));  // a larger one takes no less
}

TEST_F(LoggedWorkloadTest, KnowsHowDurationsSpread) {
  request(RequestId(1), "a", 100, 20);
  // The last nine have the same median as all.
  double start = 0;
  for (const double exec : {1, 11, 2, 10, 3, 9, 4, 8, 5, 7, 6}) action(ActionType::kInfer, "a", exec, 1, start += 20);
  for (uint32_t i = 0; i < 10; ++i) action(ActionType::kInfer, "a", i == 0 ? 100 : 20, 4, 300);
  for (uint32_t i = 0; i < 9; ++i) action(ActionType::kInfer, "a", i == 0 ? 1000 : 40, 8, 300);
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  const std::vector<SeenExec>& seen = logged->seen_execs.at("a");
  ASSERT_EQ(seen.size(), 30u);
  const auto factors = [&] {
    std::vector<double> all;
    for (const SeenExec& exec : seen) all.push_back(exec.factor);
    std::ranges::sort(all);
    return all;
  }();
  EXPECT_NEAR(factors.front(), 1 / 6.0, 1e-9);
  EXPECT_NEAR(factors.back(), 25, 1e-9);
  EXPECT_EQ(std::ranges::count(factors, 1.0), 18);
}

// Large batches run when much waits, as it does on a slow device: their usual duration is of a device at its usual
// speed.
TEST_F(LoggedWorkloadTest, KnowsHowSlowADeviceWas) {
  request(RequestId(1), "a", 0);
  for (uint32_t i = 0; i < 60; ++i) action(ActionType::kInfer, "a", i < 40 ? 2 : 6, 1, 10 * i);
  for (uint32_t i = 0; i < 10; ++i) action(ActionType::kInfer, "a", 24, 8, 500 + i);
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  const ModelProfile* const profile = logged->profiles.find(logged->workload.groups[0].profile);
  EXPECT_THAT(profile->exec, ElementsAre(ms(2), ms(8)));
  for (const SeenExec& exec : logged->seen_execs.at("a")) EXPECT_NEAR(exec.factor, exec.at < ms(400) ? 1 : 3, 1e-6);
}

// From the first arrival on, in order; the log has an action when its outcome is known.
// 2 ms on both lanes, and 3 on one: two thirds of an EXEC are divided. Another model ran on one lane only.
TEST_F(LoggedWorkloadTest, KnowsHowLanesDivideAnExec) {
  request(RequestId(1), "a", 0);
  request(RequestId(2), "b", 1);
  for (double start = 10; start < 50; start += 10) {
    action(ActionType::kInfer, "a", 2, 1, start, {0, 2});
    action(ActionType::kInfer, "a", 3, 1, start + 5, {1, 1});
    action(ActionType::kInfer, "b", 6, 1, start + 5, {0, 1});
  }
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  EXPECT_EQ(logged->lanes, 2u);
  EXPECT_NEAR(logged->parallel_share, 2.0 / 3, 1e-9);
  EXPECT_THAT(logged->profiles.find("logged a")->exec, ElementsAre(ms(2)));
  EXPECT_THAT(logged->profiles.find("logged b")->exec, ElementsAre(ms(4)));
}

TEST_F(LoggedWorkloadTest, KnowsWhenDurationsSpread) {
  request(RequestId(1), "a", 100);
  for (const double start : {105, 103, 102, 104}) {
    for (int i = 0; i < 5; ++i) action(ActionType::kInfer, "a", start == 104 ? 6 : 2, 1, start);
  }
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  std::vector<std::pair<Duration, double>> seen;
  for (const SeenExec& exec : logged->seen_execs.at("a")) {
    if (seen.empty() || seen.back().first != exec.at) seen.emplace_back(exec.at, exec.factor);
  }
  EXPECT_THAT(seen,
              ElementsAre(std::pair(ms(2), 1.0), std::pair(ms(3), 1.0), std::pair(ms(4), 3.0), std::pair(ms(5), 1.0)));
}

TEST_F(LoggedWorkloadTest, ReplaysRunsWithTheSharesOfTheirVisits) {
  const PipelineSpec spec = parse_pipeline("animals", "pipeline.toml", kCascadeFile);
  ASSERT_TRUE(spec.status.ok()) << spec.status.message();
  for (uint64_t run = 1; run <= 4; ++run) {
    request(RequestId(run), "animals", 10.0 * static_cast<double>(run), 100);
    request(visit_of(RequestId(run), 0), "mobilenet", 10.0 * static_cast<double>(run), 100);
  }
  request(visit_of(RequestId(3), 1), "resnet", 35, 100);
  action(ActionType::kInfer, "mobilenet", 1, 1);
  action(ActionType::kInfer, "resnet", 5, 1);
  const auto logged = read({spec});
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  ASSERT_EQ(logged->workload.pipelines.size(), 1u);
  const PipelineLoad& load = logged->workload.pipelines[0];
  ASSERT_EQ(load.stages.size(), 2u);
  EXPECT_EQ(load.stages[0].share, 1);
  EXPECT_THAT(load.stages[1].after, ElementsAre("cheap"));
  EXPECT_EQ(load.stages[1].share, 0.25);
  ASSERT_EQ(logged->workload.streams.size(), 1u);  // visits are no requests of clients
  EXPECT_EQ(logged->workload.streams[0].pipeline, "animals");
  EXPECT_EQ(logged->workload.streams[0].arrivals.instants.size(), 4u);
  const RecordedRun cheap{.visited = 1};
  EXPECT_THAT(logged->workload.streams[0].recorded, ElementsAre(cheap, cheap, RecordedRun{.visited = 3}, cheap));
}

// With and without a deadline are streams of their own.
TEST_F(LoggedWorkloadTest, ReplaysWhatEachRunVisitedWhereverItIs) {
  const PipelineSpec spec = parse_pipeline("animals", "pipeline.toml", kCascadeFile);
  for (uint64_t run = 1; run <= 4; ++run) {
    const double arrival = 50 - 10.0 * static_cast<double>(run);
    request(RequestId(run), "animals", arrival, run % 2 == 0 ? 100 : 0);
    request(visit_of(RequestId(run), 0), "mobilenet", arrival, 100);
  }
  request(visit_of(RequestId(3), 1), "resnet", 21, 100);
  writer_->add(RequestRecord{.id = RequestId(5),
                             .model = "animals",
                             .arrival = TimePoint() + ms(35),
                             .slo = ms(100),
                             .refusal = Refusal::kOverload});
  action(ActionType::kInfer, "mobilenet", 1, 1);
  action(ActionType::kInfer, "resnet", 5, 1);
  const auto logged = read({spec});
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  ASSERT_EQ(logged->workload.streams.size(), 2u);
  const RecordedRun cheap{.visited = 1};
  const RecordedRun both{.visited = 3};
  EXPECT_THAT(logged->workload.streams[0].recorded, ElementsAre(both, cheap)) << "best effort: runs 3 and 1";
  EXPECT_THAT(logged->workload.streams[1].recorded, ElementsAre(cheap, cheap, std::nullopt)) << "runs 4, 2 and 5";
}

TEST_F(LoggedWorkloadTest, ReplaysRunsWithAsManyElements) {
  const PipelineSpec spec = parse_pipeline("street", "pipeline.toml", R"(
[[stage]]
name = "detect"
model = "detector"
inputs = { image = "photo" }
[[stage]]
name = "classify"
model = "resnet"
for_each = { count = "detect.count", at_most = 3 }
inputs = { image = "detect.crops[]" }
[[stage]]
name = "read"
model = "reader"
for_each = { count = "detect.count", at_most = 3 }
inputs = { image = "detect.crops[]" }
when = [{ output = "detect.sure", above = 0.5 }]
[[output]]
name = "scores"
from = "classify.scores"
[[output]]
name = "text"
from = "read.text"
fill = 0
)");
  ASSERT_TRUE(spec.status.ok()) << spec.status.message();
  const std::vector<uint32_t> elements{0, 2, 1, 2};
  for (uint64_t run = 1; run <= 4; ++run) {
    const double arrival = 10.0 * static_cast<double>(run);
    request(RequestId(run), "street", arrival, 100);
    request(visit_of(RequestId(run), 0), "detector", arrival, 100);
    for (uint32_t i = 0; i < elements[run - 1]; ++i) request(visit_of(RequestId(run), 1 + i), "resnet", arrival, 100);
  }
  for (uint32_t i = 0; i < 2; ++i) request(visit_of(RequestId(2), 4 + i), "reader", 20, 100);
  for (const char* model : {"detector", "resnet", "reader"}) action(ActionType::kInfer, model, 1, 1);
  const auto logged = read({spec});
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  EXPECT_TRUE(logged->workload.check().ok()) << logged->workload.check().message();
  const PipelineLoad& load = logged->workload.pipelines[0];
  EXPECT_THAT(load.stages[0].elements, ElementsAre(1, 1, 2, 0));
  EXPECT_EQ(load.stages[1].for_each, "detect");
  EXPECT_EQ(load.stages[1].share, 1);
  EXPECT_EQ(load.stages[2].for_each, "detect");
  EXPECT_EQ(load.stages[2].share, 0.4) << "two of five visits";
  EXPECT_THAT(logged->workload.streams[0].recorded, ElementsAre(RecordedRun{.visited = 0b111, .elements = {0, 0, 0}},
                                                                RecordedRun{.visited = 0b111, .elements = {2, 0, 0}},
                                                                RecordedRun{.visited = 0b011, .elements = {1, 0, 0}},
                                                                RecordedRun{.visited = 0b011, .elements = {2, 0, 0}}));
}

TEST_F(LoggedWorkloadTest, SaysWhichPipelineIsNotGiven) {
  request(RequestId(1), "animals", 10, 100);
  request(visit_of(RequestId(1), 0), "mobilenet", 10, 100);
  EXPECT_THAT(read().status().message(), HasSubstr("has runs of pipeline 'animals': give its file with --pipeline"));
}

TEST_F(LoggedWorkloadTest, SaysOfWhichModelNothingRan) {
  request(RequestId(1), "a", 10, 100);
  action(ActionType::kLoad, "a", 5);
  EXPECT_THAT(read().status().message(), HasSubstr("model 'a', of which no batch has run"));
}

TEST_F(LoggedWorkloadTest, SaysThatItIsEmpty) {
  EXPECT_THAT(read().status().message(), HasSubstr("LOG: has no requests"));
}

}  // namespace
}  // namespace foliot
