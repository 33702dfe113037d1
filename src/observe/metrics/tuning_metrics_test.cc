#include "observe/metrics/tuning_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TuningMetricsTest, ShowsTheStagesThatAreTunedNow) {
  TuningMetrics metrics;
  metrics.set({{"animals", "decode", 2, 1}, {"animals", "fine", 5, 3}});
  EXPECT_THAT(metrics.text(), HasSubstr("foliot_pipeline_replicas_wanted{pipeline=\"animals\",stage=\"fine\"} 5\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("foliot_pipeline_replicas_planned{pipeline=\"animals\",stage=\"fine\"} 3\n"));
  metrics.set({{"animals", "fine", 4, 3}});
  EXPECT_THAT(metrics.text(), HasSubstr("foliot_pipeline_replicas_wanted{pipeline=\"animals\",stage=\"fine\"} 4\n"));
  EXPECT_THAT(metrics.text(), Not(HasSubstr("decode")));
}

}  // namespace
}  // namespace foliot
