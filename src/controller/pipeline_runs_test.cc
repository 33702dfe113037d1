#include "controller/pipeline_runs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/test_time.h"
#include "core/stage_visit.h"

namespace foliot {
namespace {

const Duration kStage = ms(10);  // one EXEC of each model

// A pipeline of stages of which each has a model of its own, and what becomes of its visits.
class PipelineRunsTest : public testing::Test, private PipelineRuns::Owner, private VisitOutputs {
 protected:
  PipelineRunsTest() {
    cluster_.add_device(cluster_.intern_kind(kDefaultKind), 100);
    cluster_.timings.emplace_back();
  }

  static TensorSource of_call() { return {}; }
  static TensorSource of(uint32_t stage) { return {.stage = stage}; }

  // Appends a stage; each list is one input's sources.
  uint32_t add_stage(const std::string& name, std::vector<std::vector<TensorSource>> inputs,
                     std::vector<PipelineStage::Requirement> requires_all = {}, Duration exec = kStage) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(static_cast<uint32_t>(info_.stages.size()));
    model->name = name;
    model->buckets = {{}};
    model->only().seed_exec = {{exec}};
    cluster_.add_model(model);
    cluster_.copies[model->id.value()] = 1;
    info_.stages.push_back({.name = name,
                            .model = model,
                            .bucket = BucketId(0),
                            .inputs = std::move(inputs),
                            .conditions = {},
                            .requires_all = std::move(requires_all)});
    return model->id.value();
  }
  void serve() {
    info_.id = PipelineId(1);
    runs_.add(std::make_shared<PipelineInfo>(info_));
  }
  RequestId begin(Duration slo = Duration::seconds(1)) {
    const Request request{.id = RequestId(next_),
                          .model = {},
                          .pipeline = PipelineId(1),
                          .bucket = {},
                          .payload = PayloadHandle(uint64_t{7} << 32 | next_),
                          .arrival = now_,
                          .deadline = now_ + slo,
                          .reserve = ms(1)};
    ++next_;
    runs_.begin(request, now_);
    return request.id;
  }
  // Its EXEC began at once, but for `wait`.
  Completion end_of(RequestId run, uint32_t stage, Duration wait = {}) const {
    return {
        .id = visit_of(run, stage), .detail = {}, .arrival = now_, .exec_start = now_ + wait, .exec_duration = kStage};
  }
  void serve_visit(RequestId run, uint32_t stage, ConditionSet conditions = 0, Duration wait = {}) {
    ASSERT_TRUE(waiting_.erase(visit_of(run, stage)) == 1) << "stage " << stage << " is not under way";
    Completion completion = end_of(run, stage, wait);
    completion.conditions = conditions;
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  void refuse_visit(RequestId run, uint32_t stage, Refusal reason, const std::string& detail = {}) {
    ASSERT_TRUE(waiting_.erase(visit_of(run, stage)) == 1);
    Completion completion = end_of(run, stage);
    completion.refusal = reason;
    completion.detail = detail;
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  // Outputs of 64 bytes are held where they were computed; there is room for so many of them.
  void hold(uint64_t payloads_max) {
    for (PipelineStage& stage : info_.stages) {
      auto model = std::make_shared<ModelInfo>(*stage.model);
      if (model->outputs.empty()) model->outputs = {{"y", DataType::kUint8, {64}, {""}}};
      stage.model = model;
    }
    runs_.hold_outputs(*this);
    runs_.set_room({payloads_max * 64, payloads_max});
  }
  // By the device with this number.
  void compute_visit(RequestId run, uint32_t stage, uint32_t device, Refusal refusal = Refusal::kNone) {
    ASSERT_EQ(waiting_.erase(visit_of(run, stage)), 1u);
    Completion completion = end_of(run, stage);
    completion.refusal = refusal;
    completion.action = ActionId(100 + stage);
    completion.device = DeviceId(device);
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  // Which were discarded since, "0@2": of stage 0, by device 2.
  std::string discarded() {
    std::string all;
    for (const auto& [visit, holder] : discarded_) {
      all += fmt::format("{}{}@{}", all.empty() ? "" : " ", *visit_slot(visit), holder.value());
    }
    discarded_.clear();
    return all;
  }
  // "detect" counts up to four elements, "classify" is visited for each, "last" takes what all of its
  // visits made: slots 0, 1 to 4, and 5.
  void add_detector(std::vector<uint32_t> sizes = {1}, std::vector<Duration> execs = {kStage}) {
    add_stage("detect", {{of_call()}});
    TensorSource element = of(0);
    element.each = true;
    add_stage("classify", {{element}});
    add_stage("last", {{of(1)}});
    info_.stages[0].count = {.output = 0, .at_most = 4};
    info_.stages[1].for_each = {.stage = 0, .at_most = 4};
    auto counting = std::make_shared<ModelInfo>(*info_.stages[0].model);
    counting->outputs = {{"count", DataType::kFloat32, {}, {}}};
    info_.stages[0].model = counting;
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(3);
    model->name = "classifier";
    model->buckets = {{}};
    model->only().batch_sizes = std::move(sizes);
    model->only().seed_exec = {std::move(execs)};
    cluster_.add_model(model);
    cluster_.copies[3] = 1;
    info_.stages[1].model = model;
  }
  void count_visit(RequestId run, uint32_t slot, float count) {
    ASSERT_EQ(waiting_.erase(visit_of(run, slot)), 1u);
    Completion completion = end_of(run, slot);
    completion.count = count;
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  // A whole run with so many elements.
  void serve_detector(uint32_t elements) {
    const RequestId run = begin();
    count_visit(run, 0, static_cast<float>(elements));
    for (uint32_t slot = 1; slot <= elements; ++slot) serve_visit(run, slot);
    serve_visit(run, 5);
    EXPECT_TRUE(was_served(run));
  }
  bool was_served(RequestId run) const { return ended_.contains(run) && ended_.at(run).served(); }
  // The stages that are under way, "0 2".
  std::string under_way(RequestId run) const {
    std::string stages;
    for (const auto& [id, request] : waiting_) {
      if (run_of(id) == run) stages += (stages.empty() ? "" : " ") + std::to_string(*visit_slot(id));
    }
    return stages;
  }

  TimePoint now_ = at(1000);
  Cluster cluster_;
  PipelineInfo info_;
  PipelineRuns runs_{cluster_, *this};
  std::map<RequestId, Request> waiting_;
  std::vector<RequestId> running_;  // cannot be cancelled
  std::map<RequestId, Completion> ended_;

 private:
  void discard(RequestId visit, DeviceId holder) override { discarded_.emplace_back(visit, holder); }
  void submit_visit(const Request& visit, TimePoint /*now*/) override {
    EXPECT_TRUE(runs_.is_visit(visit.id));
    EXPECT_TRUE(waiting_.emplace(visit.id, visit).second) << "submitted twice";
  }
  void cancel_visit(RequestId visit, Refusal reason, TimePoint /*now*/) override {
    if (std::ranges::count(running_, visit) > 0 || waiting_.erase(visit) == 0) return;
    Completion completion{.id = visit, .detail = {}};
    completion.refusal = reason;
    runs_.visit_over(completion);
  }
  void run_over(const Completion& completion, TimePoint /*now*/) override {
    EXPECT_TRUE(ended_.emplace(completion.id, completion).second) << "ended twice";
  }

  uint32_t next_ = 1;
  std::vector<std::pair<RequestId, DeviceId>> discarded_;
};

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

// ---- Visits for each element ----

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
