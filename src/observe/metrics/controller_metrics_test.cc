#include "observe/metrics/controller_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/metrics/gone_models.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ControllerMetricsTest : public ::testing::Test {
 protected:
  ControllerMetricsTest() { metrics_.on_model({.id = ModelId(1), .name = "doubling"}); }

  void finish(ActionType type, uint32_t rows, OutcomeStatus status = OutcomeStatus::kDone, ModelId model = ModelId(1)) {
    Action action;
    action.type = type;
    action.model = model;
    action.expected = Duration::milliseconds(2);
    for (uint32_t i = 0; i < rows; ++i) action.rows.add({});
    Outcome outcome;
    outcome.status = status;
    outcome.duration = Duration::milliseconds(5);
    metrics_.on_outcome(action, outcome, TimePoint());
  }
  void complete(Refusal refusal) { metrics_.on_completion({.refusal = refusal}, TimePoint()); }

  ControllerMetrics metrics_;
};

TEST_F(ControllerMetricsTest, IdleModelsHaveNoSeries) { EXPECT_THAT(metrics_.text(), Not(HasSubstr("doubling"))); }

TEST_F(ControllerMetricsTest, CountsActions) {
  finish(ActionType::kLoad, 0);
  finish(ActionType::kInfer, 4);
  finish(ActionType::kUnload, 0);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_loads_total{model=\"doubling\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_unloads_total{model=\"doubling\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_batch_size_sum 4\n"));
  EXPECT_THAT(text, HasSubstr("foliot_batch_size_bucket{le=\"256\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_prediction_error_seconds_sum{action=\"INFER\"} 0.003\n"));
}

TEST_F(ControllerMetricsTest, SeriesOfAModelLeaveAWhileAfterIt) {
  finish(ActionType::kLoad, 0);
  finish(ActionType::kInfer, 4);
  metrics_.on_model_removed(ModelId(1), TimePoint());
  complete(Refusal::kNone);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_batches_total{model=\"doubling\"} 1\n"));
  metrics_.on_completion({}, TimePoint() + GoneModels::kTime);
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("doubling")));
}

TEST_F(ControllerMetricsTest, CountsActionsThatFailedByDevice) {
  finish(ActionType::kLoad, 0, OutcomeStatus::kFailed);
  finish(ActionType::kLoad, 0, OutcomeStatus::kFailed);
  finish(ActionType::kInfer, 1, OutcomeStatus::kTooLate);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_actions_total{action=\"LOAD\",device=\"0\",status=\"failed\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_actions_total{action=\"INFER\",device=\"0\",status=\"too_late\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("foliot_loads_total{")));
}

TEST_F(ControllerMetricsTest, CountsRequestsByHowTheyEnded) {
  complete(Refusal::kNone);
  complete(Refusal::kOverload);
  complete(Refusal::kOverload);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_controller_requests_total{outcome=\"served\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("foliot_controller_requests_total{outcome=\"overload\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_controller_requests_total{outcome=\"worker_lost\"} 0\n"));
}

TEST_F(ControllerMetricsTest, ShowsTheLastTurn) {
  metrics_.on_turn(Duration::microseconds(30), {9, 0, 0}, 4);
  metrics_.on_turn(Duration::microseconds(10), {7, 5, 0}, 3);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_turn_duration_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("foliot_queued_requests{class=\"deadline\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("foliot_queued_requests{class=\"best_effort\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("foliot_queued_requests{class=\"offline\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("foliot_actions_outstanding 3\n"));
}

TEST_F(ControllerMetricsTest, ShowsDevicesAndTheirPages) {
  metrics_.on_device({.device = DeviceId(2), .joined = true}, TimePoint());
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_device_up{device=\"2\"} 1\n"));
  metrics_.on_device({.device = DeviceId(2), .state = DeviceState::kLost, .trouble = DeviceTrouble::kSlow},
                     TimePoint());
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_device_up{device=\"2\"} 0\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_device_changes_total{state=\"lost\",trouble=\"slow\"} 1\n"));
  metrics_.on_pages(DeviceId(2), 3, 10);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_page_cache_pages{device=\"2\",state=\"used\"} 3\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_page_cache_pages{device=\"2\",state=\"free\"} 7\n"));
}

// Or an alert would fire for good after a worker was wanted no longer.
TEST_F(ControllerMetricsTest, ADeviceThatHasLeftHasNoGauges) {
  const auto show = [&] {
    metrics_.on_timing(DeviceId(2), Duration::milliseconds(1), Duration::milliseconds(5), TimePoint());
    metrics_.on_pages(DeviceId(2), 3, 10);
  };
  metrics_.on_device({.device = DeviceId(2), .joined = true}, TimePoint());
  show();
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_deadline_margin_seconds{device=\"2\"} 0.001\n"));
  metrics_.on_device({.device = DeviceId(2), .state = DeviceState::kLost, .trouble = DeviceTrouble::kLeft},
                     TimePoint());
  show();
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("device=\"2\"")));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_device_changes_total{state=\"lost\",trouble=\"left\"} 1\n"));
  metrics_.on_device({.device = DeviceId(2), .joined = true}, TimePoint());
  show();
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_device_up{device=\"2\"} 1\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_page_cache_pages{device=\"2\",state=\"used\"} 3\n"));
}

TEST_F(ControllerMetricsTest, UnknownModelsHaveNoSeries) {
  finish(ActionType::kLoad, 0, OutcomeStatus::kDone, ModelId(77));
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("foliot_loads_total{")));
}

}  // namespace
}  // namespace foliot
