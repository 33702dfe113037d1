#include "observe/metrics/task_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TaskMetricsTest : public ::testing::Test {
 protected:
  TaskMetricsTest() {
    for (const auto& [id, name] : {std::pair{1u, "small"}, {2u, "large"}}) {
      metrics_.on_model({.id = ModelId(id), .name = name});
    }
    TaskInfo task;
    task.id = ServedTaskId(3);
    task.name = "photos";
    metrics_.on_task(task);
    for (const auto& [id, kind] : {std::pair{0u, "cpu"}, {1u, "cuda"}}) {
      metrics_.on_device({.device = DeviceId(id), .joined = true, .kind = kind}, TimePoint());
    }
  }
  void come(uint64_t id, ServedTaskId task = ServedTaskId(3)) {
    metrics_.on_request({.id = RequestId(id), .task = task}, TimePoint());
  }
  // For 10 s.
  void run(std::vector<uint64_t> rows, uint32_t model, uint32_t device = 0) {
    Action action;
    action.type = ActionType::kInfer;
    action.model = ModelId(model);
    action.device = DeviceId(device);
    for (const uint64_t row : rows) action.rows.add({RequestId(row), PayloadHandle()});
    Outcome outcome;
    outcome.duration = Duration::seconds(10);
    metrics_.on_outcome(action, outcome, TimePoint());
  }
  void end(uint64_t id, uint32_t model, Refusal refusal = Refusal::kNone) {
    metrics_.on_completion({.id = RequestId(id), .model = ModelId(model), .task = ServedTaskId(3), .refusal = refusal},
                           TimePoint());
  }

  TaskMetrics metrics_{DevicePrices{{{"cpu", 36.0}}, 3.6}};
};

TEST_F(TaskMetricsTest, CountsRowsByVariant) {
  come(1);
  come(2);
  end(1, 1);
  end(2, 2, Refusal::kUnmeetable);
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_task_requests_total{outcome=\"served\",task=\"photos\",variant=\"small\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("foliot_task_requests_total{outcome=\"unmeetable\",task=\"photos\",variant=\"large\"} 1\n"));
}

TEST_F(TaskMetricsTest, ARowCostsItsPartOfItsBatch) {
  come(1);
  run({1, 7}, 1);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_task_dollars_total{task=\"photos\",variant=\"small\"} 0.05\n"))
      << "5 s of 0.01 $ each; the other row is no task's";
  run({1}, 2, 1);
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_task_dollars_total{task=\"photos\",variant=\"large\"} 0.01\n"))
      << "of a kind without a price";
}

TEST_F(TaskMetricsTest, OtherRequestsHaveNoSeries) {
  come(1, ServedTaskId());
  run({1}, 1);
  metrics_.on_completion({.id = RequestId(1), .model = ModelId(1)}, TimePoint());
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("small")));
}

}  // namespace
}  // namespace foliot
