#include "planning/pipelines/logged_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "answer/pipelines/pipeline_file.h"
#include "foundation/core/stage_visit.h"
#include "observe/request_log/log_writer.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAnimalsFile = R"(
[[stage]]
name = "decode"
model = "decoder"
inputs = { bytes = "photo" }
[[stage]]
name = "fine"
model = "resnet"
inputs = { image = "decode.image" }
when = [{ output = "decode.sharpness", above = 0.5 }]
[[output]]
name = "scores"
from = ["fine.scores"]
fill = 0
)";

TimePoint at(double ms) { return TimePoint() + Duration::from_milliseconds(ms); }

// Writes a log of the pipeline "animals", and reads it back.
class LoggedPipelineTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(spec_.status.ok()) << spec_.status.message();
    auto writer = LogWriter::open({.folder = folder_});
    ASSERT_TRUE(writer.ok());
    writer_ = std::move(*writer);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void run(uint64_t id, double arrival, Refusal refusal = Refusal::kNone, std::string_view model = "animals") {
    writer_->add(RequestRecord{
        .id = RequestId(id), .model = model, .arrival = at(arrival), .refusal = refusal, .departure = at(arrival + 9)});
  }
  void visit(uint64_t run, uint32_t stage, std::string_view model) {
    writer_->add(
        RequestRecord{.id = visit_of(RequestId(run), stage), .model = model, .arrival = at(1), .departure = at(2)});
  }
  // A batch that carries one visit, in an EXEC of so many ms and copies of 1 ms each.
  void batch(uint64_t run, uint32_t stage, uint32_t size, double exec, std::string_view kind = "cpu:4",
             OutcomeStatus status = OutcomeStatus::kDone) {
    ActionRecord action{.id = ActionId(++actions_),
                        .duration = Duration::from_milliseconds(exec),
                        .status = status,
                        .batch_size = size,
                        .input_duration = Duration::milliseconds(1),
                        .output_duration = Duration::milliseconds(1),
                        .rows = 1};
    const std::array requests{visit_of(RequestId(run), stage)};
    action.requests = requests;
    action.kind = kind;
    writer_->add(action);
  }
  Result<LoggedPipeline> read() {
    writer_.reset();
    const auto log = Log::read(folder_);
    EXPECT_TRUE(log.ok()) << log.status().message();
    return read_logged_pipeline(spec_, *log, "LOG");
  }

  PipelineSpec spec_ = parse_pipeline("animals", "pipeline.toml", kAnimalsFile);
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("foliot_logged_" + std::to_string(getpid()));
  std::unique_ptr<LogWriter> writer_;
  uint64_t actions_ = 0;
};

TEST_F(LoggedPipelineTest, FindsArrivalsAndWhatEachRunVisited) {
  run(2, 30);
  run(1, 20);
  run(3, 45, Refusal::kOverload);
  run(4, 10, Refusal::kNone, "another");
  for (const uint64_t id : {1, 2, 3}) visit(id, 0, "decoder");
  visit(2, 1, "resnet");
  visit(4, 1, "another's");
  auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  EXPECT_THAT(logged->arrivals, ElementsAre(Duration(), Duration::milliseconds(10), Duration::milliseconds(25)));
  EXPECT_THAT(logged->visits, ElementsAre(VisitSet{1}, VisitSet{3}, std::nullopt));
  EXPECT_THAT(logged->known_visits(), ElementsAre(1, 3));
  StageProfile& fine = logged->profiles.at("fine");
  EXPECT_TRUE(fine.kinds.empty());
  add_missing_profiles({{"fine", {"fine", 1, {{"cpu", {1}, {{1, {Duration::milliseconds(9)}}}}}}}}, logged->profiles);
  EXPECT_EQ(fine.kinds.size(), 1u);
  EXPECT_EQ(fine.scale_factor, 0.5) << "of the log, though its batches were too few for durations";
  EXPECT_TRUE(fine.has_visits);
}

TEST_F(LoggedPipelineTest, MeasuresBatchesBySizeAndKind) {
  run(1, 0);
  run(2, 1);
  visit(1, 0, "decoder");
  visit(2, 0, "decoder");
  visit(2, 1, "resnet");
  for (int i = 1; i <= 100; ++i) batch(1, 0, 2, i);
  for (int i = 1; i <= 10; ++i) batch(1, 0, 8, 3);    // less than two rows took: chance
  for (int i = 1; i <= 9; ++i) batch(1, 0, 16, 500);  // too few
  for (int i = 1; i <= 10; ++i) batch(2, 1, 1, 7, "");
  for (int i = 1; i <= 20; ++i) batch(2, 1, 1, 900, "", OutcomeStatus::kFailed);
  batch(99, 1, 1, 900);  // of another pipeline
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();

  const StageProfile& decode = logged->profiles.at("decode");
  EXPECT_EQ(decode.scale_factor, 1);
  ASSERT_EQ(decode.kinds.size(), 1u);
  EXPECT_TRUE(decode.kinds[0].check().ok()) << decode.kinds[0].check().message();
  EXPECT_EQ(decode.kinds[0].kind, "cpu:4");
  EXPECT_THAT(decode.kinds[0].batch_sizes, ElementsAre(1, 2, 8));
  for (const uint32_t rows : {1u, 2u, 8u}) {
    EXPECT_EQ(decode.kinds[0].duration(rows, 0.5), Duration::milliseconds(51 + 2)) << rows;
    EXPECT_EQ(decode.kinds[0].duration(rows, 0.99), Duration::milliseconds(100 + 2)) << rows;
  }
  const StageProfile& fine = logged->profiles.at("fine");
  EXPECT_EQ(fine.scale_factor, 0.5);
  EXPECT_EQ(fine.kinds[0].kind, kDefaultKind);
  EXPECT_EQ(fine.kinds[0].duration(1, 0.99), Duration::milliseconds(9));
}

TEST_F(LoggedPipelineTest, ATraceHasTheVisitsThatWereSeenAndDrawsTheOthers) {
  for (uint64_t id = 1; id <= 40; ++id) {
    run(id, static_cast<double>(id), id % 4 == 0 ? Refusal::kOverload : Refusal::kNone);
    visit(id, 0, "decoder");
    if (id % 4 == 1) visit(id, 1, "resnet");
  }
  for (int i = 0; i < 10; ++i) {
    batch(1, 0, 1, 5);
    batch(1, 1, 1, 50);
  }
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  const auto pipeline =
      plan_stages(spec_, {.profiles = logged->profiles, .prices = {{"cpu:4", 1}}, .visits = logged->known_visits()});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  EXPECT_DOUBLE_EQ(pipeline->stages[1].probability, 1.0 / 3);
  const QueryTrace trace = logged->trace(*pipeline, 1);
  ASSERT_EQ(trace.size(), 40u);
  uint32_t drawn = 0;
  for (uint64_t id = 1; id <= 40; ++id) {
    if (id % 4 == 0) {
      drawn += trace.visits[id - 1] >> 1;
    } else {
      EXPECT_EQ(trace.visits[id - 1], id % 4 == 1 ? 3u : 1u) << id;
    }
  }
  EXPECT_GT(drawn, 0u);
  EXPECT_LT(drawn, 10u);
}

TEST_F(LoggedPipelineTest, SaysThatTheLogHasNoRun) {
  run(1, 0, Refusal::kNone, "digits");
  EXPECT_THAT(read().status().message(), HasSubstr("LOG: has no run of pipeline 'animals' (pipeline.toml); it has "
                                                   "requests for 'digits'"));
}

TEST_F(LoggedPipelineTest, SaysThatNoRunWasAnswered) {
  run(1, 0, Refusal::kOverload);
  EXPECT_THAT(read().status().message(), HasSubstr("none of the 1 runs of 'animals' was answered"));
}

TEST_F(LoggedPipelineTest, SaysThatTheLogIsOfAnotherFile) {
  run(1, 0);
  visit(1, 1, "vgg");
  EXPECT_THAT(read().status().message(), HasSubstr("visited stage 2 with model 'vgg', which pipeline.toml does not"));
}

TEST_F(LoggedPipelineTest, SaysThatTheLogHasMoreStages) {
  run(1, 0);
  visit(1, 2, "resnet");
  EXPECT_THAT(read().status().message(), HasSubstr("visited stage 3"));
}

KindProfile profile(std::string kind, std::vector<uint32_t> sizes, std::vector<int64_t> ms) {
  KindProfile to{std::move(kind), std::move(sizes), {{1, {}}}};
  for (const int64_t each : ms) to.quantiles[0].of_batches.push_back(Duration::milliseconds(each));
  return to;
}

TEST(AddMissingProfilesTest, KeepsWhatWasThereAndAddsTheRest) {
  StageProfiles to{{"a", {"a", 0.5, {profile("cpu", {1, 4}, {5, 9})}}}};
  const StageProfiles from{{"a", {"a", 1, {profile("cpu", {1, 2, 8}, {1, 2, 8}), profile("cuda", {1}, {3})}}},
                           {"b", {"b", 0.7, {profile("cpu", {1}, {4})}}}};
  add_missing_profiles(from, to);
  EXPECT_EQ(to.at("a").scale_factor, 0.5);
  ASSERT_EQ(to.at("a").kinds.size(), 2u);
  const KindProfile& cpu = to.at("a").kinds[0];
  EXPECT_TRUE(cpu.check().ok()) << cpu.check().message();
  EXPECT_THAT(cpu.batch_sizes, ElementsAre(1, 2, 4, 8));
  const auto ms = [](int64_t value) { return Duration::milliseconds(value); };
  EXPECT_THAT(cpu.quantiles[0].of_batches, ElementsAre(ms(5), ms(5), ms(9), ms(9)));
  EXPECT_EQ(to.at("a").kinds[1].kind, "cuda");
  EXPECT_EQ(to.at("b").scale_factor, 0.7);
}

// "detect" counts up to three; "classify" is visited for each, and "last" once.
constexpr const char* kStreetFile = R"(
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
name = "last"
model = "sum"
inputs = { scores = "classify.scores" }
[[output]]
name = "sum"
from = "last.sum"
)";

class LoggedElementsTest : public LoggedPipelineTest {
 protected:
  LoggedElementsTest() { spec_ = parse_pipeline("animals", "pipeline.toml", kStreetFile); }
  void run_with(uint64_t id, uint32_t elements) {
    run(id, static_cast<double>(id));
    visit(id, 0, "detector");
    for (uint32_t slot = 1; slot <= elements; ++slot) visit(id, slot, "resnet");
    visit(id, 4, "sum");
  }
};

TEST_F(LoggedElementsTest, ATraceHasAsManyVisitsAsEachRunMade) {
  const std::vector<uint32_t> elements{0, 3, 1, 0, 2, 3};
  for (uint64_t id = 1; id <= elements.size(); ++id) run_with(id, elements[id - 1]);
  for (int i = 0; i < 10; ++i) {
    batch(2, 0, 1, 5);
    batch(2, 3, 4, 50);
    batch(2, 4, 1, 1);
  }
  const auto logged = read();
  ASSERT_TRUE(logged.ok()) << logged.status().message();
  EXPECT_THAT(logged->elements[1], ElementsAre(0, 3, 1, 0, 2, 3));
  EXPECT_TRUE(logged->elements[0].empty());
  const StageProfile& classify = logged->profiles.at("classify");
  EXPECT_EQ(classify.scale_factor, 1.5);
  EXPECT_THAT(classify.visits_shares, ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(classify.kinds[0].batch_sizes, ElementsAre(1, 4));
  EXPECT_EQ(logged->profiles.at("last").scale_factor, 1) << "no elements are as good as some";
  const auto pipeline =
      plan_stages(spec_, {.profiles = logged->profiles, .prices = {{"cpu:4", 1}}, .visits = logged->known_visits()});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  const QueryTrace trace = logged->trace(*pipeline, 1);
  for (size_t query = 0; query < elements.size(); ++query) EXPECT_EQ(trace.visits_of(query, 1), elements[query]);
}

TEST_F(LoggedElementsTest, VisitsThatTheFileDoesNotHaveAreNamed) {
  run_with(1, 3);
  visit(1, 5, "sum");
  EXPECT_THAT(read().status().message(), HasSubstr("run 1 of 'animals' visited stage 6 with model 'sum'"));
}

}  // namespace
}  // namespace foliot
