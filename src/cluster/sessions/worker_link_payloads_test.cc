// Payloads that a worker holds for later requests and stages, and what other workers fetch of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/sessions/test_worker_link.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(WorkerLinkTest, OutputsStayWhereTheyWereMadeUntilTheirLastConsumerIsOver) {
  begin();
  Client client(link_, 1);
  const PayloadReference held = hold(client, 2, 5, 2);
  EXPECT_EQ(held.holder, DeviceId(kDevice));
  ASSERT_TRUE(controller_->say(infer(3, {{1, 11, held}, {1, 12}})).ok());
  EXPECT_THAT(client.fetched(), ElementsAre(12)) << "the other input is here";
  ASSERT_TRUE(client.send(3, 12, 7).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("11: 20", "12: 14"));
  ASSERT_TRUE(client.say(Consumed{held.handle, 1}).ok());
  EXPECT_EQ(link_.held().size(), 1u);
  ASSERT_TRUE(controller_->say(infer(4, {{1, 13, held}})).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("13: 20"));
  ASSERT_TRUE(client.say(Consumed{held.handle, 1}).ok());
  EXPECT_EQ(link_.held().size(), 0u);
  EXPECT_THAT(outcomes(), ElementsAre("2 done", "3 done", "4 done"));
}

TEST_F(WorkerLinkTest, AReferenceThatIsStaleOrOfAnotherClientFindsNothing) {
  begin();
  Client client(link_, 1);
  Client other(link_, 2);
  const PayloadReference stale = hold(client, 2, 5);
  ASSERT_TRUE(client.say(Consumed{stale.handle, 1}).ok());
  const PayloadReference held = hold(client, 3, 6);
  ASSERT_TRUE(controller_->say(infer(4, {{1, 11, stale}})).ok());
  ASSERT_TRUE(controller_->say(infer(5, {{2, 12, held}})).ok());
  run();
  EXPECT_THAT(detail(client), HasSubstr("not held any more"));
  EXPECT_THAT(detail(other), HasSubstr("not held any more"));
  ASSERT_TRUE(other.say(Consumed{held.handle, 1}).ok());
  EXPECT_EQ(link_.held().size(), 1u) << "it is not that client's";
}

TEST_F(WorkerLinkTest, WhatIsHeldEndsWithItsClientTheSessionAndInTime) {
  begin();
  Client stays(link_, 2);
  {
    Client client(link_, 1);
    hold(client, 2, 5);
    hold(client, 3, 6, 9);
    EXPECT_EQ(link_.held().size(), 2u);
    client.close();
  }
  EXPECT_EQ(link_.held().size(), 0u);

  Client client(link_, 1);
  hold(client, 4, 5);
  now_ = now_ + kClusterTimeouts.held_payload;
  link_.on_turn_end(now_);
  EXPECT_EQ(link_.held().size(), 1u);
  now_ = now_ + Duration::seconds(1);
  link_.on_turn_end(now_);
  EXPECT_EQ(link_.held().size(), 0u);
}

TEST_F(WorkerLinkTest, WhatIsHeldEndsWithTheController) {
  begin();
  Client client(link_, 1);
  const PayloadReference before = hold(client, 2, 5);
  controller_->close();
  EXPECT_EQ(link_.held().size(), 0u);
  controller_ = meet_controller();
  welcome(*controller_);
  const PayloadReference held = hold(client, 3, 6);
  EXPECT_NE(held, before);
  EXPECT_EQ(link_.held().size(), 1u);
}

TEST_F(WorkerLinkTest, OutputsWithoutRoomToBeHeldAreRefused) {
  begin();
  Client client(link_, 1);
  std::vector<Row> rows;
  for (uint64_t i = 0; i < 4; ++i) rows.push_back({1, 10 + i, {}, 1});
  ASSERT_TRUE(controller_->say(infer(2, rows)).ok());
  ASSERT_TRUE(controller_->say(infer(3, {{1, 20, {}, 1}})).ok());
  EXPECT_THAT(outcomes(), ElementsAre("3 no io memory")) << "the others' room is reserved";
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(client.send_nothing(2, 10 + i).ok());
  EXPECT_THAT(outcomes(), ElementsAre("2 too late")) << "all rows were cancelled";
  EXPECT_EQ(link_.held().used_bytes(), 0u);
  hold(client, 4, 1);
}

TEST_F(WorkerLinkHolderTest, InputsAreFetchedFromTheWorkerThatHoldsThem) {
  EXPECT_THAT(loop_.kept, IsEmpty()) << "nothing of it is needed";
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, kThere}, {1, 11}})).ok());
  EXPECT_THAT(loop_.kept, ElementsAre(kAddress));
  EXPECT_THAT(client_.fetched(), ElementsAre(11));
  TestPeer holder(link_, Role::kWorker, kAddress);
  const auto fetches = holder.received<Fetch>(MessageType::kFetch);
  ASSERT_EQ(fetches.size(), 1u);
  EXPECT_EQ(fetches[0].payload, kThere.handle);
  EXPECT_EQ(fetches[0].request, request_of(1, RequestId(10))) << "it says whose it is to be";
  const float number = 3;
  const float wrong = 4;
  ASSERT_TRUE(client_.send(2, 10, wrong).ok()) << "it is not asked, and changes nothing";
  ASSERT_TRUE(client_.send(2, 11, 1).ok());
  ASSERT_TRUE(holder.say(Inputs{ActionId(2), fetches[0].request, {std::as_bytes(std::span(&number, 1))}}).ok());
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre("10: 6", "11: 2"));

  ASSERT_TRUE(controller_->say(infer(3, {{1, 12, kThere}})).ok());
  EXPECT_EQ(holder.received<Fetch>(MessageType::kFetch).size(), 1u) << "over the same link";
  EXPECT_EQ(loop_.kept.size(), 1u);
}

TEST_F(WorkerLinkHolderTest, ARowWhoseInputsCannotBeHadSaysWhy) {
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, {DeviceId(99), PayloadHandle(1)}}})).ok());
  run();
  EXPECT_THAT(detail(client_), HasSubstr("the worker that held its inputs is gone"));

  ASSERT_TRUE(controller_->say(infer(3, {{1, 11, kThere}})).ok());
  link_.on_no_greeting(kAddress, Status::unavailable("cannot connect"));
  run();
  run();
  EXPECT_THAT(detail(client_), HasSubstr("the worker that held its inputs is lost"));

  TestPeer holder(link_, Role::kWorker, kAddress);
  ASSERT_TRUE(controller_->say(infer(4, {{1, 12, kThere}})).ok());
  ASSERT_TRUE(holder.say(Inputs{ActionId(4), request_of(1, RequestId(12)), {}}).ok());
  run();
  EXPECT_THAT(detail(client_), HasSubstr("not held any more"));

  ASSERT_TRUE(controller_->say(infer(5, {{1, 13, kThere}})).ok());
  const std::vector<float> two{1, 2};
  ASSERT_TRUE(holder.say(Inputs{ActionId(5), request_of(1, RequestId(13)), {std::as_bytes(std::span(two))}}).ok());
  run();
  EXPECT_EQ(detail(client_), "inputs of 8 bytes do not fit the model 'doubling', which takes 4");

  ASSERT_TRUE(controller_->say(infer(6, {{1, 14, kThere}, {1, 15}})).ok());
  ASSERT_TRUE(client_.send(6, 15, 4).ok());
  holder.close();
  run();
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre("14: nothing", "15: 8")) << "others' rows are not affected";
  EXPECT_THAT(outcomes(), ElementsAre("2 done", "3 done", "4 done", "5 done", "6 done"));
}

TEST_F(WorkerLinkHolderTest, AHolderThatLeavesIsConnectedToNoLonger) {
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, kThere}})).ok());
  ASSERT_TRUE(controller_->say(Workers{{{"w", "10.0.0.1:8200", {DeviceId(kDevice)}}}}).ok());
  EXPECT_THAT(loop_.kept, IsEmpty());
  run();
  run();
  EXPECT_THAT(detail(client_), HasSubstr("is lost"));
}

TEST_F(WorkerLinkHolderTest, AnsweredInTimeOrTooLate) {
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10, kThere}})).ok());
  now_ = at_ms(1001);
  link_.on_turn_end(now_);
  EXPECT_THAT(outcomes(), ElementsAre("2 too late"));
}

TEST_F(WorkerLinkHolderTest, AnotherWorkerGetsWhatIsItsClients) {
  const PayloadReference held = hold(client_, 2, 5);
  TestPeer other(link_, Role::kWorker);
  const auto fetch = [&](uint16_t client, PayloadHandle handle) {
    EXPECT_TRUE(other.say(Fetch{ActionId(9), request_of(client, RequestId(10)), handle}).ok());
    const auto inputs = other.received<Inputs>(MessageType::kInputs);
    EXPECT_EQ(inputs.size(), 1u);
    EXPECT_EQ(inputs[0].request, request_of(client, RequestId(10)));
    float number = 0;
    if (!inputs[0].tensors.empty()) std::memcpy(&number, inputs[0].tensors[0].data(), sizeof(number));
    return number;
  };
  EXPECT_EQ(fetch(1, held.handle), 10);
  EXPECT_EQ(fetch(1, held.handle), 10) << "fetching is not consuming: an action may be planned again";
  EXPECT_EQ(fetch(2, held.handle), 0);
  EXPECT_EQ(fetch(1, PayloadHandle(held.handle.value() + 1)), 0);
  EXPECT_FALSE(other.say(Attach{1}).ok()) << "it is no client";
}

// ---- Visits of stages ----

// Client 1's run 40; the model is that of every stage.
class WorkerLinkVisitTest : public WorkerLinkHolderTest {
 protected:
  static constexpr RequestId kRun = RequestId(kRunIdBit | 40);
  static RequestId visit(uint32_t stage) { return visit_of(request_of(1, kRun), stage); }
  static VisitOrder::Input from_call(uint32_t tensor) { return {.tensor = tensor, .pieces = {{}}}; }
  static VisitOrder::Input from_stage(uint32_t stage, DeviceId holder) {
    return {.tensor = 0, .pieces = {{stage, holder}}};
  }
  // Of one row.
  Status say_visit(uint64_t id, uint32_t stage, const VisitOrder& order) {
    EXPECT_TRUE(controller_->say(Visits{ActionId(id), {{0, order}}}).ok());
    return controller_->say(infer(id, {{1, own_id(visit(stage)).value()}}));
  }
  Outcome outcome() {
    const auto outcomes = controller_->received<Outcome>(MessageType::kOutcome);
    EXPECT_EQ(outcomes.size(), 1u);
    return outcomes.empty() ? Outcome() : outcomes.back();
  }
  Status give(uint64_t action, uint32_t stage, float number) {
    return client_.send(action, own_id(visit(stage)).value(), number);
  }
  static StageCondition below(double limit) {
    return {.comparison = StageCondition::Comparison::kBelow, .limit = limit};
  }
};

TEST_F(WorkerLinkVisitTest, WhatAStageComputesBecomesTheInputOfTheNextWithoutASocket) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(5)}, {below(11), below(9)}, {}, true}).ok());
  const auto fetches = client_.received<Fetch>(MessageType::kFetch);
  ASSERT_EQ(fetches.size(), 1u);
  EXPECT_EQ(fetches[0].request, own_id(visit(0)));
  EXPECT_EQ(fetches[0].tensors, std::vector<uint32_t>{5}) << "no other input of the call";
  ASSERT_TRUE(give(2, 0, 5).ok());
  run();
  const Outcome first = outcome();
  EXPECT_EQ(first.conditions[0], 1) << "10 is below 11, and not below 9";
  EXPECT_TRUE(first.unfed_rows.none());
  EXPECT_THAT(client_.outputs(), IsEmpty()) << "no client may get it";
  EXPECT_EQ(link_.held().size(), 1u);

  ASSERT_TRUE(say_visit(3, 1, {{from_stage(0, DeviceId(kDevice))}, {}, {0}, false}).ok());
  run();
  EXPECT_EQ(outcome().status, OutcomeStatus::kDone);
  EXPECT_THAT(client_.outputs(), ElementsAre(std::to_string(own_id(visit(1)).value()) + ": 20"));
  EXPECT_EQ(held_bytes_, 4u);
  EXPECT_EQ(fetched_bytes_, 0u);
  ASSERT_TRUE(controller_->say(Discard{visit(0)}).ok());
  EXPECT_EQ(link_.held().used_bytes(), 0u);
}

TEST_F(WorkerLinkVisitTest, InputsOfSeveralSourcesAreWaitedFor) {
  ASSERT_TRUE(say_visit(2, 2, {{from_stage(1, kOther)}, {}, {0}, false}).ok());
  EXPECT_THAT(loop_.kept, ElementsAre(kAddress));
  TestPeer holder(link_, Role::kWorker, kAddress);
  const auto fetches = holder.received<Fetch>(MessageType::kFetch);
  ASSERT_EQ(fetches.size(), 1u);
  EXPECT_EQ(fetches[0].request, visit(2));
  EXPECT_EQ(fetches[0].source, 2u);
  const float number = 3;
  const Inputs inputs{ActionId(2), visit(2), {std::as_bytes(std::span(&number, 1))}, 1};
  ASSERT_TRUE(holder.say(inputs).ok());
  run();
  EXPECT_THAT(client_.outputs(), IsEmpty()) << "they are of another stage";
  Inputs right = inputs;
  right.source = 2;
  ASSERT_TRUE(holder.say(right).ok());
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre(std::to_string(own_id(visit(2)).value()) + ": 6"));
  EXPECT_EQ(fetched_bytes_, 4u);
}

TEST_F(WorkerLinkVisitTest, OtherWorkersFetchWhatIsHeld) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(0)}, {}, {}, true}).ok());
  ASSERT_TRUE(give(2, 0, 5).ok());
  run();
  TestPeer other(link_, Role::kWorker);
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 1, {0}}).ok());
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 1, {1}}).ok());
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 2, {0}}).ok());
  const auto inputs = other.received<Inputs>(MessageType::kInputs);
  ASSERT_EQ(inputs.size(), 3u);
  ASSERT_EQ(inputs[0].tensors.size(), 1u);
  EXPECT_EQ(inputs[0].source, 1u);
  EXPECT_THAT(inputs[1].tensors, IsEmpty()) << "there is no such output";
  EXPECT_THAT(inputs[2].tensors, IsEmpty()) << "there was no such visit";
}

TEST_F(WorkerLinkVisitTest, AVisitWithoutItsInputsIsNamedAndHoldsNothing) {
  ASSERT_TRUE(say_visit(2, 1, {{from_stage(0, DeviceId(kDevice))}, {}, {0}, true}).ok());
  run();
  EXPECT_EQ(outcome().unfed_rows, RowSet(1)) << "this worker holds nothing of the run";
  EXPECT_THAT(client_.outputs(), IsEmpty());
  ASSERT_TRUE(say_visit(3, 1, {{from_stage(0, kOther)}, {}, {0}, true}).ok());
  link_.on_no_greeting(kAddress, Status::unavailable("cannot connect"));
  run();
  run();
  EXPECT_EQ(outcome().unfed_rows, RowSet(1)) << "the holder cannot be reached";
  EXPECT_EQ(link_.held().used_bytes(), 0u);
}

TEST_F(WorkerLinkVisitTest, TheOutcomeHasWhatIsCounted) {
  VisitOrder order{{from_call(0)}, {}, {}, true};
  order.count = 0;
  ASSERT_TRUE(say_visit(2, 0, order).ok());
  ASSERT_TRUE(give(2, 0, 1.25f).ok());
  run();
  EXPECT_EQ(outcome().counts[0], 2.5f) << "as it stands there";
  order.count = 1;
  EXPECT_FALSE(say_visit(3, 1, order).ok()) << "there is no such output";
}

TEST_F(WorkerLinkVisitTest, WhereNoPiecesComeTheInputIsZero) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(0)}, {}, {0}, false}).ok());
  ASSERT_TRUE(give(2, 0, 5).ok());
  run();
  const VisitOrder::Input none{.tensor = 0, .pieces_most = 4};
  ASSERT_TRUE(say_visit(3, 1, {{none}, {}, {0}, false}).ok());
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre(std::to_string(own_id(visit(0)).value()) + ": 10",
                                             std::to_string(own_id(visit(1)).value()) + ": 0"));
  const VisitOrder::Input uneven{.tensor = 0, .pieces_most = 3};
  EXPECT_FALSE(say_visit(4, 2, {{uneven}, {}, {0}, false}).ok());
}

TEST_F(WorkerLinkVisitTest, PiecesLieOneBehindTheOtherInTheirOrder) {
  // The bytes of a float, from two visits: 0x4140 is the upper half of 12, and the lower one is zero.
  const std::array<uint8_t, 2> lower{0, 0};
  const std::array<uint8_t, 2> upper{0x40, 0x41};
  const VisitOrder::Input halves{.tensor = 0, .pieces = {{4, kOther}, {3, kOther}}, .pieces_most = 2};
  ASSERT_TRUE(say_visit(2, 6, {{halves}, {}, {0}, false}).ok());
  TestPeer holder(link_, Role::kWorker, kAddress);
  ASSERT_EQ(holder.received<Fetch>(MessageType::kFetch).size(), 2u);
  ASSERT_TRUE(holder.say(Inputs{ActionId(2), visit(6), {std::as_bytes(std::span(upper))}, 4}).ok());
  ASSERT_TRUE(holder.say(Inputs{ActionId(2), visit(6), {std::as_bytes(std::span(lower))}, 5}).ok());
  run();
  EXPECT_THAT(client_.outputs(), ElementsAre(std::to_string(own_id(visit(6)).value()) + ": 24"));
}

TEST_F(WorkerLinkVisitTest, OfWhatIsHeldPartsAreFetched) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(0)}, {}, {}, true}).ok());
  ASSERT_TRUE(give(2, 0, 6).ok());
  run();
  TestPeer other(link_, Role::kWorker);
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 1, {0}, {{1, 2}}}).ok());
  ASSERT_TRUE(other.say(Fetch{ActionId(9), visit(3), {}, 1, {0}, {{1, 2}, {0, 2}}}).ok());
  const auto inputs = other.received<Inputs>(MessageType::kInputs);
  ASSERT_EQ(inputs.size(), 2u);
  ASSERT_EQ(inputs[0].tensors.size(), 1u);
  EXPECT_THAT(std::vector<std::byte>(inputs[0].tensors[0].begin(), inputs[0].tensors[0].end()),
              ElementsAre(std::byte{0x40}, std::byte{0x41}))
      << "the upper half of 12";
  EXPECT_THAT(inputs[1].tensors, IsEmpty()) << "not as many parts as tensors";
}

TEST_F(WorkerLinkVisitTest, WhatIsHeldEndsWithItsClient) {
  ASSERT_TRUE(say_visit(2, 0, {{from_call(0)}, {}, {}, true}).ok());
  ASSERT_TRUE(give(2, 0, 5).ok());
  run();
  EXPECT_EQ(link_.held().size(), 1u);
  client_.close();
  EXPECT_EQ(link_.held().used_bytes(), 0u);
  ASSERT_TRUE(controller_->say(Discard{visit(0)}).ok());
}

TEST_F(WorkerLinkVisitTest, VisitsThatDoNotFitEndTheSession) {
  const auto refusal = [this](const VisitOrder& order) { return std::string(say_visit(2, 0, order).message()); };
  EXPECT_THAT(refusal({{}, {}, {}, false}), HasSubstr("VISITS that do not fit the model"));
  EXPECT_THAT(refusal({{from_call(0)}, {}, {1}, false}), HasSubstr("VISITS that do not fit the model"));
  StageCondition condition = below(1);
  condition.value = StageCondition::Value::kElement;
  condition.element = 1;
  EXPECT_THAT(refusal({{from_call(0)}, {condition}, {}, false}), HasSubstr("VISITS that do not fit the model"));
  EXPECT_EQ(link_.held().used_bytes(), 0u);
  ASSERT_TRUE(controller_->say(Visits{ActionId(7), {}}).ok());
  EXPECT_THAT(controller_->say(infer(8, {{1, 10}})).message(), HasSubstr("after the VISITS of another"));
}

}  // namespace
}  // namespace foliot
