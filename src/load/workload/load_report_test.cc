#include "load/workload/load_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Duration kSlo = Duration::milliseconds(50);

LoadReportOptions options(std::vector<std::string> models = {"m"}) {
  return {.models = std::move(models), .rows_per_request = 1, .settings = {{"url", "127.0.0.1:8001"}}};
}

LoadSample answered(int64_t scheduled, int64_t finished, uint32_t model = 0) {
  return {.model = model, .scheduled = at(scheduled), .sent = at(scheduled), .finished = at(finished), .slo = kSlo};
}

LoadSample ended(LoadOutcome outcome, std::string_view reason, uint32_t model = 0) {
  return {.model = model, .scheduled = at(0), .sent = at(0), .finished = at(2), .outcome = outcome, .reason = reason};
}

TEST(LoadReportTest, CountsEveryEndOnce) {
  LoadReport report(options());
  report.record(answered(0, 10));
  report.record(answered(0, 50));  // on the deadline is in time
  report.record(answered(0, 51));
  report.record(ended(LoadOutcome::kRefused, "overload"));
  report.record(ended(LoadOutcome::kRefused, "overload"));
  report.record(ended(LoadOutcome::kRefused, "unmeetable"));
  report.record(ended(LoadOutcome::kFailed, "connection reset"));
  report.record(ended(LoadOutcome::kUnsent, ""));
  report.set_duration(Duration::seconds(2));

  const LoadTally& total = report.total();
  EXPECT_EQ(total.offered, 8u);
  EXPECT_EQ(total.sent, 7u);
  EXPECT_EQ(total.good, 2u);
  EXPECT_EQ(total.late, 1u);
  EXPECT_EQ(total.refused, 3u);
  EXPECT_EQ(total.failed, 1u);
  EXPECT_EQ(total.latency.count(), 3u);
  EXPECT_DOUBLE_EQ(total.attainment(), 0.25);
  EXPECT_DOUBLE_EQ(report.goodput(), 1);
  EXPECT_EQ(report.refusals(), (std::map<std::string, uint64_t>{{"overload", 2}, {"unmeetable", 1}}));
  EXPECT_EQ(report.failures(), (std::map<std::string, uint64_t>{{"connection reset", 1}}));
  EXPECT_EQ(report.refusal_latency().count(), 3u);
}

TEST(LoadReportTest, LatencyCountsFromTheScheduledInstant) {
  LoadReport report(options());
  LoadSample sample = answered(0, 60);
  sample.sent = at(55);  // answered 5 ms after it was sent, and late all the same
  report.record(sample);
  EXPECT_EQ(report.total().late, 1u);
  EXPECT_EQ(report.total().latency.max(), Duration::milliseconds(60));
  EXPECT_EQ(report.send_lag().max(), Duration::milliseconds(55));
  EXPECT_TRUE(report.generator_lagged());
}

TEST(LoadReportTest, WithoutDeadlineEveryAnswerIsGood) {
  LoadReport report(options());
  LoadSample sample = answered(0, 10'000);
  sample.slo = Duration::max();
  report.record(sample);
  EXPECT_EQ(report.total().good, 1u);
  EXPECT_FALSE(report.generator_lagged());
}

TEST(LoadReportTest, ModelsAreTalliedApart) {
  LoadReport report(options({"a", "b"}));
  report.record(answered(0, 10, 0));
  report.record(answered(0, 90, 1));
  report.record(ended(LoadOutcome::kRefused, "expired", 1));
  EXPECT_EQ(report.model(0).good, 1u);
  EXPECT_EQ(report.model(1).late, 1u);
  EXPECT_EQ(report.model(1).refused, 1u);
  EXPECT_EQ(report.total().offered, 3u);
}

TEST(LoadReportTest, StreamsAreTalliedApart) {
  LoadReportOptions two = options({"a", "b"});
  two.streams = {"urgent", "relaxed"};
  LoadReport report(two);
  LoadSample sample = answered(0, 60, 1);
  report.record(sample);
  sample.stream = 1;
  sample.slo = Duration::seconds(1);  // each by the objective of its own
  report.record(sample);
  EXPECT_EQ(report.stream(0).late, 1u);
  EXPECT_EQ(report.stream(1).good, 1u);
  EXPECT_EQ(report.model(1).offered, 2u);
  const auto json = nlohmann::json::parse(report.to_json());
  EXPECT_EQ(json["streams"][0]["name"], "urgent");
  EXPECT_EQ(json["streams"][1]["good"], 1);
  EXPECT_DOUBLE_EQ(json["deadline_milliseconds"].get<double>(), 50);
  const std::string text = report.to_text();
  EXPECT_LT(text.find("urgent"), text.find("relaxed"));
}

TEST(LoadReportTest, EmptyRunIsSound) {
  const LoadReport report(options());
  EXPECT_DOUBLE_EQ(report.total().attainment(), 1);
  EXPECT_DOUBLE_EQ(report.goodput(), 0);
  EXPECT_THAT(report.to_text(), HasSubstr("attainment 100.000 %"));
}

TEST(LoadReportTest, KindsOfFailureAreBounded) {
  LoadReport report(options());
  for (int i = 0; i < 1000; ++i) report.record(ended(LoadOutcome::kFailed, fmt::format("failure {}", i)));
  EXPECT_LE(report.failures().size(), 33u);
  uint64_t sum = 0;
  for (const auto& [reason, count] : report.failures()) sum += count;
  EXPECT_EQ(sum, 1000u);
}

TEST(LoadReportTest, JsonSaysTheSame) {
  LoadReport report(options({"a", "b"}));
  for (int i = 0; i < 99; ++i) report.record(answered(0, 10, 0));
  report.record(ended(LoadOutcome::kRefused, "unmeetable", 1));
  report.record(ended(LoadOutcome::kFailed, "bad \xff byte", 1));
  report.set_duration(Duration::seconds(10));
  const auto json = nlohmann::json::parse(report.to_json());
  EXPECT_EQ(json["settings"]["url"], "127.0.0.1:8001");
  EXPECT_EQ(json["offered"], 101);
  EXPECT_EQ(json["good"], 99);
  EXPECT_EQ(json["refusals"]["unmeetable"], 1);
  EXPECT_DOUBLE_EQ(json["goodput_per_second"].get<double>(), 9.9);
  EXPECT_DOUBLE_EQ(json["deadline_milliseconds"].get<double>(), 50);
  EXPECT_NEAR(json["latency_milliseconds"]["p99.9"].get<double>(), 10, 0.1);
  ASSERT_EQ(json["models"].size(), 2u);
  EXPECT_EQ(json["models"][1]["name"], "b");
  EXPECT_EQ(json["models"][1]["failed"], 1);
}

TEST(LoadReportTest, OneModelsJsonEntryIsTheTotal) {
  LoadReport report(options());
  report.record(answered(0, 10));
  const auto json = nlohmann::json::parse(report.to_json());
  ASSERT_EQ(json["models"].size(), 1u);
  EXPECT_EQ(json["models"][0]["good"], 1);
}

TEST(LoadReportTest, TextShowsTheWorstModelsFirst) {
  LoadReport report(options({"fine", "broken"}));
  report.record(answered(0, 10, 0));
  report.record(ended(LoadOutcome::kRefused, "expired", 1));
  const std::string text = report.to_text();
  EXPECT_LT(text.find("broken"), text.find("fine"));
  EXPECT_THAT(text, HasSubstr("attainment 50.000 %"));
  EXPECT_THAT(text, HasSubstr("expired"));
  EXPECT_THAT(text, Not(HasSubstr("WARNING")));
}

}  // namespace
}  // namespace foliot
