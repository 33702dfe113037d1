#include "cluster/sessions/frontend_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/sessions/pipeline_registry.h"
#include "cluster/sessions/test_frontend_link.h"
#include "cluster/transport/client_ids.h"
#include "cluster/transport/link_loop.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(FrontendLinkTest, ShowsTheModelsOfItsControllerAndAttachesToWorkers) {
  EXPECT_EQ(ready_, 1);
  EXPECT_TRUE(catalog_.ready());
  EXPECT_EQ(catalog_.find("doubling")->state, ModelState::kReady);
  for (const auto& worker : workers_) {
    const auto attached = worker->received<Attach>(MessageType::kAttach);
    ASSERT_EQ(attached.size(), 1u);
    EXPECT_EQ(attached[0].client, kNumber);
  }
}

TEST_F(FrontendLinkTest, ShowsWhatWorkersCannotServe) {
  const auto states = [this] {
    std::vector<std::string> texts;
    for (const auto& [name, entry] : catalog_.snapshot()) {
      texts.push_back(name + " " + std::string(to_string(entry->state)) + (entry->reason.empty() ? "" : ": ") +
                      entry->reason);
    }
    return texts;
  };
  ASSERT_TRUE(controller_->say(Unserved{{{"broken", "1", "no model"}, {"doubling", "2", "no such file"}}}).ok());
  EXPECT_THAT(states(), ElementsAre("broken UNAVAILABLE: no model", "doubling READY: no such file"));
  EXPECT_TRUE(catalog_.can_serve(false));
  EXPECT_FALSE(catalog_.can_serve(true));
  ASSERT_TRUE(controller_->say(Models{{served_model()}}).ok());
  EXPECT_EQ(states().size(), 2u);
  ASSERT_TRUE(controller_->say(Unserved{}).ok());
  EXPECT_THAT(states(), ElementsAre("doubling READY"));
  EXPECT_TRUE(catalog_.can_serve(true));
}

TEST_F(FrontendLinkTest, TheControllerGetsTheTenantsOfRequests) {
  const Request sent = ask(100, 1);
  EXPECT_EQ(sent.tenant, TenantId(5));
  EXPECT_EQ(sent.tenant_weight, 3u);
}

TEST_F(FrontendLinkTest, OutputsAndCompletionAreJoinedInWhateverOrderTheyCome) {
  const Request first = ask(100, 1);
  const Request second = ask(101, 2);
  ASSERT_TRUE(workers_[0]->send(7, first, 10).ok());
  ASSERT_TRUE(complete(second, 8).ok());
  EXPECT_THAT(frontend_.answers(), IsEmpty());
  ASSERT_TRUE(complete(first, 7).ok());
  ASSERT_TRUE(workers_[0]->send(8, second, 20).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: 10", "101: 20"));
}

TEST_F(FrontendLinkTest, OutputsOfAFencedWorkerDoNotCount) {
  const Request request = ask(100, 1);
  ASSERT_TRUE(workers_[0]->send(7, request, 10).ok()) << "of a worker that will be given up";
  ASSERT_TRUE(workers_[1]->send(8, request, 20).ok());
  ASSERT_TRUE(complete(request, 8, 1).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: 20"));
  ASSERT_TRUE(workers_[0]->send(7, request, 30).ok()) << "it does not know";
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: 20")) << "one answer";
}

TEST_F(FrontendLinkTest, OutputsOfAFencedWorkerThatComeAfterTheCompletionDoNotCountEither) {
  const Request request = ask(100, 1);
  ASSERT_TRUE(complete(request, 8, 1).ok());
  ASSERT_TRUE(workers_[0]->send(7, request, 10).ok());
  EXPECT_THAT(frontend_.answers(), IsEmpty());
  ASSERT_TRUE(workers_[1]->send(8, request, 20).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: 20"));
}

TEST_F(FrontendLinkTest, TwoCompletionsAreOneAnswer) {
  const Request request = ask(100, 1);
  ASSERT_TRUE(complete(request, 7, 0, Refusal::kOverload).ok());
  ASSERT_TRUE(complete(request, 8, 1, Refusal::kOverload).ok());
  ASSERT_TRUE(workers_[0]->send(7, request, 10).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: overload"));
}

TEST_F(FrontendLinkTest, AnAnswerOfAnEarlierRequestInTheSamePlaceIsNotTakenForTheNextOnes) {
  const Request first = ask(100, 1);
  ASSERT_TRUE(complete(first, 7, 0, Refusal::kWorkerLost).ok());
  const Request second = ask(101, 2);
  ASSERT_EQ(second.payload, first.payload) << "the place is used again";
  ASSERT_TRUE(workers_[0]->send(7, first, 10).ok());
  ASSERT_TRUE(complete(first, 7).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: worker_lost"));
  ASSERT_TRUE(workers_[0]->send(8, second, 20).ok());
  ASSERT_TRUE(complete(second, 8).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: worker_lost", "101: 20"));
}

TEST_F(FrontendLinkTest, WhatIsJoinedAfterItsDeadlineIsLate) {
  const Request joined = ask(100, 1, 50);
  const Request missing = ask(101, 2, 50);
  ASSERT_TRUE(complete(joined, 7).ok());
  ASSERT_TRUE(complete(missing, 8).ok());
  workers_[0]->now = at_ms(51);
  ASSERT_TRUE(workers_[0]->send(7, joined, 10).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: late"));
  pass(60);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: late", "101: late"));
}

TEST_F(FrontendLinkTest, OutputsThatNeverComeAreNotWaitedForEver) {
  const Request request = ask(100, 1, 1'000'000);
  ASSERT_TRUE(complete(request, 7).ok());
  for (int64_t ms = 500; ms < 10'000; ms += 500) {
    pass(ms);
    controller_->answer_pings();
    for (const auto& worker : workers_) worker->answer_pings();
  }
  EXPECT_THAT(frontend_.answers(), IsEmpty());
  pass(10'100);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: worker_lost"));
}

TEST_F(FrontendLinkTest, OutputsOfAWorkerWhoseLinkIsLostAreMissed) {
  const Request answered = ask(100, 1);
  const Request running = ask(101, 2);
  ASSERT_TRUE(complete(answered, 7, 0).ok());
  workers_[0]->close();
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: worker_lost"));
  ASSERT_TRUE(workers_[1]->send(8, running, 20).ok());
  ASSERT_TRUE(complete(running, 8, 1).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: worker_lost", "101: 20"));
}

TEST_F(FrontendLinkTest, OutputsWithoutTensorsMeanThatTheInputsDidNotArrive) {
  const Request request = ask(100, 1);
  ASSERT_TRUE(complete(request, 7).ok());
  ASSERT_TRUE(workers_[0]->send_nothing(7, request).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: worker_lost"));
}

TEST_F(FrontendLinkTest, AGoodbyeInTheMiddleRefusesAllThatIsInFlight) {
  const Request request = ask(100, 1);
  ASSERT_TRUE(workers_[0]->send(7, request, 10).ok());
  EXPECT_THAT(controller_->say(Goodbye{"it has stopped"}).message(), HasSubstr("it has stopped"));
  controller_->close();
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected"));
  EXPECT_FALSE(catalog_.ready());
  EXPECT_EQ(catalog_.find("doubling")->state, ModelState::kLoading);

  meet_controller();
  EXPECT_TRUE(catalog_.ready());
  ask(101, 1);
  EXPECT_EQ(frontend_.completions.size(), 1u);
}

TEST_F(FrontendLinkTest, WhatWasAskedOfAModelOfBeforeIsRefused) {
  const ModelId before = catalog_.find("doubling")->info->id;
  controller_->close();
  frontend_.ids = {{1, 100}, {2, 101}};
  link_.submit({.id = RequestId(100), .model = before, .payload = PayloadHandle(1), .deadline = at_ms(1000)});
  link_.on_turn_end(now_);
  meet_controller();
  link_.submit({.id = RequestId(101), .model = before, .payload = PayloadHandle(2), .deadline = at_ms(1000)});
  link_.on_turn_end(now_);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected", "101: disconnected"));
  EXPECT_EQ(frontend_.completions[0].id, RequestId()) << "no controller knew it";
}

TEST_F(FrontendLinkTest, CompletionsBearTheNumbersByWhichTheControllerKnowsThem) {
  const Request refused = ask(100, 1);
  const Request served = ask(101, 2);
  const Request lost = ask(102, 3);
  ASSERT_TRUE(complete(refused, 7, 0, Refusal::kOverload).ok());
  ASSERT_TRUE(workers_[0]->send(8, served, 20).ok());
  ASSERT_TRUE(complete(served, 8).ok());
  controller_->close();
  ASSERT_EQ(frontend_.completions.size(), 3u);
  EXPECT_EQ(frontend_.completions[0].id, request_of(kNumber, refused.id));
  EXPECT_EQ(frontend_.completions[1].id, request_of(kNumber, served.id));
  EXPECT_EQ(frontend_.completions[2].id, request_of(kNumber, lost.id));
}

TEST_F(FrontendLinkTest, NumbersAreNeverUsedAgainOfTheSameController) {
  const Request before = ask(100, 1);
  controller_->close();
  meet_controller();
  EXPECT_GT(ask(101, 1).id, before.id);

  // Another front end, which is given the same number by a controller whose clock goes on.
  Catalog catalog;
  FrontendLink later(catalog, 1, {.log = [](Severity, const std::string&) {}, .on_ready = [](size_t) {}});
  later.start(frontend_, loop_);
  TestPeer controller(later, Role::kController, "controller:8100");
  controller.now = at_ms(5000);
  ASSERT_TRUE(controller.say(Admission{kNumber}).ok());
  ASSERT_TRUE(controller.say(Models{{served_model()}}).ok());
  controller.answer_pings();
  later.submit({.id = RequestId(7), .model = catalog.find("doubling")->info->id, .payload = PayloadHandle(9)});
  later.on_turn_end(at_ms(5000));
  EXPECT_GE(controller.received<Request>(MessageType::kRequest).at(0).id.value(), 5'000'000u);
}

TEST_F(FrontendLinkTest, WhatAClientCallsItsCallGoesAheadOfTheRequest) {
  frontend_.ids = {{1, 100}, {2, 101}, {3, 102}};
  const ModelId model_id = catalog_.find("doubling")->info->id;
  const auto selected = std::make_shared<const CallLabel>(call_label("", "by an application"));
  const auto label = std::make_shared<const CallLabel>(call_label("order-17"));
  link_.submit_labelled({.id = RequestId(100), .model = model_id, .payload = PayloadHandle(1)}, label);
  link_.submit_labelled({.id = RequestId(101), .model = model_id, .payload = PayloadHandle(2)}, nullptr);
  link_.submit_labelled({.id = RequestId(102), .model = model_id, .payload = PayloadHandle(3)}, selected);
  link_.on_turn_end(now_);
  std::vector<MessageType> types;
  RequestId labelled;
  for (const Frame& frame : controller_->frames()) {
    types.push_back(frame.type);
    Label sent;
    if (frame.type != MessageType::kLabel) continue;
    ASSERT_TRUE(decode(frame, sent).ok());
    EXPECT_EQ(sent.label, *label);
    labelled = sent.request;
  }
  EXPECT_THAT(types,
              ElementsAre(MessageType::kLabel, MessageType::kRequest, MessageType::kRequest, MessageType::kRequest));
  EXPECT_NE(labelled, RequestId());
}

TEST_F(FrontendLinkTest, InputsAreSentToTheWorkerThatFetchesThem) {
  const Request request = ask(100, 1);
  frontend_.inputs[1] = 4;
  ASSERT_TRUE(workers_[0]->say(Fetch{ActionId(7), request.id, request.payload}).ok());
  const auto inputs = workers_[0]->received<Inputs>(MessageType::kInputs);
  ASSERT_EQ(inputs.size(), 1u);
  ASSERT_EQ(inputs[0].tensors.size(), 1u);
  float number;
  std::memcpy(&number, inputs[0].tensors[0].data(), sizeof(number));
  EXPECT_EQ(number, 4);
  ASSERT_TRUE(workers_[0]->say(Fetch{ActionId(8), RequestId(999), PayloadHandle(999)}).ok());
  EXPECT_THAT(workers_[0]->received<Inputs>(MessageType::kInputs).at(0).tensors, IsEmpty()) << "it is over";
}

TEST_F(FrontendLinkTest, ACancellationIsPassedOn) {
  const Request request = ask(100, 1);
  link_.cancel(RequestId(100), Refusal::kOverload);
  link_.cancel(RequestId(12345), Refusal::kCancelled);
  link_.on_turn_end(now_);
  const auto cancelled = controller_->received<Cancel>(MessageType::kCancel);
  ASSERT_EQ(cancelled.size(), 1u);
  EXPECT_EQ(cancelled[0].request, request.id);
  EXPECT_EQ(cancelled[0].reason, Refusal::kOverload);
}

TEST_F(FrontendLinkTest, AsManyRequestsAsItHasPlacesForAreInFlight) {
  std::vector<Request> sent;
  for (uint64_t i = 0; i < kRequestsMax; ++i) sent.push_back(ask(100 + i, i));
  for (uint64_t i = 0; i < kRequestsMax; ++i)
    link_.cancel(RequestId(100 + i), Refusal::kCancelled);  // the ring holds these, too
  link_.on_turn_end(now_);
  EXPECT_EQ(controller_->received<Cancel>(MessageType::kCancel).size(), kRequestsMax);
  for (const Request& request : sent) ASSERT_TRUE(complete(request, 0, 0, Refusal::kCancelled).ok());
  EXPECT_EQ(frontend_.completions.size(), kRequestsMax);
  EXPECT_NE(ask(200, 1).id, RequestId()) << "there is room again";
}

TEST_F(FrontendLinkTest, OutputsOfTooManyActionsEndTheSession) {
  const Request request = ask(100, 1);
  for (uint64_t action = 1; action <= 5; ++action) ASSERT_TRUE(workers_[0]->send(action, request, 1).ok());
  EXPECT_THAT(workers_[0]->send(6, request, 1).message(), HasSubstr("too many actions"));
}

TEST_F(FrontendLinkTest, AFrameOutOfPlaceEndsTheSession) {
  const Request request = ask(100, 1);
  EXPECT_THAT(controller_->say(Admission{6}).message(), HasSubstr("an ADMISSION after another"));
  EXPECT_THAT(controller_->say(Fetch{}).message(), HasSubstr("unexpected FETCH message"));
  EXPECT_THAT(workers_[0]->say(Completion{}).message(), HasSubstr("unexpected COMPLETION message"));
  EXPECT_THAT(workers_[0]->say(Outputs{ActionId(7), request.id, request.payload, {{}, {}}}).message(),
              HasSubstr("do not fit the model"));
  EXPECT_THAT(workers_[0]->say(Pong{at_ms(77), at_ms(1)}).message(), HasSubstr("without a PING"));
  EXPECT_TRUE(frontend_.completions.empty());

  Catalog catalog;
  FrontendLink other(catalog, 1, {.log = [](Severity, const std::string&) {}, .on_ready = [](size_t) {}});
  TestPeer early(other, Role::kController, "controller:8100");
  EXPECT_THAT(early.say(two_workers()).message(), HasSubstr("WORKERS before an ADMISSION"));
}

// ---- Outputs that a worker holds

constexpr PayloadReference kHeld{DeviceId(0), PayloadHandle(77)};

TEST_F(FrontendLinkTest, ACompletionNamesTheOutputsThatAWorkerHolds) {
  frontend_.outputs[10] = 0;
  const Request request = ask(1, 10, 1000, {}, 2);
  EXPECT_EQ(request.consumers, 2);
  ASSERT_TRUE(complete(request, 7).ok());
  EXPECT_THAT(frontend_.completions, IsEmpty()) << "the worker has not said that it holds them";
  ASSERT_TRUE(workers_[0]->send_held(7, request, kHeld).ok());
  ASSERT_EQ(frontend_.completions.size(), 1u);
  EXPECT_TRUE(frontend_.completions[0].served());
  EXPECT_EQ(frontend_.completions[0].outputs, kHeld);
  EXPECT_THAT(workers_[0]->consumed(), IsEmpty());

  const Request consumer = ask(2, 11, 1000, kHeld);
  EXPECT_EQ(consumer.input, kHeld);
  ASSERT_TRUE(workers_[1]->send(8, consumer, 3).ok());
  ASSERT_TRUE(complete(consumer, 8, 1).ok());
  EXPECT_EQ(frontend_.answers().back(), "2: 3");
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("77: 1"));
  link_.release(kHeld, 1);
  link_.on_turn_end(now_);
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("77: 1"));
  EXPECT_THAT(workers_[1]->consumed(), IsEmpty());
}

TEST_F(FrontendLinkTest, EveryConsumerCountsHoweverItEnds) {
  const Request refused = ask(1, 10, 1000, kHeld);
  ASSERT_TRUE(complete(refused, 0, 0, Refusal::kOverload).ok());
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("77: 1"));

  frontend_.ids[11] = 2;
  link_.submit({.id = RequestId(2), .model = ModelId(99), .payload = PayloadHandle(11), .input = kHeld});
  link_.on_turn_end(now_);
  EXPECT_EQ(frontend_.answers().back(), "2: disconnected") << "there is no such model";
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("77: 1"));
}

TEST_F(FrontendLinkTest, WhatNoCompletionNamesIsReleased) {
  const Request request = ask(1, 10, 1000, {}, 3);
  ASSERT_TRUE(workers_[0]->send_held(6, request, {DeviceId(0), PayloadHandle(76)}).ok());
  ASSERT_TRUE(workers_[1]->send_held(7, request, {DeviceId(1), PayloadHandle(77)}).ok());
  ASSERT_TRUE(complete(request, 7, 1).ok());
  EXPECT_EQ(frontend_.completions.back().outputs, (PayloadReference{DeviceId(1), PayloadHandle(77)}));
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("76: 3")) << "another action's";
  EXPECT_THAT(workers_[1]->consumed(), IsEmpty());
  ASSERT_TRUE(workers_[0]->send_held(8, request, {DeviceId(0), PayloadHandle(78)}).ok());
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("78: 65535")) << "the request is over";

  const Request refused = ask(2, 11, 1000, {}, 3);
  ASSERT_TRUE(workers_[0]->send_held(9, refused, kHeld).ok());
  ASSERT_TRUE(complete(refused, 9, 0, Refusal::kLate).ok());
  EXPECT_FALSE(frontend_.completions.back().outputs);
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("77: 3"));

  const Request late = ask(3, 12, 500, {}, 3);
  ASSERT_TRUE(complete(late, 10).ok());
  now_ = at_ms(501);
  workers_[0]->now = now_;
  ASSERT_TRUE(workers_[0]->send_held(10, late, kHeld).ok());
  EXPECT_EQ(frontend_.completions.back().refusal, Refusal::kLate);
  EXPECT_FALSE(frontend_.completions.back().outputs);
  EXPECT_THAT(workers_[0]->consumed(), ElementsAre("77: 3"));
}

TEST_F(FrontendLinkTest, WhyARowHadNoInputsReachesTheFrontEnd) {
  const Request request = ask(1, 10, 1000, kHeld);
  ASSERT_TRUE(
      workers_[1]->say(Outputs{ActionId(7), request.id, request.payload, {}, {}, "its inputs are not held"}).ok());
  ASSERT_TRUE(complete(request, 7, 1).ok());
  EXPECT_EQ(frontend_.answers().back(), "1: worker_lost");
  EXPECT_EQ(frontend_.completions.back().detail, "its inputs are not held");
}

// ---- Runs of pipelines ----

// Two stages of the model, of which clients may get both outputs; the second is visited on condition.
class FrontendLinkRunTest : public FrontendLinkTest {
 protected:
  FrontendLinkRunTest() { EXPECT_TRUE(controller_->say(pipelines()).ok()); }
  static Pipelines pipelines(uint32_t id = 9) {
    return {{{PipelineId(id), "twice", lines_of(R"(
[[stage]]
name = "one"
model = "doubling"
inputs = { x = "x" }
[[stage]]
name = "two"
model = "doubling"
inputs = { x = "one.y" }
when = [{ output = "one.y", below = 3 }]
[[output]]
name = "first"
from = "one.y"
[[output]]
name = "second"
from = "two.y"
fill = -1
)")}}};
  }
  Request ask_run(uint64_t id, uint64_t payload, int64_t deadline_ms = 1000) {
    frontend_.ids[payload] = id;
    link_.submit({.id = RequestId(id),
                  .model = {},
                  .pipeline = catalog_.find("twice")->info->pipeline->id,
                  .payload = PayloadHandle(payload),
                  .arrival = now_,
                  .deadline = at_ms(deadline_ms)});
    link_.on_turn_end(now_);
    return last_request();
  }
  Request last_request() {
    const auto sent = controller_->received<Request>(MessageType::kRequest);
    return sent.empty() ? Request() : sent.back();
  }
  Status send_stage(uint32_t worker, uint64_t action, const Request& run, uint32_t stage, float number) {
    return workers_[worker]->say(Outputs{ActionId(action),
                                         visit_of(run.id, stage),
                                         visit_of(run.payload, stage),
                                         {std::as_bytes(std::span(&number, 1))}});
  }
  Status end_run(const Request& run, Refusal refusal, std::vector<Completion::VisitAnswer> stages = {}) {
    return controller_->say(Completion{.id = run.id,
                                       .model = {},
                                       .pipeline = run.pipeline,
                                       .payload = run.payload,
                                       .refusal = refusal,
                                       .detail = "because",
                                       .finished = now_,
                                       .visits = std::move(stages)});
  }
  float stage_output(uint64_t payload, uint32_t stage) {
    return frontend_.outputs[visit_of(PayloadHandle(payload), stage).value()];
  }
};

TEST_F(FrontendLinkRunTest, ShowsPipelinesOfTheModelsThatAreServed) {
  const Catalog::EntryPtr entry = catalog_.find("twice");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->role, EntryRole::kPipeline);
  EXPECT_EQ(entry->state, ModelState::kReady);
  EXPECT_THAT(entry->models, ElementsAre("doubling"));
  EXPECT_EQ(entry->info->pipeline->stages[0].model, catalog_.find("doubling")->info);
  ASSERT_TRUE(controller_->say(Models{{served_model()}}).ok());
  EXPECT_EQ(catalog_.find("twice")->info, entry->info) << "nothing has changed";
  ASSERT_TRUE(controller_->say(pipelines(10)).ok());
  EXPECT_NE(catalog_.find("twice")->info, entry->info) << "another one has taken its place";
  ASSERT_TRUE(controller_->say(Pipelines{}).ok());
  EXPECT_EQ(catalog_.find("twice"), nullptr);
}

TEST_F(FrontendLinkRunTest, ARunIsAnsweredWithTheOutputsThatCount) {
  const Request run = ask_run(1, 5);
  EXPECT_TRUE(is_run_id(run.id));
  EXPECT_EQ(run.pipeline, PipelineId(9));
  EXPECT_FALSE(visit_slot(run.id) || visit_slot(run.payload));
  ASSERT_TRUE(send_stage(0, 20, run, 0, 7).ok());
  ASSERT_TRUE(send_stage(1, 21, run, 0, 8).ok()) << "it was computed twice";
  ASSERT_TRUE(end_run(run, Refusal::kNone, {{0, ActionId(21), DeviceId(1)}, {1, ActionId(22), DeviceId(0)}}).ok());
  EXPECT_THAT(frontend_.completions, IsEmpty()) << "the second stage's outputs are on their way";
  ASSERT_TRUE(send_stage(0, 22, run, 1, 16).ok());
  ASSERT_EQ(frontend_.completions.size(), 1u);
  EXPECT_TRUE(frontend_.completions[0].served());
  EXPECT_EQ(frontend_.completions[0].payload, PayloadHandle(5));
  EXPECT_EQ(stage_output(5, 0), 8);
  EXPECT_EQ(stage_output(5, 1), 16);
  EXPECT_THAT(frontend_.finished, ElementsAre(0, 1));
}

TEST_F(FrontendLinkRunTest, WorkersFetchTheInputsThatTheyNeed) {
  const Request run = ask_run(1, 5);
  frontend_.inputs[5] = 3;
  const RequestId visit = visit_of(run.id, 0);
  ASSERT_TRUE(workers_[0]->say(Fetch{ActionId(7), visit, visit_of(run.payload, 0), 0, {0}}).ok());
  ASSERT_TRUE(workers_[0]->say(Fetch{ActionId(7), visit, visit_of(run.payload, 0), 0, {1}}).ok());
  const auto inputs = workers_[0]->received<Inputs>(MessageType::kInputs);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].request, visit);
  ASSERT_EQ(inputs[0].tensors.size(), 1u);
  EXPECT_THAT(inputs[1].tensors, IsEmpty()) << "the call has no such input";
}

TEST_F(FrontendLinkRunTest, StagesWithoutElementsAreFinishedSo) {
  const Request run = ask_run(1, 5);
  ASSERT_TRUE(controller_
                  ->say(Completion{.id = run.id,
                                   .model = {},
                                   .pipeline = run.pipeline,
                                   .payload = run.payload,
                                   .detail = {},
                                   .finished = now_,
                                   .empty_stages = {1}})
                  .ok());
  ASSERT_EQ(frontend_.completions.size(), 1u);
  EXPECT_THAT(frontend_.empty, ElementsAre(std::pair(uint64_t{5}, 1u)));
}

TEST_F(FrontendLinkRunTest, ARunOfALostWorkerBeginsAgainWhileThereIsTime) {
  const Request first = ask_run(1, 5);
  ASSERT_TRUE(send_stage(0, 20, first, 0, 7).ok());
  ASSERT_TRUE(end_run(first, Refusal::kWorkerLost).ok());
  EXPECT_THAT(frontend_.completions, IsEmpty());
  const Request second = last_request();
  EXPECT_GT(second.id, first.id);
  EXPECT_EQ(second.arrival, first.arrival);
  EXPECT_EQ(second.deadline, first.deadline);
  ASSERT_TRUE(send_stage(0, 20, first, 0, 7).ok()) << "of the first attempt";
  ASSERT_TRUE(end_run(second, Refusal::kNone, {{0, ActionId(20), DeviceId(0)}}).ok());
  EXPECT_THAT(frontend_.completions, IsEmpty()) << "that does not count";
  ASSERT_TRUE(send_stage(0, 20, second, 0, 9).ok());
  ASSERT_EQ(frontend_.completions.size(), 1u);
  EXPECT_EQ(stage_output(5, 0), 9);
}

TEST_F(FrontendLinkRunTest, ARunIsRefusedForTheLossIfThereIsNoTimeLeft) {
  const Request first = ask_run(1, 5);
  ASSERT_TRUE(end_run(first, Refusal::kWorkerLost).ok());
  ASSERT_TRUE(end_run(last_request(), Refusal::kUnmeetable).ok());
  const Request late = ask_run(2, 6, 10);
  pass(11);
  ASSERT_TRUE(end_run(late, Refusal::kWorkerLost).ok());
  const Request often = ask_run(3, 7);
  ASSERT_TRUE(end_run(often, Refusal::kWorkerLost).ok());
  for (uint32_t i = 0; i < FrontendLink::kRestartsMax; ++i) {
    EXPECT_EQ(frontend_.completions.size(), 2u);
    ASSERT_TRUE(end_run(last_request(), Refusal::kWorkerLost).ok());
  }
  EXPECT_THAT(frontend_.answers(), ElementsAre("1: worker_lost", "2: worker_lost", "3: worker_lost"));
}

TEST_F(FrontendLinkRunTest, OutputsThatDoNotFitEndTheSession) {
  const Request run = ask_run(1, 5);
  EXPECT_THAT(send_stage(0, 20, run, 2, 7).message(), HasSubstr("a visit that there is not"));
  EXPECT_THAT(
      workers_[0]->say(Outputs{ActionId(20), visit_of(run.id, 0), visit_of(run.payload, 0), {{}, {}}}).message(),
      HasSubstr("do not fit the stage"));
}

// ---- Tasks ----

// Two variants; the controller's ids of them are not this side's.
class FrontendLinkTaskTest : public FrontendLinkTest {
 protected:
  static constexpr uint32_t kAccurate = 41;
  FrontendLinkTaskTest() {
    ModelInfo accurate = served_model();
    accurate.id = ModelId(kAccurate);
    accurate.name = "accurate";
    EXPECT_TRUE(controller_->say(Models{{served_model(), accurate}}).ok());
    EXPECT_TRUE(controller_->say(tasks()).ok());
  }
  static Tasks tasks(uint32_t id = 9) {
    return {{{ServedTaskId(id), "any", lines_of(R"(
[[variant]]
model = "doubling"
accuracy = 0.5
[[variant]]
model = "accurate"
accuracy = 0.9
)")}}};
  }
  // The rows of one call, as the controller receives them.
  std::vector<Request> ask_task(uint64_t first, uint32_t rows) {
    const ServedTaskId task = catalog_.find("any")->info->task->id;
    for (uint64_t id = first; id < first + rows; ++id) {
      frontend_.ids[id] = id;
      link_.submit({.id = RequestId(id),
                    .model = {},
                    .task = task,
                    .requirements = {.accuracy = 0.75, .cost_nanodollars_most = 6},
                    .call = RequestId(first),
                    .call_rows = rows,
                    .payload = PayloadHandle(id),
                    .arrival = now_,
                    .deadline = at_ms(1000)});
    }
    link_.on_turn_end(now_);
    return controller_->received<Request>(MessageType::kRequest);
  }
  Status end(const Request& request, uint32_t variant, Refusal refusal = Refusal::kNone) {
    return controller_->say(Completion{.id = request.id,
                                       .model = ModelId(variant),
                                       .task = request.task,
                                       .payload = request.payload,
                                       .refusal = refusal,
                                       .finished = now_,
                                       .action = ActionId(7)});
  }
};

TEST_F(FrontendLinkTaskTest, ShowsTasksOfTheModelsThatAreServed) {
  const Catalog::EntryPtr entry = catalog_.find("any");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->role, EntryRole::kTask);
  EXPECT_EQ(entry->state, ModelState::kReady);
  EXPECT_THAT(entry->models, ElementsAre("doubling", "accurate"));
  EXPECT_EQ(entry->info->task->variants[1].model, catalog_.find("accurate")->info);
  ASSERT_TRUE(controller_->say(Unserved{{{"any", "1", "variant 'other' is not served"}}}).ok());
  EXPECT_EQ(catalog_.find("any")->state, ModelState::kReady);
  EXPECT_EQ(catalog_.find("any")->reason, "variant 'other' is not served");
  ASSERT_TRUE(controller_->say(tasks(10)).ok());
  EXPECT_NE(catalog_.find("any")->info, entry->info) << "another one has taken its place";
  ASSERT_TRUE(controller_->say(Unserved{}).ok());
  ASSERT_TRUE(controller_->say(Tasks{}).ok());
  EXPECT_EQ(catalog_.find("any"), nullptr);
}

TEST_F(FrontendLinkTaskTest, RequestsSayWhatTheyNeedAndCompletionsWhichVariantAnswered) {
  const std::vector<Request> rows = ask_task(1, 3);
  ASSERT_EQ(rows.size(), 3u);
  for (const Request& row : rows) {
    EXPECT_EQ(row.task, ServedTaskId(9));
    EXPECT_EQ(row.requirements, (TaskRequirements{.accuracy = 0.75, .cost_nanodollars_most = 6}));
    EXPECT_EQ(row.call, rows[0].id) << "the call's first row, as the controller knows it";
    EXPECT_EQ(row.call_rows, 3u);
  }
  ASSERT_TRUE(workers_[0]->send(7, rows[0], 30).ok());
  ASSERT_TRUE(end(rows[0], kAccurate).ok());
  ASSERT_TRUE(end(rows[1], kServedModel, Refusal::kUnmeetable).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("1: 30", "2: unmeetable"));
  EXPECT_EQ(frontend_.completions[0].model, catalog_.find("accurate")->info->id);
  EXPECT_EQ(frontend_.completions[1].model, catalog_.find("doubling")->info->id);
  EXPECT_EQ(frontend_.completions[0].task, catalog_.find("any")->info->task->id);
  const std::vector<Request> alone = ask_task(4, 1);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].call, alone[0].id);
}

TEST_F(FrontendLinkTaskTest, CallsUnderWayKeepTheTaskThatTheyAskedFor) {
  const std::vector<Request> rows = ask_task(1, 1);
  ASSERT_TRUE(controller_->say(Models{{served_model()}}).ok());
  ASSERT_TRUE(controller_->say(Tasks{}).ok());
  pass(5000);
  ASSERT_TRUE(end(rows[0], kAccurate, Refusal::kUnmeetable).ok());
  EXPECT_NE(frontend_.completions[0].model, kUnnamed) << "a variant that is not served any more";
  frontend_.ids[2] = 2;
  link_.submit({.id = RequestId(2), .model = {}, .task = ServedTaskId(1), .payload = PayloadHandle(2)});
  link_.on_turn_end(now_);
  EXPECT_EQ(frontend_.answers().back(), "2: disconnected") << "a task that is forgotten is no model";
}

TEST_F(FrontendLinkTaskTest, WithoutItsControllerNothingIsLeftOfIt) {
  ask_task(1, 1);
  const Catalog::EntryPtr before = catalog_.find("any");
  controller_->close();
  EXPECT_THAT(frontend_.answers(), ElementsAre("1: disconnected"));
  meet_controller();
  EXPECT_EQ(catalog_.find("any"), nullptr);
  frontend_.ids[2] = 2;
  link_.submit({.id = RequestId(2), .model = {}, .task = before->info->task->id, .payload = PayloadHandle(2)});
  link_.on_turn_end(now_);
  EXPECT_EQ(frontend_.answers().back(), "2: disconnected");
}

TEST_F(FrontendLinkTest, PersonalModelsStayInTheCatalog) {
  auto info = std::make_shared<ModelInfo>(served_model());
  catalog_.put({.name = "films", .version = "1", .info = info, .role = EntryRole::kPersonal});
  ASSERT_TRUE(controller_->say(Models{{served_model()}}).ok());
  EXPECT_EQ(catalog_.find("films")->info, info);
  EXPECT_THAT(controller_->say(Homes{1, {}}).message(), HasSubstr("HOMES")) << "this one keeps no users";
  controller_->close();
  EXPECT_EQ(catalog_.find("films")->info, info) << "they are served here";
  EXPECT_EQ(catalog_.find("films")->role, EntryRole::kPersonal);
  EXPECT_EQ(catalog_.find("doubling")->info, nullptr);
}

}  // namespace
}  // namespace foliot
