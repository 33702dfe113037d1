#include "answer/model_calls/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/inference/conformance/test_models.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() { metrics_.on_model(doubling_model(ModelId(1))); }

  void complete(Refusal refusal, TimePoint deadline = TimePoint::infinite_future()) {
    Completion completion;
    completion.model = ModelId(1);
    completion.refusal = refusal;
    completion.deadline = deadline;
    completion.arrival = TimePoint() + Duration::seconds(1);
    completion.exec_start = completion.arrival + Duration::milliseconds(1);
    completion.exec_duration = Duration::milliseconds(3);
    completion.finished = completion.arrival + Duration::milliseconds(4);
    metrics_.count(doubling_model(ModelId(1)), completion);
  }
  void finish(ActionType type, uint32_t rows) {
    Action action;
    action.type = type;
    action.model = ModelId(1);
    for (uint32_t i = 0; i < rows; ++i) action.rows.add({});
    Outcome outcome;
    outcome.duration = Duration::milliseconds(5);
    metrics_.on_outcome(action, outcome, TimePoint());
  }

  CallStatistics statistics_;
  Metrics metrics_{statistics_};
};

TEST_F(MetricsTest, IdleModelsHaveNoSeries) {
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("foliot_request_duration_seconds_bucket")));
}

TEST_F(MetricsTest, CountsRequestsByOutcome) {
  complete(Refusal::kNone);
  complete(Refusal::kNone);
  complete(Refusal::kExpired);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_requests_total{model=\"doubling\",outcome=\"served\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_requests_total{model=\"doubling\",outcome=\"expired\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_request_duration_seconds_count{model=\"doubling\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_queue_duration_seconds_sum 0.002\n"));
  EXPECT_THAT(text, HasSubstr("foliot_exec_duration_seconds_count 2\n"));
}

TEST_F(MetricsTest, ReportsHowTenantsFare) {
  const std::string text =
      metrics_.text({{.name = "app", .id = TenantId(0xabc), .admitted = 9, .served = 4, .over_share = 3, .missed = 2}});
  EXPECT_THAT(text, HasSubstr("foliot_tenant_requests_total{tenant=\"app\",outcome=\"admitted\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("foliot_tenant_answers_total{tenant=\"app\",outcome=\"served\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("foliot_tenant_answers_total{tenant=\"app\",outcome=\"over_share\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("foliot_tenant_answers_total{tenant=\"app\",outcome=\"missed\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_tenant_info{tenant=\"app\",tenant_id=\"00000abc\"} 1\n"));
}

TEST_F(MetricsTest, CountsMissedDeadlines) {
  const TimePoint soon = TimePoint() + Duration::milliseconds(1001);
  const TimePoint later = TimePoint() + Duration::seconds(9);
  complete(Refusal::kNone);
  complete(Refusal::kNone, later);
  complete(Refusal::kNone, later);
  complete(Refusal::kCancelled, soon);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_deadline_missed_total{model=\"doubling\"} 0\n"));
  complete(Refusal::kLate, soon);
  complete(Refusal::kUnmeetable, later);
  metrics_.count_refused(doubling_model(ModelId(1)), Refusal::kOverload, 3, Duration::milliseconds(1),
                         Duration::milliseconds(50));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_deadline_missed_total{model=\"doubling\"} 4\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_deadline_requests_total{model=\"doubling\"} 6\n"));
}

TEST_F(MetricsTest, ReportsWhenRequestsWereRefused) {
  const TimePoint arrival = TimePoint() + Duration::seconds(1);
  complete(Refusal::kExpired, arrival + Duration::milliseconds(5));  // with 0.8 of its time over
  complete(Refusal::kExpired);
  complete(Refusal::kUnmeetable, arrival + Duration::milliseconds(5));
  complete(Refusal::kNone, arrival + Duration::milliseconds(5));
  metrics_.count_refused(doubling_model(ModelId(1)), Refusal::kOverload, 3, Duration::milliseconds(1),
                         Duration::milliseconds(50));
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_refusal_deadline_ratio_bucket{le=\"0.05\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("foliot_refusal_deadline_ratio_bucket{le=\"0.6\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("foliot_refusal_deadline_ratio_bucket{le=\"0.9\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("foliot_refusal_deadline_ratio_count 4\n"));
}

TEST_F(MetricsTest, CountersBeginWithTheFirstRequestAtZero) {
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("foliot_requests_total{")));
  complete(Refusal::kNone);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_requests_total{model=\"doubling\",outcome=\"worker_lost\"} 0\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_deadline_missed_total{model=\"doubling\"} 0\n"));
}

TEST_F(MetricsTest, AnActiveModelHasFewSeries) {
  for (size_t refusal = 0; refusal <= static_cast<size_t>(kRefusalLast); ++refusal) {
    complete(static_cast<Refusal>(refusal), TimePoint() + Duration::seconds(9));
  }
  finish(ActionType::kInfer, 4);
  const std::string text = metrics_.text();
  size_t series = 0;
  for (size_t at = text.find("model=\"doubling\""); at != std::string::npos;
       at = text.find("model=\"doubling\"", at + 1)) {
    ++series;
  }
  EXPECT_EQ(series, 34) << "with those of the controller 40";
}

TEST_F(MetricsTest, SeriesOfAModelLeaveAWhileAfterIt) {
  complete(Refusal::kNone);
  const auto at = [](Duration since) { return TimePoint() + since; };
  const auto served = [](const std::string&) { return true; };
  const auto gone = [](const std::string&) { return false; };
  const Duration almost = Metrics::kGoneModelTime - Duration::nanoseconds(1);
  metrics_.forget_gone(gone, at(Duration()));
  metrics_.forget_gone(gone, at(almost));
  EXPECT_THAT(metrics_.text(), HasSubstr("model=\"doubling\""));
  metrics_.forget_gone(served, at(almost));  // it came back, so its time begins anew
  metrics_.forget_gone(gone, at(almost));
  metrics_.forget_gone(gone, at(Metrics::kGoneModelTime));
  EXPECT_THAT(metrics_.text(), HasSubstr("model=\"doubling\""));
  metrics_.forget_gone(gone, at(almost + Metrics::kGoneModelTime));
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("model=\"doubling\"")));
  complete(Refusal::kNone);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_requests_total{model=\"doubling\",outcome=\"served\"} 1\n"));
}

TEST_F(MetricsTest, CountsExecutions) {
  finish(ActionType::kLoad, 0);
  finish(ActionType::kInfer, 4);
  EXPECT_THAT(metrics_.text(), HasSubstr("nv_inference_exec_count{model=\"doubling\",version=\"1\"} 1\n"));
}

}  // namespace
}  // namespace foliot
