#include "answer/inference/statistics.h"

#include <gtest/gtest.h>

#include "answer/inference/conformance/test_models.h"

namespace foliot {
namespace {

Duration milliseconds(int64_t n) { return Duration::milliseconds(n); }

TEST(StatisticsTest, SplitsACallsTime) {
  CallStatistics statistics;
  Completion last;
  last.arrival = TimePoint() + milliseconds(100);
  last.exec_start = last.arrival + milliseconds(7);
  last.input_duration = milliseconds(2);
  last.exec_duration = milliseconds(10);
  last.output_duration = milliseconds(1);
  last.finished = last.arrival + milliseconds(19);
  const auto counters = statistics.of(doubling_model(ModelId(1)));
  counters->count_served(3, last, 1234);

  const ModelStatistics read = counters->snapshot();
  EXPECT_EQ(read.last_inference_milliseconds, 1234u);
  EXPECT_EQ(read.inference_count, 3u);
  EXPECT_EQ(read.success.count, 1u);
  EXPECT_EQ(read.success.nanoseconds, 19'000'000u);
  EXPECT_EQ(read.queue.nanoseconds, 5'000'000u);
  EXPECT_EQ(read.compute_input.nanoseconds, 2'000'000u);
  EXPECT_EQ(read.compute_infer.nanoseconds, 10'000'000u);
  EXPECT_EQ(read.compute_output.nanoseconds, 1'000'000u);
  EXPECT_EQ(read.fail.count, 0u);
}

TEST(StatisticsTest, CountsExecutionsByTheirRows) {
  ModelCounters counters("m", "1");
  Outcome outcome;
  outcome.duration = milliseconds(4);
  counters.count_execution(4, outcome);
  counters.count_execution(1, outcome);
  counters.count_execution(4, outcome);
  const ModelStatistics read = counters.snapshot();
  EXPECT_EQ(read.execution_count, 3u);
  ASSERT_EQ(read.batches.size(), 2u);
  EXPECT_EQ(read.batches[0].batch_size, 1u);
  EXPECT_EQ(read.batches[1].batch_size, 4u);
  EXPECT_EQ(read.batches[1].compute_infer.count, 2u);
  EXPECT_EQ(read.batches[1].compute_infer.nanoseconds, 8'000'000u);
}

TEST(StatisticsTest, CountsLargeBatchesOfContainers) {
  ModelCounters counters("m", "1");
  Outcome outcome;
  outcome.duration = milliseconds(4);
  for (const uint32_t rows : {kBatchSizeMax, kCompiledBatchSizeMax + 1, kCompiledBatchSizeMax, kBatchSizeMax}) {
    counters.count_execution(rows, outcome);
  }
  const ModelStatistics read = counters.snapshot();
  ASSERT_EQ(read.batches.size(), 3u);
  EXPECT_EQ(read.batches[0].batch_size, kCompiledBatchSizeMax);
  EXPECT_EQ(read.batches[1].batch_size, kCompiledBatchSizeMax + 1);
  EXPECT_EQ(read.batches[2].batch_size, kBatchSizeMax);
  EXPECT_EQ(read.batches[2].compute_infer.count, 2u);
}

ModelInfo version_of_doubling(const std::string& version) {
  ModelInfo model = doubling_model(ModelId(1));
  model.version = version;
  return model;
}

TEST(StatisticsTest, KeepsOneSetOfCountersPerNameAndVersion) {
  CallStatistics statistics;
  const auto first = statistics.of(doubling_model(ModelId(1)));
  EXPECT_EQ(first, statistics.of(doubling_model(ModelId(9))));
  statistics.of(whole_model(ModelId(3)));
  const auto all = statistics.snapshot();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "doubling");
  EXPECT_EQ(all[1].name, "whole");
}

TEST(StatisticsTest, CountsForTheVersionThatServedAndKeepsTheOneBefore) {
  CallStatistics statistics;
  const auto first = statistics.of(version_of_doubling("1"));
  const auto second = statistics.of(version_of_doubling("2"));
  second->count_failed(milliseconds(1));
  EXPECT_EQ(statistics.of(version_of_doubling("1")), first);
  first->count_failed(milliseconds(1));
  first->count_failed(milliseconds(1));
  auto all = statistics.snapshot();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].version, "2");
  EXPECT_EQ(all[0].fail.count, 1u);
  EXPECT_EQ(all[1].version, "1");
  EXPECT_EQ(all[1].fail.count, 2u);

  statistics.of(version_of_doubling("3"));
  first->count_failed(milliseconds(1));  // the last call of a version that is no longer requested
  all = statistics.snapshot();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].version, "3");
  EXPECT_EQ(all[1].version, "2");
  EXPECT_EQ(all[1].fail.count, 1u);
}

}  // namespace
}  // namespace foliot
