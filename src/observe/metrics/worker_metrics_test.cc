#include "observe/metrics/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class WorkerMetricsTest : public ::testing::Test {
 protected:
  WorkerMetricsTest() {
    const WorkerMemory memory{.page_count = 10, .io_cache = [this] { return IoCacheBytes{io_used_, 1000}; }};
    metrics_.set_memory({memory, memory});
    metrics_.on_model({.id = ModelId(1), .name = "doubling", .runnables = {{.pages = 3}}});
  }

  void run(ActionType type, OutcomeStatus status = OutcomeStatus::kDone, uint32_t device = 0) {
    Action action;
    action.device = DeviceId(device);
    action.type = type;
    action.model = ModelId(1);
    metrics_.on_action(action, TimePoint());
    Outcome outcome;
    outcome.status = status;
    outcome.duration = Duration::milliseconds(500);
    outcome.input_duration = Duration::milliseconds(250);
    outcome.output_duration = Duration::milliseconds(125);
    metrics_.on_outcome(action, outcome, TimePoint());
  }

  uint64_t io_used_ = 0;
  WorkerMetrics metrics_{WorkerMetrics::Links::kShown};
};

TEST_F(WorkerMetricsTest, CountsActionsAndTheirTime) {
  run(ActionType::kLoad);
  run(ActionType::kInfer);
  run(ActionType::kInfer);
  run(ActionType::kInfer, OutcomeStatus::kFailed);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_worker_actions_total{action=\"LOAD\",device=\"0\",status=\"done\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_actions_total{action=\"INFER\",device=\"0\",status=\"done\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_actions_total{action=\"INFER\",device=\"0\",status=\"failed\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_action_duration_seconds_sum{action=\"LOAD\",device=\"0\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_action_duration_seconds_count{action=\"EXEC\",device=\"0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_executor_busy_seconds_total{device=\"0\",executor=\"load\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_executor_busy_seconds_total{device=\"0\",executor=\"input\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_executor_busy_seconds_total{device=\"0\",executor=\"exec\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_executor_busy_seconds_total{device=\"0\",executor=\"output\"} 0.25\n"));
}

TEST_F(WorkerMetricsTest, ShowsWhatItsMemoryHolds) {
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_worker_pages{device=\"0\",state=\"free\"} 10\n"));
  run(ActionType::kLoad);
  run(ActionType::kLoad, OutcomeStatus::kNoPages);
  io_used_ = 64;
  std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_worker_pages{device=\"0\",state=\"used\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_pages{device=\"0\",state=\"free\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_io_cache_bytes{device=\"0\",state=\"used\"} 64\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_io_cache_bytes{device=\"0\",state=\"free\"} 936\n"));
  run(ActionType::kUnload);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_worker_pages{device=\"0\",state=\"used\"} 0\n"));
}

TEST_F(WorkerMetricsTest, DistinguishesDevices) {
  run(ActionType::kLoad, OutcomeStatus::kDone, 1);
  run(ActionType::kInfer, OutcomeStatus::kDone, 1);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_worker_actions_total{action=\"INFER\",device=\"1\",status=\"done\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_pages{device=\"0\",state=\"used\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("foliot_worker_pages{device=\"1\",state=\"used\"} 3\n"));
}

TEST_F(WorkerMetricsTest, ShowsWhatIsUnderWay) {
  metrics_.on_action(Action(), TimePoint());
  metrics_.on_action(Action(), TimePoint());
  metrics_.on_outcome(Action(), Outcome(), TimePoint());
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_worker_actions_outstanding{device=\"0\"} 1\n"));
}

TEST_F(WorkerMetricsTest, ShowsItsLinks) {
  metrics_.on_controller(true);
  metrics_.on_frontends(2);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_worker_controller_connected 1\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_worker_frontends 2\n"));
  metrics_.on_controller(false);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_worker_controller_connected 0\n"));
}

TEST_F(WorkerMetricsTest, WithoutLinksShowsNone) {
  WorkerMetrics local(WorkerMetrics::Links::kNone);
  local.on_controller(true);
  local.on_frontends(1);
  EXPECT_THAT(local.text(), Not(HasSubstr("controller_connected")));
}

TEST_F(WorkerMetricsTest, BeforeItHasMemoryItShowsNone) {
  EXPECT_THAT(WorkerMetrics(WorkerMetrics::Links::kShown).text(), Not(HasSubstr("state=\"free\"")));
}

}  // namespace
}  // namespace foliot
