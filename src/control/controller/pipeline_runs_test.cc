#include "control/controller/pipeline_runs.h"

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

TEST_F(PipelineRunsTest, StagesFollowEachOther) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  const RequestId run = begin();
  EXPECT_EQ(under_way(run), "0");
  serve_visit(run, 0);
  EXPECT_EQ(under_way(run), "1");
  EXPECT_TRUE(ended_.empty());
  serve_visit(run, 1);
  ASSERT_EQ(ended_.count(run), 1u);
  EXPECT_TRUE(ended_[run].served());
  EXPECT_EQ(ended_[run].exec_duration, kStage * 2);
  EXPECT_EQ(runs_.size(), 0u);
}

TEST_F(PipelineRunsTest, AVisitIsARequestForItsModelWithAPayloadOfItsOwn) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  const RequestId run = begin();
  const Request& visit = waiting_.at(visit_of(run, 0));
  EXPECT_EQ(visit.model, ModelId(0));
  EXPECT_EQ(visit.pipeline, PipelineId());
  EXPECT_EQ(run_of(visit.payload), PayloadHandle(uint64_t{7} << 32 | run.value()));
  EXPECT_EQ(visit_slot(visit.payload), 0u);
}

TEST_F(PipelineRunsTest, WhatFollowsIsReservedOnTheLongestPath) {
  add_stage("first", {{of_call()}});
  add_stage("long", {{of(0)}});
  add_stage("longer", {{of(1)}});
  add_stage("short", {{of(0)}});
  serve();
  const RequestId run = begin(ms(100));
  const Duration two = (kStage + cluster_.least_margin()) * 2;
  EXPECT_EQ(waiting_.at(visit_of(run, 0)).deadline, now_ + ms(100) - two);
  EXPECT_EQ(waiting_.at(visit_of(run, 0)).reserve, ms(1) + two);
  serve_visit(run, 0);
  EXPECT_EQ(waiting_.at(visit_of(run, 1)).deadline, now_ + ms(100) - two / 2);
  EXPECT_EQ(waiting_.at(visit_of(run, 3)).deadline, now_ + ms(100));
}

TEST_F(PipelineRunsTest, WhatFollowsIsReservedWithTheWaitBeforeItAsLongAsThatIsRecent) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  const auto reserve = [&](RequestId run) { return waiting_.at(visit_of(run, 0)).reserve; };
  const Duration without = reserve(begin());
  for (int i = 0; i < 500; ++i) {
    const RequestId run = begin();
    serve_visit(run, 0);
    serve_visit(run, 1, 0, ms(40));
  }
  now_ += ms(1);
  EXPECT_NEAR((reserve(begin()) - without).to_milliseconds(), 40, 0.1);
  now_ += Duration::seconds(3);
  EXPECT_NEAR((reserve(begin()) - without).to_milliseconds(), 0, 0.1);
}

TEST_F(PipelineRunsTest, WhatIdleDevicesCouldNotMeetIsRefusedAtOnce) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  const RequestId run = begin(kStage * 2 - Duration::microseconds(1));
  ASSERT_EQ(ended_.count(run), 1u);
  EXPECT_EQ(ended_[run].refusal, Refusal::kUnmeetable);
  EXPECT_GE(ended_[run].earliest_completion, now_ + kStage * 2);
  EXPECT_TRUE(waiting_.empty());
  EXPECT_EQ(under_way(begin((kStage + cluster_.least_margin()) * 2)), "0");
}

TEST_F(PipelineRunsTest, RunsThatDevicesHaveNoTimeForAreRefusedAtOnce) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  // Each needs 20 ms of the one device: the fifth would be over after 100 ms.
  const Duration slo = kStage * 10 - ms(1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(under_way(begin(slo)), "0");
  const RequestId fifth = begin(slo);
  ASSERT_EQ(ended_.count(fifth), 1u);
  EXPECT_EQ(ended_[fifth].refusal, Refusal::kOverload);
  EXPECT_GE(ended_[fifth].earliest_completion, now_ + kStage * 10);
  // One that is more urgent comes before them.
  EXPECT_EQ(under_way(begin(slo - ms(10))), "0");
  // What was done or given up is no work any more: of 100 ms that are ahead now, 30, and then 20.
  for (uint64_t id = 1; id <= 3; ++id) serve_visit(RequestId(id), 0);
  EXPECT_EQ(under_way(begin(slo)), "0");
  EXPECT_EQ(under_way(begin(slo)), "");
  runs_.cancel(RequestId(4), Refusal::kCancelled, now_);
  runs_.advance(now_);
  EXPECT_EQ(under_way(begin(slo)), "0");
}

TEST_F(PipelineRunsTest, WhatIsSkippedIsNoWorkAnyMore) {
  add_stage("first", {{of_call()}});
  add_stage("some", {{of(0)}}, {{.stage = 0, .condition = 0}});
  add_stage("all", {{of(0)}});
  serve();
  const Duration slo = kStage * 10 - ms(1);
  // 30 ms each, and 20 for what follows the first stage.
  std::vector<RequestId> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(begin(slo));
  for (const RequestId run : runs) EXPECT_EQ(under_way(run), "0");
  EXPECT_EQ(under_way(begin(slo)), "");
  serve_visit(runs[0], 0, 0);
  EXPECT_EQ(under_way(runs[0]), "2");
  // 10 and 60 ms are ahead.
  EXPECT_EQ(under_way(begin(slo)), "0");
}

TEST_F(PipelineRunsTest, AConditionOnASkippedStageDoesNotHold) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of_call()}}, {{.stage = 0, .condition = 0}});
  add_stage("third", {{of_call()}}, {{.stage = 1, .condition = 0}});
  serve();
  const RequestId run = begin();
  serve_visit(run, 0, 0);
  EXPECT_TRUE(was_served(run));
}

TEST_F(PipelineRunsTest, StagesThatWereComputedForNothingMakeItMoreCautious) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  const Duration slo = kStage * 10 - ms(1);
  const auto taken = [&] {
    std::vector<RequestId> runs;
    RequestId run = begin(slo);
    for (; ended_.count(run) == 0; run = begin(slo)) runs.push_back(run);
    for (const RequestId each : runs) runs_.cancel(each, Refusal::kCancelled, now_);
    runs_.advance(now_);
    return runs.size();
  };
  EXPECT_EQ(taken(), 4u);
  for (int i = 0; i < 20; ++i) refuse_visit(begin(slo), 0, Refusal::kExpired);
  EXPECT_EQ(taken(), 4u) << "nothing was computed";
  for (int i = 0; i < 20; ++i) {
    const RequestId run = begin(slo);
    serve_visit(run, 0);
    refuse_visit(run, 1, Refusal::kExpired);
  }
  EXPECT_LT(taken(), 4u);
  for (int i = 0; i < 5000; ++i) {
    const RequestId run = begin(slo);
    serve_visit(run, 0);
    serve_visit(run, 1);
  }
  EXPECT_GE(taken(), 4u);
}

// Of ten runs one needs a second stage, which takes as long as the first of all ten.
TEST_F(PipelineRunsTest, AStageOfFewRunsIsLetInWhenItsConditionIsKnown) {
  add_stage("cheap", {{of_call()}});
  add_stage("dear", {{of_call()}}, {{.stage = 0, .condition = 0}}, kStage * 10);
  serve();
  for (int i = 0; i < 300; ++i) {
    const RequestId run = begin();
    serve_visit(run, 0, i % 10 == 0 ? 1 : 0);
    if (i % 10 == 0) serve_visit(run, 1);
  }
  now_ += ms(1);
  // The work of four runs is ahead; what few of them need besides is not counted yet.
  std::vector<RequestId> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(begin(ms(55)));
  for (const RequestId run : runs) EXPECT_EQ(under_way(run), "0");
  serve_visit(runs[0], 0, 1);
  ASSERT_EQ(ended_.count(runs[0]), 1u);
  EXPECT_EQ(ended_[runs[0]].refusal, Refusal::kOverload);
  EXPECT_EQ(ended_[runs[0]].detail, "stage 'dear'");
  // With time for it, it is let in; not while runs that come are refused.
  const RequestId patient = begin(ms(900));
  serve_visit(patient, 0, 1);
  EXPECT_EQ(under_way(patient), "1");
  while (under_way(begin(ms(900))) == "0") continue;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(under_way(begin(ms(900))), "");
  serve_visit(runs[1], 0, 0);
  EXPECT_TRUE(was_served(runs[1]));
  const RequestId urgent = begin(ms(400));
  serve_visit(urgent, 0, 1);
  EXPECT_EQ(ended_[urgent].refusal, Refusal::kOverload);
}

// The same with a stage beside it that takes as long: dropping a run when it comes to the dear stage would have that
// computed in vain.
TEST_F(PipelineRunsTest, AStageOfFewRunsIsLetInOnArrivalWhereOthersAreComputedBesideIt) {
  add_stage("cheap", {{of_call()}});
  add_stage("dear", {{of_call()}}, {{.stage = 0, .condition = 0}}, kStage * 10);
  add_stage("beside", {{of_call()}}, {}, kStage * 10);
  serve();
  for (int i = 0; i < 300; ++i) {
    const RequestId run = begin();
    serve_visit(run, 0, i % 10 == 0 ? 1 : 0);
    serve_visit(run, 2);
    if (i % 10 == 0) serve_visit(run, 1);
  }
  now_ += ms(1);
  const RequestId run = begin(ms(120));
  serve_visit(run, 0, 1);
  EXPECT_EQ(under_way(run), "1 2");
}

TEST_F(PipelineRunsTest, BranchesRunAtOnceAndAreJoined) {
  add_stage("first", {{of_call()}});
  add_stage("left", {{of(0)}});
  add_stage("right", {{of(0)}});
  add_stage("join", {{of(1)}, {of(2)}});
  serve();
  const RequestId run = begin();
  serve_visit(run, 0);
  EXPECT_EQ(under_way(run), "1 2");
  serve_visit(run, 2);
  EXPECT_EQ(under_way(run), "1");
  serve_visit(run, 1);
  EXPECT_EQ(under_way(run), "3");
}

TEST_F(PipelineRunsTest, AStageIsVisitedOnlyWhereItsConditionsHold) {
  add_stage("cheap", {{of_call()}});
  add_stage("fine", {{of_call()}}, {{.stage = 0, .condition = 2}});
  add_stage("after", {{of(1)}});
  serve();
  const RequestId unsure = begin();
  const RequestId sure = begin();
  serve_visit(unsure, 0, 0b100);
  EXPECT_EQ(under_way(unsure), "1");
  serve_visit(sure, 0, 0b011);
  EXPECT_TRUE(was_served(sure));
  serve_visit(unsure, 1);
  EXPECT_EQ(under_way(unsure), "2");
}

TEST_F(PipelineRunsTest, AnInputHasTheFirstSourceThatWasVisited) {
  add_stage("cheap", {{of_call()}});
  add_stage("fine", {{of_call()}}, {{.stage = 0, .condition = 0}});
  add_stage("last", {{of(1), of(0)}});
  serve();
  const RequestId unsure = begin();
  serve_visit(unsure, 0, 1);
  EXPECT_EQ(under_way(unsure), "1");  // the last waits for it
  const RequestId sure = begin();
  serve_visit(sure, 0, 0);
  EXPECT_EQ(under_way(sure), "2");
}

TEST_F(PipelineRunsTest, AStageUnderConditionsCountsWhileHalfOfTheRunsVisitIt) {
  add_stage("cheap", {{of_call()}});
  add_stage("fine", {{of_call()}}, {{.stage = 0, .condition = 0}});
  serve();
  const auto reserve = [&](RequestId run) { return waiting_.at(visit_of(run, 0)).reserve - ms(1); };
  const RequestId first = begin();
  EXPECT_GE(reserve(first), kStage);
  serve_visit(first, 0, 0);
  for (int i = 0; i < 100; ++i) serve_visit(begin(), 0, 0);
  now_ += Duration::microseconds(1);
  EXPECT_EQ(reserve(begin()), Duration());
}

TEST_F(PipelineRunsTest, ARefusalNamesItsStageAndStopsTheOtherBranches) {
  add_stage("left", {{of_call()}});
  add_stage("right", {{of_call()}});
  serve();
  const RequestId run = begin();
  EXPECT_EQ(under_way(run), "0 1");
  refuse_visit(run, 1, Refusal::kOverload, "a queue is full");
  ASSERT_EQ(ended_.count(run), 1u);
  EXPECT_EQ(ended_[run].refusal, Refusal::kOverload);
  EXPECT_EQ(ended_[run].detail, "stage 'right': a queue is full");
  EXPECT_TRUE(waiting_.empty());
}

TEST_F(PipelineRunsTest, ARunEndsWhenNoneOfItsVisitsIsWithAWorker) {
  add_stage("left", {{of_call()}});
  add_stage("right", {{of_call()}});
  serve();
  const RequestId run = begin();
  running_ = {visit_of(run, 0)};
  refuse_visit(run, 1, Refusal::kExpired);
  EXPECT_TRUE(ended_.empty());
  serve_visit(run, 0);
  EXPECT_EQ(ended_[run].refusal, Refusal::kExpired);
}

TEST_F(PipelineRunsTest, ACancelledRunEndsOnce) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  const RequestId waits = begin();
  runs_.cancel(waits, Refusal::kCancelled, now_);
  runs_.advance(now_);
  EXPECT_EQ(ended_[waits].refusal, Refusal::kCancelled);
  runs_.cancel(waits, Refusal::kCancelled, now_);
  const RequestId runs = begin();
  running_ = {visit_of(runs, 0)};
  runs_.cancel(runs, Refusal::kCancelled, now_);
  serve_visit(runs, 0);
  EXPECT_EQ(ended_[runs].refusal, Refusal::kCancelled);
  EXPECT_EQ(under_way(runs), "");
}

TEST_F(PipelineRunsTest, RunsGoOnWhenTheirPipelineIsRemoved) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  serve();
  const RequestId before = begin();
  runs_.remove(PipelineId(1));
  const RequestId after = begin();
  EXPECT_EQ(ended_[after].refusal, Refusal::kUnloaded);
  serve_visit(before, 0);
  serve_visit(before, 1);
  EXPECT_TRUE(was_served(before));
}

// The last reference to a model lets the model go.
TEST_F(PipelineRunsTest, APipelineThatIsRemovedIsKeptByItsRunsOnly) {
  add_stage("first", {{of_call()}});
  info_.id = PipelineId(1);
  auto info = std::make_shared<const PipelineInfo>(info_);
  const std::weak_ptr<const PipelineInfo> kept = info;
  runs_.add(std::move(info));
  const RequestId run = begin();
  runs_.remove(PipelineId(1));
  EXPECT_FALSE(kept.expired());
  serve_visit(run, 0);
  EXPECT_TRUE(kept.expired());
}

// A diamond: 0 -> 1, 2 -> 3.
TEST_F(PipelineRunsTest, OutputsAreHeldUntilNoStageTakesThem) {
  add_stage("first", {{of_call()}});
  add_stage("left", {{of(0)}});
  add_stage("right", {{of(0)}, {of_call()}});
  add_stage("last", {{of(1)}, {of(2)}});
  info_.outputs = {{.sources = {of(3)}}};
  hold(100);
  serve();
  const RequestId run = begin();
  EXPECT_TRUE(runs_.order(visit_of(run, 0)).held);
  EXPECT_TRUE(runs_.order(visit_of(run, 0)).answers.empty());
  compute_visit(run, 0, 7);
  const VisitOrder right = runs_.order(visit_of(run, 2));
  ASSERT_EQ(right.inputs.size(), 2u);
  EXPECT_EQ(right.inputs[0], (VisitOrder::Input{.pieces = {{0, DeviceId(7)}}}));
  EXPECT_EQ(right.inputs[1], (VisitOrder::Input{.pieces = {{}}}));
  compute_visit(run, 1, 8);
  EXPECT_EQ(discarded(), "") << "another stage takes it yet";
  compute_visit(run, 2, 9);
  EXPECT_EQ(discarded(), "0@7");
  EXPECT_FALSE(runs_.order(visit_of(run, 3)).held);
  EXPECT_EQ(runs_.order(visit_of(run, 3)).answers, std::vector<uint32_t>{0});
  compute_visit(run, 3, 7);
  EXPECT_EQ(discarded(), "1@8 2@9");
  ASSERT_TRUE(was_served(run));
  EXPECT_EQ(ended_[run].visits, (std::vector<Completion::VisitAnswer>{{3, ActionId(103), DeviceId(7)}}));
}

TEST_F(PipelineRunsTest, OutputsOfARunThatIsRefusedAreDiscarded) {
  add_stage("first", {{of_call()}});
  add_stage("last", {{of(0)}});
  hold(100);
  serve();
  RequestId run = begin();
  compute_visit(run, 0, 7);
  refuse_visit(run, 1, Refusal::kExpired);
  EXPECT_EQ(discarded(), "0@7");
  run = begin();
  compute_visit(run, 0, 7, Refusal::kLate);
  EXPECT_EQ(discarded(), "0@7") << "it was computed, though too late";
}

TEST_F(PipelineRunsTest, ARunHasRoomForAllThatItComputesOrIsRefused) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  add_stage("last", {{of(1)}});
  hold(5);
  serve();
  const RequestId first = begin();
  const RequestId second = begin();
  const RequestId third = begin();
  EXPECT_FALSE(ended_.contains(second)) << "two runs of two payloads";
  ASSERT_TRUE(ended_.contains(third));
  EXPECT_EQ(ended_[third].refusal, Refusal::kOverload);
  for (uint32_t stage = 0; stage < 3; ++stage) compute_visit(first, stage, 1);
  EXPECT_FALSE(ended_.contains(begin())) << "what is over gives its room back";
}

TEST_F(PipelineRunsTest, ALostHolderEndsTheRunsThatNeedWhatItHeld) {
  add_stage("first", {{of_call()}});
  add_stage("second", {{of(0)}});
  add_stage("last", {{of(1)}});
  hold(100);
  serve();
  const RequestId lost = begin();
  const RequestId elsewhere = begin();
  const RequestId past = begin();
  compute_visit(lost, 0, 7);
  compute_visit(elsewhere, 0, 8);
  compute_visit(past, 0, 7);
  compute_visit(past, 1, 8);
  EXPECT_EQ(discarded(), "0@7");
  runs_.on_device_lost(DeviceId(7), now_);
  runs_.advance(now_);
  ASSERT_TRUE(ended_.contains(lost));
  EXPECT_EQ(ended_[lost].refusal, Refusal::kWorkerLost);
  EXPECT_NE(ended_[lost].detail.find("stage 'first'"), std::string::npos) << ended_[lost].detail;
  EXPECT_FALSE(ended_.contains(elsewhere));
  EXPECT_FALSE(ended_.contains(past)) << "what the device held for it was used";
  EXPECT_EQ(discarded(), "") << "the holder has nothing any more";
}

TEST_F(PipelineRunsTest, WithAModelItsRunsEnd) {
  add_stage("first", {{of_call()}});
  add_stage("last", {{of(0)}});
  serve();
  const RequestId run = begin();
  serve_visit(run, 0);
  runs_.remove_model(ModelId(5), now_);
  EXPECT_FALSE(ended_.contains(run));
  runs_.remove_model(ModelId(0), now_);
  runs_.advance(now_);
  ASSERT_TRUE(ended_.contains(run));
  EXPECT_EQ(ended_[run].refusal, Refusal::kUnloaded);
}

}  // namespace
}  // namespace foliot
