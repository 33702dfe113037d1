// Requests, proposals, ranges and targets of a controller whose devices are well.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "control/controller/fake_duration_model.h"
#include "control/controller/test_controller.h"

namespace foliot {
namespace {

// Of model 0, which has four operators, on device 0.
class RangesTest : public ControllerTest {
 protected:
  static constexpr uint32_t kEnd = OperatorRange::kEnd;

  RangesTest() {
    auto model = std::make_shared<ModelInfo>(*controller_->cluster().models[0]);
    model->id = ModelId(2);
    model->only().pages = 1;
    model->only().operator_ends = {0.1, 0.4, 0.9, 1};
    controller_->add_model(model, at(0));
    load_model(2);
  }
  Verdict begin(uint64_t id, OperatorRange range, ContextIndex context = 0) {
    const RequestId request(id);
    Verdict verdict{};
    propose([&](Dispatcher& d) {
      verdict = d.begin(DeviceId(0), ModelId(2), BucketId(0), 1, {.range = range, .context = context}, ms(7),
                        std::span(&request, 1), {at(0), at(100)});
    });
    return verdict;
  }
  Verdict resume(uint32_t last, ContextIndex context = 0) {
    Verdict verdict{};
    propose([&](Dispatcher& d) { verdict = d.resume(DeviceId(0), context, last, {}, ms(3), {at(0), at(100)}); });
    return verdict;
  }
};

TEST_F(RangesTest, ABatchIsAnsweredWithItsLastRange) {
  request(1, 2);
  ASSERT_EQ(begin(1, {0, 2}), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(7));
  EXPECT_EQ(resume(kEnd), Verdict::kBadPart) << "the range before is under way";
  outcome();
  EXPECT_TRUE(sink_.completions.empty());
  EXPECT_EQ(unload(2), Verdict::kInUse);
  EXPECT_EQ(resume(2), Verdict::kBadPart) << "no operator";
  EXPECT_EQ(resume(4), Verdict::kBadPart) << "the end of the plan has another name";
  ASSERT_EQ(resume(3), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().range, (OperatorRange{2, 3}));
  EXPECT_EQ(sink_.actions.back().rows[0].request, RequestId(1));
  outcome();
  ASSERT_EQ(resume(kEnd), Verdict::kAccepted);
  EXPECT_TRUE(sink_.completions.empty());
  outcome();
  EXPECT_TRUE(completion(1).served());
  EXPECT_EQ(unload(2), Verdict::kAccepted);
  EXPECT_EQ(controller_->cluster().durations().exec({DeviceId(0), ModelId(2), BucketId(0)}), ms(6))
      << "three ranges of 2 ms, which ran alone, are an EXEC";
}

TEST_F(RangesTest, AContextHoldsOneBatch) {
  for (const uint64_t id : {1, 2, 3}) request(id, 2);
  EXPECT_EQ(begin(1, {0, 2}, 1), Verdict::kBadPart) << "the device has one context";
  EXPECT_EQ(begin(1, {0, 4}), Verdict::kBadPart);
  EXPECT_EQ(begin(1, {1, kEnd}), Verdict::kBadPart);
  ASSERT_EQ(begin(1, {0, 2}), Verdict::kAccepted);
  outcome();
  EXPECT_EQ(begin(2, {}), Verdict::kBadPart);
  EXPECT_EQ(infer({RequestId(2)}, 2), Verdict::kBadPart);
  ASSERT_EQ(resume(kEnd), Verdict::kAccepted);
  EXPECT_EQ(infer({RequestId(2)}, 2), Verdict::kBadPart);
  outcome();
  EXPECT_EQ(infer({RequestId(2)}, 2), Verdict::kAccepted);
  EXPECT_EQ(begin(3, {0, 2}), Verdict::kBadPart) << "another EXEC in the context is outstanding";
}

TEST_F(RangesTest, ARangeThatFailsGivesItsRowsBack) {
  request(1, 2);
  ASSERT_EQ(begin(1, {0, 2}), Verdict::kAccepted);
  outcome();
  ASSERT_EQ(resume(kEnd), Verdict::kAccepted);
  outcome(OutcomeStatus::kNoContext);
  EXPECT_EQ(policy_->queued.size(), 2u) << "it came, and came back";
  EXPECT_EQ(begin(1, {0, 2}), Verdict::kAccepted);
}

TEST_F(RangesTest, ABatchCanBeGivenUp) {
  request(1, 2);
  request(2, 2);
  const auto abandon = [&] {
    Verdict verdict{};
    propose([&](Dispatcher& d) { verdict = d.abandon(DeviceId(0), 0, Refusal::kExpired, at(0)); });
    return verdict;
  };
  EXPECT_EQ(abandon(), Verdict::kBadPart);
  ASSERT_EQ(begin(1, {0, 2}), Verdict::kAccepted);
  EXPECT_EQ(abandon(), Verdict::kBadPart) << "it is under way";
  outcome();
  EXPECT_EQ(abandon(), Verdict::kAccepted);
  EXPECT_EQ(completion(1).refusal, Refusal::kExpired);
  EXPECT_EQ(begin(2, {0, 2}), Verdict::kAccepted);
  outcome();
  ASSERT_EQ(resume(kEnd), Verdict::kAccepted);
  outcome();
  EXPECT_EQ(unload(2), Verdict::kAccepted);
}

TEST_F(RangesTest, ALostDeviceLosesWhatIsUnfinished) {
  request(1, 2);
  request(2, 2);
  ASSERT_EQ(begin(1, {0, 2}), Verdict::kAccepted);
  outcome();
  lose();
  EXPECT_EQ(completion(1).refusal, Refusal::kWorkerLost);
  join({ModelId(2)});
  ASSERT_EQ(begin(2, {0, 2}), Verdict::kAccepted) << "its contexts are free";
  lose();
  EXPECT_EQ(sink_.completions.size(), 2u);
}

TEST_F(ControllerTest, ServesARequest) {
  request(1);
  load_model();
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(2));
  outcome(OutcomeStatus::kDone, at(50));
  EXPECT_TRUE(completion(1).served());
  EXPECT_TRUE(completion(1).cold_start);
  EXPECT_EQ(completion(1).finished, at(50));
  EXPECT_EQ(controller_->queued(), 0u);
}

TEST_F(ControllerTest, RunsOnLanesOfTheDeviceOnly) {
  const DeviceId wide = controller_->add_device(4, at(0), kDefaultKind, 4);
  load_model(0, wide.value());
  for (uint64_t id = 1; id <= 3; ++id) request(id);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, wide.value(), {1, 2}), Verdict::kBadLanes);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, wide.value(), {4, 1}), Verdict::kBadLanes);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, 0, {0, 2}), Verdict::kNotPlaced);
  ASSERT_EQ(infer({RequestId(1)}, 0, 1, wide.value(), {2, 2}), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().lanes, (LaneInterval{2, 2}));
  EXPECT_EQ(sink_.actions.back().expected, ms(4)) << "on half of its lanes";
  ASSERT_EQ(infer({RequestId(2)}, 0, 1, wide.value(), {0, 4}), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(2));
  const DeviceModel& device = controller_->cluster().device(wide);
  EXPECT_EQ(device.exec_available(at(0), {3, 1}), at(6) + device.delivery()) << "the wide one waits for the first";
  EXPECT_EQ(device.infers_outstanding(), 2u);
}

TEST_F(ControllerTest, LearnsADurationForEachWidth) {
  const DeviceId wide = controller_->add_device(4, at(0), kDefaultKind, 2);
  load_model(0, wide.value());
  request(1);
  ASSERT_EQ(infer({RequestId(1)}, 0, 1, wide.value(), {1, 1}), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(4));
  outcome(OutcomeStatus::kDone, at(50));  // after 2 ms
  const DurationModel& durations = controller_->cluster().durations();
  EXPECT_EQ(durations.exec({wide, ModelId(0), BucketId(0), 0, 1}), ms(2));
  EXPECT_EQ(durations.exec({wide, ModelId(0), BucketId(0), 1, 1}), ms(5))
      << "of another size: in proportion to one row";
  EXPECT_EQ(durations.exec({wide, ModelId(0), BucketId(0), 0, 0}), ms(2));
}

TEST_F(ControllerTest, ADeviceMayComeBackWithOtherLanes) {
  const DeviceId wide = controller_->add_device(4, at(0), kDefaultKind, 4);
  controller_->lose_device(wide, DeviceTrouble::kLink, at(20));
  controller_->join_device(wide, 4, {}, at(30), kDefaultKind, 2);
  EXPECT_EQ(controller_->cluster().device(wide).all_lanes(), (LaneInterval{0, 2}));
  load_model(0, wide.value());
  request(1);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, wide.value(), {2, 2}), Verdict::kBadLanes);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, wide.value(), {1, 1}), Verdict::kAccepted);
}

// Ids grow, fall or jump as front ends like.
TEST_F(ControllerTest, RefusesInTheOrderOfAdmission) {
  for (const uint64_t id : {7, 900, 3, 42, 5}) request(id);
  controller_->drain(at(1));
  EXPECT_EQ(sink_.answered, (std::vector{RequestId(7), RequestId(900), RequestId(3), RequestId(42), RequestId(5)}));
}

TEST_F(ControllerTest, ChecksEveryProposal) {
  request(1);
  request(2, 1);
  EXPECT_EQ(infer({RequestId(1)}), Verdict::kNotPlaced);
  EXPECT_EQ(unload(0), Verdict::kNotPlaced);
  ASSERT_EQ(load(0), Verdict::kAccepted);
  EXPECT_EQ(load(0), Verdict::kAlreadyPlaced);
  EXPECT_EQ(load(1), Verdict::kNoPages);
  EXPECT_EQ(unload(0), Verdict::kInUse);  // still loading
  EXPECT_EQ(load(9), Verdict::kUnknown);
  EXPECT_EQ(infer({RequestId(2)}), Verdict::kUnknown);  // of another model
  EXPECT_EQ(infer({RequestId(7)}), Verdict::kUnknown);
  EXPECT_EQ(infer({}), Verdict::kUnknown);
  EXPECT_EQ(infer({RequestId(1)}, 0, 3), Verdict::kUnknown);  // size not compiled
  propose([&](Dispatcher& d) {
    const RequestId id(1);
    EXPECT_EQ(d.infer(DeviceId(0), ModelId(0), BucketId(0), 1, {}, std::span(&id, 1), {at(5), at(4)}),
              Verdict::kBadWindow);
    EXPECT_EQ(d.refuse(RequestId(7), Refusal::kExpired, at(0)), Verdict::kUnknown);
  });
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  EXPECT_EQ(infer({RequestId(1)}), Verdict::kUnknown);  // not queued any more
  EXPECT_EQ(controller_->proposals_rejected(), 13u);
  EXPECT_EQ(sink_.actions.size(), 2u);
}

TEST_F(ControllerTest, PlansABatchSizeFromWhenItIsThere) {
  for (uint64_t id = 1; id <= 4; ++id) request(id);
  load_model();
  const std::vector<RequestId> rows{RequestId(1), RequestId(2), RequestId(3)};
  EXPECT_EQ(infer(rows, 0, 4), Verdict::kUnknown);
  auto model = std::make_shared<ModelInfo>(controller_->cluster().model(ModelId(0)));
  model->only().batch_sizes.push_back(4);
  model->only().seed_exec[0].push_back(ms(4));
  controller_->extend_model(model);
  ASSERT_EQ(infer(rows, 0, 4), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(4));
  outcome();
  EXPECT_TRUE(completion(3).served());
  EXPECT_EQ(infer({RequestId(4)}, 0, 2), Verdict::kAccepted);
  EXPECT_DEATH(controller_->extend_model(std::make_shared<ModelInfo>(with_batch_sizes(*model, 1))), "batch_sizes");
}

TEST_F(ControllerTest, AnAnswerAfterTheDeadlineIsLate) {
  request(1);
  load_model();
  infer({RequestId(1)});
  outcome(OutcomeStatus::kDone, at(91));
  EXPECT_EQ(completion(1).refusal, Refusal::kLate);
}

TEST_F(ControllerTest, TheEarliestCompletionOfARefusalIsAfterTheDeadlineThatItWouldMiss) {
  load_model();
  controller_->on_request({.id = RequestId(1), .model = ModelId(0), .deadline = at(90), .reserve = ms(5)}, at(0));
  // Later than the controller's deadline, and before the client's: what comes after the inference is left out.
  propose([&](Dispatcher& d) { d.refuse(RequestId(1), Refusal::kUnmeetable, at(92)); });
  EXPECT_EQ(completion(1).deadline, at(95));
  EXPECT_EQ(completion(1).earliest_completion, at(97));
  controller_->on_request({.id = RequestId(2), .model = ModelId(0), .deadline = at(90), .reserve = ms(5)}, at(0));
  propose([&](Dispatcher& d) { d.refuse(RequestId(2), Refusal::kUnmeetable, TimePoint()); });
  EXPECT_EQ(completion(2).earliest_completion, TimePoint()) << "unknown";
}

TEST_F(ControllerTest, ARefusalForLoadSaysWhatWaits) {
  load_model();
  for (uint32_t id : {1, 2, 3})
    controller_->on_request({.id = RequestId(id), .model = ModelId(0), .deadline = at(90)}, at(0));
  propose([&](Dispatcher& d) { d.refuse(RequestId(1), Refusal::kOverload, at(92)); });
  EXPECT_EQ(completion(1).detail, "2 other requests with a deadline wait");
  propose([&](Dispatcher& d) { d.refuse(RequestId(2), Refusal::kUnmeetable, at(92)); });
  EXPECT_EQ(completion(2).detail, "") << "it would be late alone";
  propose([&](Dispatcher& d) { d.refuse(RequestId(3), Refusal::kOverload, at(92)); });
  EXPECT_EQ(completion(3).detail, "") << "nothing waits any more";
}

TEST_F(ControllerTest, WhatIsOptionalIsPlannedToBeInTimeMoreLikelyThanNot) {
  load_model();
  const auto ask = [&](uint64_t id, uint32_t model, bool optional, TimePoint deadline = at(90)) {
    controller_->on_request(
        {.id = RequestId(id), .model = ModelId(model), .deadline = deadline, .reserve = ms(1), .optional = optional},
        at(0));
    return policy_->last.deadline;
  };
  EXPECT_EQ(ask(1, 0, false), at(90));
  const Duration usual = controller_->cluster().timings[0].usual_lateness();
  EXPECT_EQ(ask(2, 0, true), at(90) + ms(3) - usual) << "by the margin that a promise needs";
  EXPECT_EQ(policy_->last.answer_by(), at(91));
  EXPECT_EQ(ask(3, 1, true), at(90)) << "nothing is known of a model that has to be loaded first";
  EXPECT_TRUE(ask(4, 0, true, TimePoint::infinite_future()).is_infinite());

  ASSERT_EQ(infer({RequestId(2)}), Verdict::kAccepted);
  outcome(OutcomeStatus::kDone, at(92));
  EXPECT_EQ(completion(2).refusal, Refusal::kLate) << "by its client's deadline";
  EXPECT_EQ(completion(2).deadline, at(91));
}

TEST_F(ControllerTest, WhatIsOptionalIsTriedNowAndThenWhateverIsExpected) {
  load_model();
  const auto put_off = [&](uint64_t id, TimePoint now) {
    controller_->on_request(
        {.id = RequestId(id), .model = ModelId(0), .arrival = now, .deadline = now + ms(1), .optional = true}, now);
    return policy_->last.deadline - (now + ms(1));
  };
  EXPECT_EQ(put_off(1, at(20)), ms(2) + ms(3)) << "an EXEC and the margin";
  const Duration likely = ms(3) - controller_->cluster().timings[0].usual_lateness();
  EXPECT_EQ(put_off(2, at(519)), likely);
  request(3);
  ASSERT_EQ(infer({RequestId(3)}), Verdict::kAccepted);
  EXPECT_EQ(put_off(4, at(520)), likely) << "the device has something to do";
  outcome(OutcomeStatus::kDone, at(521));
  EXPECT_EQ(put_off(5, at(522)), ms(2) + ms(3));
}

TEST_F(ControllerTest, WhereExecsEndSoonerThanExpectedWhatIsOptionalIsPutOffFurther) {
  load_model();
  const auto put_off = [&](uint64_t id) {
    controller_->on_request({.id = RequestId(id), .model = ModelId(0), .deadline = at(90), .optional = true}, at(0));
    return policy_->last.deadline - at(90);
  };
  const Duration before = put_off(1000);
  for (uint64_t id = 1; id <= 100; ++id) {
    request(id);
    ASSERT_EQ(infer({RequestId(id)}), Verdict::kAccepted);
    // 1 ms before it was planned to end.
    const Action action = sink_.actions.back();
    outcome_of(action, OutcomeStatus::kDone, at(1));
  }
  EXPECT_GT(put_off(1001), before);
}

// 4 ms for a result, after 2 in which it took out another.
TEST_F(ControllerTest, WhatOutputTakesLongIsReservedForItsModelAndIsNoLatenessOfItsDevice) {
  const auto lateness = [&](Duration output, Duration whole) {
    make({.timing = {.margin_min = {}, .margin_fixed = ms(3)}});
    load_model();
    for (uint64_t id = 1; id <= 100; ++id) {
      request(id);
      EXPECT_EQ(infer({RequestId(id)}), Verdict::kAccepted);
      controller_->on_outcome({.action = sink_.actions.back().id,
                               .model = ModelId(0),
                               .start = at(10),
                               .end = at(12),
                               .duration = ms(2),
                               .output_duration = output,
                               .output_end = at(12) + whole},
                              at(12) + whole);
    }
    return controller_->cluster().timings[0].usual_lateness();
  };
  const Duration usual = lateness(Duration(), Duration());
  EXPECT_EQ(lateness(Duration::microseconds(10), ms(6)), usual + ms(6)) << "of small results it is lateness";
  request(200);
  EXPECT_EQ(policy_->last.deadline, at(90));
  EXPECT_EQ(lateness(ms(4), ms(6)), usual);
  request(201);
  EXPECT_EQ(policy_->last.deadline, at(84));
  EXPECT_EQ(policy_->last.answer_by(), at(90));
  request(202, 0, at(8));
  EXPECT_EQ(policy_->last.deadline, at(4)) << "half of the time at most";
  request(203, 1);
  EXPECT_EQ(policy_->last.deadline, at(90)) << "of another model";
  request(204, 0, TimePoint::infinite_future());
  EXPECT_TRUE(policy_->last.best_effort());
}

TEST_F(ControllerTest, WhatIsRefusedForWhatOutputTookOnceIsTriedAgain) {
  load_model();
  request(1);
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  controller_->on_outcome({.action = sink_.actions.back().id,
                           .model = ModelId(0),
                           .start = at(10),
                           .end = at(12),
                           .duration = ms(2),
                           .output_duration = ms(48),
                           .output_end = at(60)},
                          at(60));
  const auto time_of = [&](uint64_t id, int64_t now, int64_t deadline) {
    controller_->on_request({.id = RequestId(id), .model = ModelId(0), .deadline = at(deadline)}, at(now));
    const TimePoint planned = policy_->last.deadline;
    propose([&](Dispatcher& d) { d.refuse(RequestId(id), Refusal::kUnmeetable, {}); }, at(now));
    return planned - at(now);
  };
  EXPECT_EQ(time_of(2, 100, 110), ms(5)) << "half of its time";
  EXPECT_EQ(time_of(3, 600, 601), Duration::microseconds(500)) << "EXEC alone takes longer: that is no doubt";
  EXPECT_EQ(time_of(4, 600, 610), ms(5));
  for (int64_t now = 1100; now <= 2100; now += 500) time_of(static_cast<uint64_t>(now), now, now + 10);
  EXPECT_EQ(time_of(9, 3000, 3010), ms(7)) << "four times half of 48 ms";
}

// The first 16 devices are looked at.
TEST_F(ControllerTest, NothingIsReservedForAModelThatOnlyAFarDeviceHolds) {
  for (int i = 0; i < 20; ++i) controller_->add_device(4, at(0));
  load_model(0, 20);
  request(1);
  EXPECT_EQ(policy_->last.deadline, at(90));
}

TEST_F(ControllerTest, WhatTheWorkerRefusedComesBackAFewTimes) {
  request(1);
  load_model();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(policy_->queued.back(), RequestId(1));
    ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
    outcome(OutcomeStatus::kNoIoMemory, at(20));
  }
  EXPECT_EQ(completion(1).refusal, Refusal::kWorkerLost);
}

// A front end attaches to a worker some milliseconds after the worker has registered.
TEST_F(ControllerTest, InputsThatDoNotReachAWorkerThatHasJustJoinedDoNotEndARequest) {
  request(1, 0, at(5000));
  load_model();
  const auto refused_at = [&](int64_t when) {
    ASSERT_EQ(policy_->queued.back(), RequestId(1));
    ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
    outcome(OutcomeStatus::kTooLate, at(when));
  };
  for (int i = 0; i < 10; ++i) refused_at(20 + i);
  for (int i = 0; i < 3; ++i) refused_at(1000 + i);
  EXPECT_TRUE(sink_.completions.empty()) << "it waits for a fourth attempt that counts";
  refused_at(1003);
  EXPECT_EQ(completion(1).refusal, Refusal::kWorkerLost);
}

// ---- Targets ----

TEST_F(ControllerTest, RejectsTargetsThatAreWrongAsAWhole) {
  Targets targets{{{ModelId(0), {.copies_least = 1}}, {ModelId(1), {.copies_least = 3, .copies_most = 2}}}};
  const Status crossed = controller_->set_targets(targets, at(0));
  EXPECT_EQ(crossed.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(crossed.message().find("copies_least is 3, and must not be above copies_most, which is 2"),
            std::string::npos);
  EXPECT_EQ(controller_->cluster().target(ModelId(0)), ModelTarget()) << "none of them is in force";
  targets.models[ModelId(1)] = {.kinds = {"cpu", "gpu"}};
  EXPECT_NE(controller_->set_targets(targets, at(0)).message().find("'gpu', and must be of cpu"), std::string::npos);
  targets.models[ModelId(1)] = {.batch_most = 0};
  EXPECT_FALSE(controller_->set_targets(targets, at(0)).ok());
  targets.models = {{ModelId(9), {}}};
  EXPECT_EQ(controller_->set_targets(targets, at(0)).code(), StatusCode::kNotFound);
  EXPECT_EQ(policy_->target_changes, 0);
}

TEST_F(ControllerTest, ThePolicyIsNotifiedOfTheTargetsThatChange) {
  const Targets targets{{{ModelId(0), {.copies_least = 7}}, {ModelId(1), {}}}};
  ASSERT_TRUE(controller_->set_targets(targets, at(0)).ok()) << "more than there are devices";
  EXPECT_EQ(policy_->target_changes, 1);
  EXPECT_EQ(controller_->cluster().target(ModelId(0)).copies_least, 7u);
  ASSERT_TRUE(controller_->set_targets(targets, at(0)).ok());
  EXPECT_EQ(policy_->target_changes, 1);
  ASSERT_TRUE(controller_->set_targets({}, at(0)).ok());
  EXPECT_EQ(policy_->target_changes, 2);
}

TEST_F(ControllerTest, TurnsDownWhatIsAgainstTargets) {
  controller_->add_device(4, at(0));
  controller_->add_device(4, at(0));
  for (uint64_t id = 1; id <= 2; ++id) request(id);
  const auto set = [&](const ModelTarget& target) {
    ASSERT_TRUE(controller_->set_targets({{{ModelId(0), target}}}, at(0)).ok());
  };
  set({.copies_most = 1});
  load_model(0, 0);
  EXPECT_EQ(load(0, 1), Verdict::kAgainstTargets);
  EXPECT_FALSE(controller_->cluster().may_load(DeviceId(1), ModelId(0), at(0)));
  set({.copies_least = 1});
  EXPECT_EQ(unload(0), Verdict::kAgainstTargets);
  EXPECT_FALSE(controller_->cluster().may_evict(ModelId(0)));
  ASSERT_EQ(load(0, 1), Verdict::kAccepted);
  EXPECT_EQ(unload(0), Verdict::kAgainstTargets) << "the other copy may fail to load";
  outcome();
  EXPECT_EQ(unload(0), Verdict::kAccepted);
  set({.batch_most = 1});
  EXPECT_EQ(infer({RequestId(1), RequestId(2)}, 0, 2, 1), Verdict::kAgainstTargets);
  EXPECT_EQ(controller_->cluster().batch_sizes(DeviceId(1), ModelId(0)).size(), 1u);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, 1), Verdict::kAccepted);
}

TEST_F(ControllerTest, ASecondCopyGoesForAModelThatHasNone) {
  controller_->add_device(4, at(0));
  controller_->add_device(4, at(0));
  ASSERT_TRUE(
      controller_->set_targets({{{ModelId(0), {.copies_least = 2}}, {ModelId(1), {.copies_least = 1}}}}, at(0)).ok());
  load_model(0, 0);
  EXPECT_EQ(unload(0), Verdict::kAgainstTargets) << "a first one stays";
  load_model(0, 1);
  EXPECT_TRUE(controller_->cluster().may_evict(ModelId(0)));
  ASSERT_EQ(load(1, 2), Verdict::kAccepted);
  EXPECT_EQ(unload(0), Verdict::kAgainstTargets) << "the other model is on its way";
}

TEST_F(ControllerTest, ARetiredCopyGetsNoWorkAndGoesOnceItHasNoneLeft) {
  request(1);
  request(2);
  load_model();
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  const auto retire = [](Dispatcher& d) { return d.retire(DeviceId(0), ModelId(0)); };
  propose([&](Dispatcher& d) { EXPECT_EQ(retire(d), Verdict::kAccepted); });
  EXPECT_EQ(controller_->cluster().copies[0], 0u);
  EXPECT_EQ(infer({RequestId(2)}), Verdict::kNotPlaced);
  EXPECT_EQ(load(0), Verdict::kNoPages) << "it is there still";
  outcome();
  EXPECT_EQ(sink_.actions.back().type, ActionType::kUnload);
  EXPECT_EQ(controller_->cluster().held[0], 0u);
  outcome();

  ASSERT_EQ(load(0), Verdict::kAccepted);
  propose([&](Dispatcher& d) { EXPECT_EQ(retire(d), Verdict::kAccepted); });
  propose([&](Dispatcher& d) { EXPECT_EQ(retire(d), Verdict::kNotPlaced); });
  outcome();
  EXPECT_EQ(sink_.actions.back().type, ActionType::kUnload) << "as soon as it is loaded";
}

TEST_F(ControllerTest, WhereTargetsLeaveNoDeviceRequestsAreRefused) {
  request(1);
  request(2, 1);
  load_model();
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  request(3);
  ASSERT_TRUE(controller_->set_targets({{{ModelId(0), {.copies_most = 0}}}}, at(5)).ok());
  EXPECT_EQ(completion(3).refusal, Refusal::kUnloaded);
  EXPECT_EQ(policy_->device_changes, 2) << "the first was its joining";
  request(4);
  EXPECT_EQ(completion(4).refusal, Refusal::kUnloaded);
  EXPECT_NE(completion(4).detail.find("target leaves it no device"), std::string::npos);
  outcome(OutcomeStatus::kTooLate);
  EXPECT_EQ(completion(1).refusal, Refusal::kUnloaded) << "it does not wait for a device";
  EXPECT_EQ(sink_.actions.back().type, ActionType::kUnload);
  EXPECT_EQ(controller_->queued(), 1u) << "of the other model";
}

TEST_F(ControllerTest, WhatTargetsLeaveNoRoomForIsRefusedAndDoesNotWaitForEver) {
  const TimePoint never = TimePoint::infinite_future();
  load_model(0);
  request(1, 1, never);
  ASSERT_TRUE(controller_->set_targets({{{ModelId(0), {.copies_least = 1}}}}, at(5)).ok());
  TimePoint wake = controller_->turn(at(6));
  ASSERT_LT(wake, never) << "it looks again";
  wake = controller_->turn(wake);
  EXPECT_FALSE(sink_.completions.contains(RequestId(1))) << "it may be so in passing";
  ASSERT_LT(wake, never);
  controller_->turn(wake);
  EXPECT_EQ(completion(1).refusal, Refusal::kUnloaded);
  EXPECT_NE(completion(1).detail.find("copies_least"), std::string::npos);
  EXPECT_EQ(controller_->turn(wake), never) << "nothing waits any more";
  request(2, 1);
  EXPECT_EQ(completion(2).refusal, Refusal::kUnloaded) << "at once";
  EXPECT_NE(completion(2).detail.find("it needs 3 pages of a device, and of 4 at most 1"), std::string::npos)
      << completion(2).detail;
}

TEST_F(ControllerTest, WhereATargetLeavesRoomRequestsWait) {
  const TimePoint never = TimePoint::infinite_future();
  controller_->add_device(4, at(0));
  load_model(0, 0);
  ASSERT_TRUE(controller_->set_targets({{{ModelId(0), {.copies_least = 1}}}}, at(5)).ok());
  request(1, 1, never);
  load_model(0, 1);
  controller_->turn(at(60'000));
  EXPECT_EQ(controller_->queued(), 1u) << "the second copy is not required";
  ASSERT_TRUE(controller_->set_targets({{{ModelId(0), {.copies_least = 2}}}}, at(60'000)).ok());
  controller_->turn(controller_->turn(at(90'000)));
  EXPECT_EQ(completion(1).refusal, Refusal::kUnloaded);
}

TEST_F(ControllerTest, TargetsHoldForACopyWhoseUnloadWasRefusedMeanwhile) {
  load_model();
  ASSERT_EQ(unload(0), Verdict::kAccepted);
  ASSERT_TRUE(controller_->set_targets({{{ModelId(0), {.copies_most = 0}}}}, at(5)).ok());
  outcome(OutcomeStatus::kBusy);
  const DeviceModel& device = controller_->cluster().device(DeviceId(0));
  EXPECT_EQ(device.held(ModelId(0)), Residency::kLoaded);
  EXPECT_EQ(device.residency(ModelId(0)), Residency::kAbsent) << "policies do not see it";
  EXPECT_EQ(controller_->cluster().copies[0], 0u);
}

TEST_F(ControllerTest, TargetsHoldForWhatADeviceBringsAndGoWithTheirModel) {
  ASSERT_TRUE(
      controller_->set_targets({{{ModelId(0), {.copies_most = 0}}, {ModelId(1), {.copies_least = 1}}}}, at(0)).ok());
  lose();
  join({ModelId(0)});
  EXPECT_EQ(controller_->cluster().copies[0], 0u);
  EXPECT_EQ(sink_.actions.back().type, ActionType::kUnload);
  outcome();
  load_model(1);
  controller_->remove_model(ModelId(1), at(50));
  EXPECT_EQ(controller_->cluster().target(ModelId(1)), ModelTarget());
  EXPECT_EQ(sink_.actions.back().type, ActionType::kUnload);
  EXPECT_EQ(controller_->set_targets({{{ModelId(1), {}}}}, at(50)).code(), StatusCode::kNotFound);
}

TEST_F(ControllerTest, ARunEndsInTheTurnInWhichItsVisitIsRefused) {
  load_model();
  PipelineInfo pipeline{.id = PipelineId(1), .name = "one", .stages = {}, .outputs = {}};
  pipeline.stages.push_back({.name = "only",
                             .model = controller_->cluster().models[0],
                             .bucket = BucketId(0),
                             .inputs = {{TensorSource()}},
                             .conditions = {},
                             .requires_all = {}});
  controller_->add_pipeline(std::make_shared<const PipelineInfo>(pipeline));
  const auto run = [&](uint64_t id) {
    controller_->on_request({.id = RequestId(id), .pipeline = PipelineId(1), .deadline = at(90)}, at(0));
  };
  run(1);
  propose([&](Dispatcher& d) { d.refuse(policy_->queued.front(), Refusal::kExpired, TimePoint()); });
  EXPECT_EQ(completion(1).refusal, Refusal::kExpired);
  EXPECT_EQ(completion(1).detail, "stage 'only'");
  policy_->queued.clear();
  run(2);
  EXPECT_EQ(controller_->queued(), 1u);
  controller_->on_cancel(RequestId(2), Refusal::kCancelled, at(0));
  controller_->turn(at(0));
  EXPECT_EQ(completion(2).refusal, Refusal::kCancelled);
  EXPECT_EQ(controller_->queued(), 0u);
  EXPECT_EQ(controller_->runs(), 0u);
}

TEST_F(ControllerTest, CancelsWhatIsQueuedAndNotWhatRuns) {
  request(1);
  request(2);
  load_model();
  infer({RequestId(1)});
  controller_->on_cancel(RequestId(1), Refusal::kCancelled, at(1));
  controller_->on_cancel(RequestId(2), Refusal::kCancelled, at(1));
  controller_->on_cancel(RequestId(3), Refusal::kCancelled, at(1));
  EXPECT_EQ(completion(2).refusal, Refusal::kCancelled);
  EXPECT_EQ(sink_.completions.size(), 1u);
  outcome(OutcomeStatus::kDone, at(50));
  EXPECT_TRUE(completion(1).served());
}

TEST_F(ControllerTest, BoundsItsQueue) {
  make({.queued_max = 2});
  for (uint64_t id = 1; id <= 3; ++id) request(id, 0, TimePoint::infinite_future());
  EXPECT_EQ(completion(3).refusal, Refusal::kOverload);
  EXPECT_EQ(controller_->queued(), 2u);
}

TEST_F(ControllerTest, EvictsWhatCanWaitForWhatIsUrgent) {
  make({.queued_max = 2});
  request(1, 0, TimePoint::infinite_future());
  request(2, 0, at(5000));
  request(3, 0, at(60));
  EXPECT_EQ(completion(1).refusal, Refusal::kOverload);
  EXPECT_EQ(policy_->queued, (std::deque{RequestId(2), RequestId(3)}));
  request(4, 0, at(50));
  EXPECT_EQ(completion(2).refusal, Refusal::kOverload);
  request(5, 0, at(60));
  EXPECT_EQ(completion(5).refusal, Refusal::kOverload) << "no more urgent than what waits";
  EXPECT_EQ(controller_->queued(), 2u);
  EXPECT_FALSE(sink_.completions.contains(RequestId(3)));
}

// What a worker gave back waits again, and can be evicted like all else.
TEST_F(ControllerTest, EvictsWhatCameBackFromAWorker) {
  make({.queued_max = 2});
  load_model();
  request(1, 0, at(900));
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  outcome(OutcomeStatus::kTooLate, at(10));
  request(2, 0, at(60));
  EXPECT_EQ(controller_->queued(), 2u);
  request(3, 0, at(60));
  EXPECT_EQ(completion(1).refusal, Refusal::kOverload);
  EXPECT_EQ(controller_->queued(), 2u);
}

TEST_F(ControllerTest, RefusesWhatIsBeyondAShare) {
  uint64_t id = 0;
  const auto ask = [&](uint32_t tenant, TimePoint now) {
    controller_->on_request(
        {.id = RequestId(++id), .model = ModelId(0), .deadline = now + ms(90), .tenant = TenantId(tenant)}, now);
  };
  for (int64_t now = 1000; now < 2000; now += 10) {
    for (int i = 0; i < 20; ++i) ask(1, at(now));
  }
  EXPECT_TRUE(sink_.completions.empty()) << "it is alone";
  ask(2, at(2000));
  EXPECT_TRUE(sink_.completions.empty());
  for (int i = 0; i < 200; ++i) ask(1, at(2000));
  EXPECT_EQ(completion(id).refusal, Refusal::kOverShare);
  EXPECT_GT(completion(id).earliest_completion, at(2090));
  EXPECT_EQ(controller_->queued(), id - sink_.completions.size());
}

TEST_F(ControllerTest, RemovesAModelOnceNothingOfItIsLeft) {
  request(1);
  request(2);
  load_model();
  infer({RequestId(1)});
  controller_->remove_model(ModelId(0), at(20));
  EXPECT_EQ(completion(2).refusal, Refusal::kUnloaded);
  EXPECT_FALSE(controller_->model_gone(ModelId(0)));
  request(3);
  EXPECT_EQ(completion(3).refusal, Refusal::kUnloaded);
  outcome(OutcomeStatus::kDone, at(30));
  EXPECT_TRUE(completion(1).served());
  EXPECT_EQ(sink_.actions.back().type, ActionType::kUnload);
  EXPECT_FALSE(controller_->model_gone(ModelId(0)));
  outcome(OutcomeStatus::kDone, at(31));
  EXPECT_TRUE(controller_->model_gone(ModelId(0)));
  EXPECT_EQ(controller_->cluster().device(DeviceId(0)).free_pages(), 4u);
  EXPECT_FALSE(controller_->cluster().may_place(DeviceId(0), ModelId(0)));
  EXPECT_FALSE(controller_->cluster().first_able(ModelId(0)));
}

TEST_F(ControllerTest, DrainingRefusesWhatWaitsAndWhatComes) {
  request(1);
  controller_->drain(at(1));
  request(2);
  EXPECT_EQ(completion(1).refusal, Refusal::kDraining);
  EXPECT_EQ(completion(2).refusal, Refusal::kDraining);
}

TEST_F(ControllerTest, TurnsDownWhatADeviceOfThatKindCannotRun) {
  const DeviceId gpu = controller_->add_device(10, at(0), "gpu");
  EXPECT_EQ(load(0, gpu.value()), Verdict::kNotRunnable);
  request(1);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, gpu.value()), Verdict::kNotRunnable);
  EXPECT_EQ(controller_->proposals_rejected(), 2u);
  EXPECT_EQ(load(0), Verdict::kAccepted);
}

TEST_F(ControllerTest, RunsAModelOnEachKindInItsOwnBatchSizes) {
  const DeviceId gpu = controller_->add_device(10, at(0), "gpu");
  ModelInfo both = controller_->cluster().model(ModelId(0));
  both.runnables.push_back(
      {.kind = "gpu", .batch_sizes = {1, 4}, .pages = 5, .seed_load = ms(9), .seed_exec = {{ms(1), ms(4)}}});
  controller_->extend_model(std::make_shared<const ModelInfo>(both));
  load_model(0, gpu.value());
  EXPECT_EQ(controller_->cluster().device(gpu).free_pages(), 5u);
  for (uint64_t id = 1; id <= 4; ++id) request(id);
  EXPECT_EQ(infer({RequestId(1)}, 0, 2, gpu.value()), Verdict::kUnknown);
  EXPECT_EQ(infer({RequestId(1), RequestId(2), RequestId(3)}, 0, 4, gpu.value()), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(4));
}

TEST_F(ControllerTest, RefusesWhatNoDeviceCanRunAndSaysWhichCould) {
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(2);
  model->name = "large";
  model->buckets.resize(1);
  model->runnables = {{.kind = "cuda", .seed_exec = {{ms(1)}}}, {.kind = "cpu:4", .seed_exec = {{ms(2)}}}};
  controller_->add_model(model, at(0));
  request(1, 2);
  EXPECT_EQ(completion(1).refusal, Refusal::kUnloaded);
  EXPECT_EQ(completion(1).detail,
            "model 'large' is not served: it runs on devices of kind cuda, cpu:4, and the cluster has cpu");
  const DeviceId cuda = controller_->add_device(10, at(0), "cuda");
  request(2, 2);
  EXPECT_EQ(controller_->queued(), 1u);
  controller_->lose_device(cuda, DeviceTrouble::kLink, at(5));
  request(3, 2);
  EXPECT_EQ(completion(3).refusal, Refusal::kWorkerLost);
}

TEST_F(ControllerTest, AThousandModelsHaveAKindEach) {
  constexpr uint32_t kModels = 1000;
  std::vector<DeviceId> devices;
  for (uint32_t i = 0; i < kModels; ++i) {
    const std::string kind = "container:" + std::to_string(i);
    ASSERT_TRUE(controller_->may_add_kind(kind));
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(2 + i);
    model->name = std::to_string(i);
    model->buckets.resize(1);
    model->runnables = {{.kind = kind, .seed_exec = {{ms(1)}}}};
    controller_->add_model(model, at(0));
    EXPECT_FALSE(controller_->cluster().first_able(model->id).has_value());
    devices.push_back(controller_->add_device(1, at(0), kind));
  }
  for (uint32_t i = 0; i < kModels; ++i) {
    const ModelId model(2 + i);
    EXPECT_EQ(controller_->cluster().first_able(model), devices[i]);
    EXPECT_FALSE(controller_->cluster().may_place(devices[(i + 1) % kModels], model));
    load_model(2 + i, devices[i].value());
  }
}

TEST_F(ControllerTest, ADeviceTakesSoManyActionsOfEachKind) {
  make({.infers_outstanding_max = 2, .loads_outstanding_max = 1});
  const DeviceId large = controller_->add_device(6, at(0));
  ASSERT_EQ(load(0, large.value()), Verdict::kAccepted);
  EXPECT_EQ(load(1, large.value()), Verdict::kBusy);
  outcome();
  ASSERT_EQ(load(1, large.value()), Verdict::kAccepted);
  for (uint64_t id = 1; id <= 3; ++id) request(id);
  EXPECT_EQ(infer({RequestId(1)}, 0, 1, large.value()), Verdict::kAccepted);
  EXPECT_EQ(infer({RequestId(2)}, 0, 1, large.value()), Verdict::kAccepted);
  EXPECT_EQ(infer({RequestId(3)}, 0, 1, large.value()), Verdict::kBusy);
  EXPECT_EQ(controller_->proposals_rejected(), 2u);
  outcome();
  EXPECT_EQ(infer({RequestId(3)}, 0, 1, large.value()), Verdict::kAccepted);
}

TEST_F(ControllerTest, ExpectsWhatTheDurationModelThatItWasGivenExpects) {
  make({.make_durations = [] { return std::make_unique<FakeDurationModel>(); }});
  load_model();
  request(1);
  request(2);
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(2));
  const Action action = sink_.actions.back();
  controller_->on_outcome({.action = action.id,
                           .type = action.type,
                           .device = action.device,
                           .model = action.model,
                           .start = at(10),
                           .end = at(17),
                           .duration = ms(7),
                           .output_end = at(17)},
                          at(17));
  ASSERT_EQ(infer({RequestId(2)}), Verdict::kAccepted);
  EXPECT_EQ(sink_.actions.back().expected, ms(7));
}

TEST_F(ControllerTest, ObserversSeePipelinesComeAndGo) {
  class Seen : public Observer {
   public:
    void on_pipeline(const PipelineInfo& pipeline) override { lines.push_back("+" + pipeline.name); }
    void on_pipeline_removed(PipelineId pipeline) override { lines.push_back("-" + std::to_string(pipeline.value())); }
    std::vector<std::string> lines;
  } seen;
  controller_->add_observer(seen);
  PipelineInfo pipeline{.id = PipelineId(4), .name = "animals", .stages = {}, .outputs = {}};
  pipeline.stages.push_back({.name = "only", .model = controller_->cluster().models[0]});
  controller_->add_pipeline(std::make_shared<const PipelineInfo>(pipeline));
  controller_->remove_pipeline(PipelineId(5));
  controller_->remove_pipeline(PipelineId(4));
  controller_->remove_pipeline(PipelineId(4));
  EXPECT_EQ(seen.lines, (std::vector<std::string>{"+animals", "-4"}));
}

}  // namespace
}  // namespace foliot
