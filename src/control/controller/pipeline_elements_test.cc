// Stages that are visited for each element that another one counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/controller/test_pipeline_runs.h"
#include "foundation/base/test_time.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

TEST_F(PipelineRunsTest, AStageIsVisitedForEachElementThatIsCounted) {
  add_detector();
  info_.outputs = {{.sources = {of(1)}}};
  serve();
  const RequestId run = begin();
  EXPECT_EQ(under_way(run), "0");
  count_visit(run, 0, 3);
  EXPECT_EQ(under_way(run), "1 2 3");
  EXPECT_EQ(waiting_.at(visit_of(run, 3)).model, ModelId(3));
  EXPECT_EQ(waiting_.at(visit_of(run, 1)).deadline, waiting_.at(visit_of(run, 3)).deadline);
  serve_visit(run, 2);
  serve_visit(run, 1);
  EXPECT_EQ(under_way(run), "3") << "what follows waits for all";
  serve_visit(run, 3);
  EXPECT_EQ(under_way(run), "5");
  serve_visit(run, 5);
  ASSERT_TRUE(was_served(run));
  ASSERT_EQ(ended_[run].visits.size(), 3u);
  EXPECT_EQ(ended_[run].visits[0].slot, 2u);
  EXPECT_TRUE(ended_[run].empty_stages.empty());
}

TEST_F(PipelineRunsTest, AStageWithNoElementsCountsAsVisited) {
  add_detector();
  info_.outputs = {{.sources = {of(1)}}};
  serve();
  const RequestId run = begin();
  count_visit(run, 0, 0);
  EXPECT_EQ(under_way(run), "5");
  serve_visit(run, 5);
  ASSERT_TRUE(was_served(run));
  EXPECT_EQ(ended_[run].empty_stages, std::vector<uint32_t>{1});
}

TEST_F(PipelineRunsTest, AStageWithoutItsCountIsSkipped) {
  add_detector();
  add_stage("first", {{of_call()}});  // which the others follow
  std::rotate(info_.stages.begin(), info_.stages.end() - 1, info_.stages.end());
  info_.stages[1].inputs = {{of(0)}};
  info_.stages[1].requires_all = {{.stage = 0, .condition = 0}};
  info_.stages[2].for_each->stage = 1;
  info_.stages[2].inputs = {{of_call()}};
  info_.stages[3].inputs = {{of(2), of(0)}};
  serve();
  const RequestId run = begin();
  EXPECT_EQ(under_way(run), "0");
  serve_visit(run, 0, 0);
  EXPECT_EQ(under_way(run), "6");
}

TEST_F(PipelineRunsTest, ACountThatIsNoneRefusesTheRunWithValueAndLimit) {
  add_detector();
  add_stage("beside", {{of_call()}});
  serve();
  const std::map<std::string, float> wrong{
      {"5", 5.0f}, {"-1", -1.0f}, {"2.5", 2.5f}, {"nan", std::nanf("")}, {"inf", HUGE_VALF}};
  for (const auto& [text, count] : wrong) {
    const RequestId run = begin();
    EXPECT_EQ(under_way(run), "0 6");
    count_visit(run, 0, count);
    ASSERT_EQ(ended_.count(run), 1u) << text;
    EXPECT_EQ(ended_[run].refusal, Refusal::kModelError);
    EXPECT_EQ(ended_[run].detail,
              "stage 'detect': its output 'count' is " + text +
                  ", and must be a whole number from 0 to 4: it counts the elements that other stages are visited for");
    EXPECT_EQ(under_way(run), "") << "the others are cancelled";
  }
}

TEST_F(PipelineRunsTest, AnElementThatIsRefusedRefusesTheRunOnceNoneIsWithAWorker) {
  add_detector();
  serve();
  const RequestId run = begin();
  count_visit(run, 0, 4);
  running_ = {visit_of(run, 2)};
  refuse_visit(run, 3, Refusal::kExpired);
  EXPECT_EQ(under_way(run), "2");
  EXPECT_TRUE(ended_.empty());
  serve_visit(run, 2);
  ASSERT_EQ(ended_.count(run), 1u);
  EXPECT_EQ(ended_[run].refusal, Refusal::kExpired);
  EXPECT_EQ(ended_[run].detail, "stage 'classify'");
}

TEST_F(PipelineRunsTest, WhatIsReservedForElementsIsABatchOfAsManyAsRunsLatelyHad) {
  add_detector({1, 2, 4}, {ms(10), ms(12), ms(16)});
  serve();
  const auto reserve = [&] {
    const RequestId run = begin();
    const Duration reserved = waiting_.at(visit_of(run, 0)).reserve;
    runs_.cancel(run, Refusal::kCancelled, now_);
    runs_.advance(now_);
    return reserved - ms(1) - (kStage + cluster_.least_margin()) - cluster_.least_margin();
  };
  EXPECT_EQ(reserve(), ms(10)) << "nothing is known yet";
  const auto elements_are = [&](uint32_t elements) {
    for (int i = 0; i < 500; ++i) serve_detector(elements);
    now_ += ms(1);
  };
  elements_are(3);
  EXPECT_EQ(reserve(), ms(16));
  elements_are(0);
  EXPECT_EQ(reserve(), ms(0) - cluster_.least_margin());
  elements_are(2);
  EXPECT_EQ(reserve(), ms(12));
  elements_are(1);
  EXPECT_EQ(reserve(), ms(10)) << "nearly one";
}

TEST_F(PipelineRunsTest, WhatWasCountedIsForgottenWhileNothingComes) {
  add_detector({1, 2, 4}, {ms(10), ms(20), ms(40)});
  serve();
  for (int i = 0; i < 500; ++i) serve_detector(4);
  now_ += ms(1);
  EXPECT_EQ(under_way(begin(ms(40))), "") << "three stages, of which one takes 40 ms";
  now_ += Duration::seconds(5);
  EXPECT_EQ(under_way(begin(ms(55))), "0");
}

TEST_F(PipelineRunsTest, MoreElementsThanABatchHasTakeSeveral) {
  add_detector({1, 2}, {ms(10), ms(20)});
  serve();
  for (int i = 0; i < 500; ++i) serve_detector(3);
  now_ += ms(1);
  const RequestId run = begin();
  const Duration two_batches = ms(40) + cluster_.least_margin();
  EXPECT_EQ(waiting_.at(visit_of(run, 0)).reserve, ms(1) + two_batches + kStage + cluster_.least_margin());
}

TEST_F(PipelineRunsTest, TheWorkAheadIsThatOfTheElementsOnceTheyAreCounted) {
  add_detector();
  serve();
  const Duration slo = kStage * 10 - ms(1);
  // 30 ms each, with one element: the fourth would be over after 120 ms.
  std::vector<RequestId> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(begin(slo));
  for (const RequestId run : runs) EXPECT_EQ(under_way(run), "0");
  EXPECT_EQ(under_way(begin(slo)), "");
  const auto is_let_in = [&] {
    const RequestId run = begin(slo);
    const bool let_in = ended_.count(run) == 0;
    runs_.cancel(run, Refusal::kCancelled, now_);
    runs_.advance(now_);
    return let_in;
  };
  // 60 ms, and 20 of the first run.
  count_visit(runs[0], 0, 1);
  serve_visit(runs[0], 1);
  EXPECT_FALSE(is_let_in());
  serve_visit(runs[0], 5);
  EXPECT_TRUE(is_let_in());
  count_visit(runs[1], 0, 4);
  EXPECT_FALSE(is_let_in()) << "30 ms, and 40 for the elements, and 10";
  for (const uint32_t slot : {1, 2}) serve_visit(runs[1], slot);
  EXPECT_TRUE(is_let_in()) << "two of them are over";
}

TEST_F(PipelineRunsTest, VisitsForEachElementTakeTheirOwnPartAndLaterStagesAll) {
  add_detector();
  TensorSource of_call_each = of_call();
  of_call_each.each = true;
  info_.stages[1].inputs.push_back({of_call_each});
  info_.stages[1].inputs.push_back({of(0)});
  hold(100);
  serve();
  const RequestId run = begin();
  EXPECT_EQ(runs_.order(visit_of(run, 0)).count, 0u);
  Completion counted = end_of(run, 0);
  counted.count = 2;
  counted.action = ActionId(5);
  counted.device = DeviceId(7);
  waiting_.erase(visit_of(run, 0));
  runs_.visit_over(counted);
  runs_.advance(now_);
  const VisitOrder second = runs_.order(visit_of(run, 2));
  ASSERT_EQ(second.inputs.size(), 3u);
  EXPECT_EQ(second.inputs[0], (VisitOrder::Input{.taken = {1, 4}, .pieces = {{0, DeviceId(7)}}}));
  EXPECT_EQ(second.inputs[1], (VisitOrder::Input{.taken = {1, 4}, .pieces = {{}}}));
  EXPECT_EQ(second.inputs[2], (VisitOrder::Input{.pieces = {{0, DeviceId(7)}}}));
  EXPECT_EQ(second.count, std::nullopt);
  compute_visit(run, 1, 8);
  EXPECT_EQ(discarded(), "");
  compute_visit(run, 2, 9);
  EXPECT_EQ(discarded(), "0@7");
  const VisitOrder last = runs_.order(visit_of(run, 5));
  EXPECT_EQ(last.inputs[0], (VisitOrder::Input{.pieces = {{1, DeviceId(8)}, {2, DeviceId(9)}}, .pieces_most = 4}));
  compute_visit(run, 5, 7);
  EXPECT_EQ(discarded(), "1@8 2@9");
  EXPECT_TRUE(was_served(run));
}

TEST_F(PipelineRunsTest, RoomIsReservedForTheMostElements) {
  add_detector();
  hold(5);
  serve();
  EXPECT_EQ(under_way(begin()), "0");
  EXPECT_EQ(under_way(begin()), "");
}

TEST_F(PipelineRunsTest, WithTheHolderOfAnElementTheRunIsLost) {
  add_detector();
  hold(100);
  serve();
  const RequestId run = begin();
  Completion counted = end_of(run, 0);
  counted.count = 2;
  waiting_.erase(visit_of(run, 0));
  runs_.visit_over(counted);
  runs_.advance(now_);
  compute_visit(run, 2, 9);
  runs_.on_device_lost(DeviceId(9), now_);
  runs_.advance(now_);
  ASSERT_EQ(ended_.count(run), 1u);
  EXPECT_EQ(ended_[run].refusal, Refusal::kWorkerLost);
  EXPECT_EQ(ended_[run].detail, "stage 'classify': the worker that held its outputs is lost");
}

}  // namespace
}  // namespace foliot
