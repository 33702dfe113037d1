// A worker's registration, actions, devices, models and end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/sessions/test_worker_link.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(WorkerLinkTest, ObserversSeeEachActionAndItsEnd) {
  begin();
  EXPECT_THAT(watcher_.models, ElementsAre("doubling"));
  EXPECT_THAT(watcher_.seen, ElementsAre("LOAD 1 of 0", "LOAD 1 of 0 done"));
  watcher_.seen.clear();
  Action unknown = action(2, ActionType::kLoad);
  unknown.model = ModelId(kWorkerModel + 1);
  ASSERT_TRUE(controller_->say(unknown).ok());
  EXPECT_THAT(watcher_.seen, IsEmpty()) << "the worker has no such model";
  ASSERT_TRUE(controller_->say(infer(3, {{5, 1}})).ok());
  controller_->close();
  EXPECT_THAT(watcher_.seen, ElementsAre("INFER 3 of 0", "INFER 3 of 0 lost")) << "its inputs had not come";
}

TEST_F(WorkerLinkTest, RegistersWithWhereItIsSeen) {
  const auto registrations = controller_->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_EQ(registrations[0].data_address, "10.0.0.1:8200");
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty()));
  EXPECT_EQ(registered_, 0);
  ASSERT_TRUE(controller_->say(Welcome{{DeviceId(kDevice)}, {ModelId(kWorkerModel)}}).ok());
  EXPECT_EQ(registered_, 1);
}

TEST_F(WorkerLinkTest, ABatchRunsWhenTheInputsOfAllItsRowsAreThere) {
  begin();
  Client first(link_, 1);
  Client second(link_, 2);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}, {2, 10}, {1, 11}})).ok());
  EXPECT_THAT(first.fetched(), ElementsAre(10, 11));
  EXPECT_THAT(second.fetched(), ElementsAre(10));
  ASSERT_TRUE(first.send(2, 10, 1).ok());
  ASSERT_TRUE(first.send(2, 11, 3).ok());
  run();
  EXPECT_EQ(engine_.batches, 0);
  ASSERT_TRUE(second.send(2, 10, 2).ok());
  run();
  EXPECT_THAT(first.outputs(), ElementsAre("10: 2", "11: 6"));
  EXPECT_THAT(second.outputs(), ElementsAre("10: 4"));
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
}

TEST_F(WorkerLinkTest, TwoActionsOfOneRequestEachWaitForTheirOwnInputs) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  ASSERT_TRUE(controller_->say(infer(3, {{1, 10}, {1, 11}})).ok());
  EXPECT_THAT(client.fetched(), ElementsAre(10, 10, 11));
  ASSERT_TRUE(client.send(3, 10, 5).ok());
  run();
  EXPECT_EQ(engine_.batches, 0);
  ASSERT_TRUE(client.send(3, 10, 7).ok()) << "a second time is no harm, and changes nothing";
  ASSERT_TRUE(client.send(3, 11, 1).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: 10", "11: 2"));
  ASSERT_TRUE(client.send(2, 10, 6).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: 12"));
  EXPECT_THAT(outcomes(), ElementsAre("3 done", "2 done"));
}

TEST_F(WorkerLinkTest, OutputsForAClientThatIsGoneAreDropped) {
  begin();
  Client stays(link_, 1);
  Client leaves(link_, 2);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}, {2, 20}})).ok());
  ASSERT_TRUE(controller_->say(infer(3, {{2, 21}})).ok());
  ASSERT_TRUE(stays.send(2, 10, 1).ok());
  leaves.close();
  EXPECT_THAT(outcomes(), ElementsAre("3 too late")) << "that batch has no other rows";
  run();
  EXPECT_THAT(stays.outputs(), ElementsAre("10: 2"));
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
  ASSERT_TRUE(controller_->say(infer(4, {{2, 22}})).ok());
  EXPECT_THAT(outcomes(), ElementsAre("4 too late")) << "it is known to be gone";
}

TEST_F(WorkerLinkTest, AClientMayCancelARow) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}, {1, 11}})).ok());
  ASSERT_TRUE(client.send_nothing(2, 10).ok());
  ASSERT_TRUE(client.send(2, 11, 4).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: nothing", "11: 8"));
}

TEST_F(WorkerLinkTest, AClientThatAttachesLaterIsAskedThen) {
  begin();
  ASSERT_TRUE(controller_->say(infer(2, {{3, 10}})).ok());
  Client client(link_, 3);
  EXPECT_THAT(client.fetched(), ElementsAre(10));
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("10: 2"));
}

TEST_F(WorkerLinkTest, ANewConnectionOfAClientTakesThePlaceOfTheOldOne) {
  begin();
  Client old(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  Client next(link_, 1);
  EXPECT_THAT(old.check().message(), HasSubstr("another connection has taken its place"));
  old.close();
  EXPECT_THAT(next.fetched(), ElementsAre(10));
  ASSERT_TRUE(next.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(next.outputs(), ElementsAre("10: 2"));
}

TEST_F(WorkerLinkTest, InputsThatDoNotComeInTimeAreWaitedForNoLonger) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  now_ = at_ms(1001);
  link_.on_turn_end(now_);
  EXPECT_THAT(outcomes(), ElementsAre("2 too late"));
  EXPECT_TRUE(client.send(2, 10, 1).ok()) << "too late is no offence";
  run();
  EXPECT_EQ(engine_.batches, 0);
}

TEST_F(WorkerLinkTest, OneActionTooManyIsRefused) {
  begin();
  Client client(link_, 1);
  for (uint64_t i = 0; i < kActionsMax; ++i) {
    ASSERT_TRUE(controller_->say(infer(2 + i, {{1, 10 + i}})).ok());
  }
  EXPECT_THAT(outcomes(), IsEmpty());
  ASSERT_TRUE(controller_->say(infer(99, {{1, 99}})).ok());
  EXPECT_THAT(outcomes(), ElementsAre("99 queue full"));
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
  ASSERT_TRUE(controller_->say(infer(100, {{1, 100}})).ok());
  EXPECT_THAT(outcomes(), IsEmpty()) << "there is room again";
}

TEST_F(WorkerLinkTest, WhatHasNoRoomToBeStagedIsRefused) {
  WorkerLink small({.models_max = 4, .page_count = 4, .staging_bytes = 64},
                   {.log = [](Severity, const std::string&) {}, .on_registered = [](size_t) {}, .on_drained = [] {}});
  small.start({&worker_}, "peer:1", loop_);
  small.add_model(std::make_shared<const ModelInfo>(hosted_model()));
  TestPeer controller(small, Role::kController, "controller:8100");
  controller.answer_pings();
  small.on_turn_end(now_);
  welcome(controller);
  Client client(small, 1);
  std::vector<Row> rows;
  for (uint64_t i = 0; i < 9; ++i) rows.push_back({1, i});
  ASSERT_TRUE(controller.say(infer(2, rows)).ok());
  EXPECT_THAT(outcomes(controller), ElementsAre("2 no io memory"));
  EXPECT_THAT(client.fetched(), IsEmpty());
}

TEST_F(WorkerLinkTest, AnUnknownModelIsRefused) {
  begin();
  Action strange = infer(2, {{1, 10}});
  strange.model = ModelId(3);
  ASSERT_TRUE(controller_->say(strange).ok());
  strange = infer(3, {{1, 10}});
  strange.bucket = BucketId(9);
  ASSERT_TRUE(controller_->say(strange).ok());
  EXPECT_THAT(outcomes(), ElementsAre("2 unknown model", "3 unknown model"));
}

TEST_F(WorkerLinkTest, AGoodbyeInTheMiddleEndsWhatWaitsAndLetsRunWhatRuns) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());  // will run
  ASSERT_TRUE(controller_->say(infer(3, {{1, 11}})).ok());  // waits for its input
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  EXPECT_THAT(controller_->say(Goodbye{"it has stopped"}).message(), HasSubstr("it has stopped"));
  controller_->close();

  const auto next = meet_controller();
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration), IsEmpty()) << "something is under way";
  EXPECT_TRUE(client.send(3, 11, 1).ok()) << "it was asked for";
  run();
  EXPECT_EQ(engine_.batches, 1);
  EXPECT_THAT(client.outputs(), IsEmpty()) << "their request has no answer yet";
  const auto registrations = next->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_THAT(registrations[0].residents, ElementsAre(ElementsAre(0)));

  ASSERT_TRUE(next->say(Welcome{{DeviceId(kDevice)}, {ModelId(kWorkerModel)}}).ok());
  ASSERT_TRUE(next->say(infer(2, {{1, 12}})).ok()) << "ids begin again";
  ASSERT_TRUE(client.send(2, 12, 3).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("12: 6"));
  EXPECT_THAT(outcomes(*next), ElementsAre("2 done"));
}

// ---- Models that come and go

TEST_F(WorkerLinkTest, ANewVersionIsOfferedAndTheOldOneRunsUntilItIsReleased) {
  begin();
  update();
  std::vector<MessageType> types;
  for (const Frame& frame : controller_->frames()) {
    types.push_back(frame.type);
    if (frame.type == MessageType::kOffer) {
      Offer offer;
      ASSERT_TRUE(decode(frame, offer).ok());
      EXPECT_EQ(offer.model.id, ModelId(1));
      EXPECT_EQ(offer.model.version, "2");
    } else {
      Withdrawal withdrawal;
      ASSERT_TRUE(decode(frame, withdrawal).ok());
      EXPECT_EQ(withdrawal.model, ModelId(0));
    }
  }
  EXPECT_THAT(types, ElementsAre(MessageType::kOffer, MessageType::kWithdrawal));

  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));

  ASSERT_TRUE(controller_->say(Naming{ModelId(1), ModelId(kWorkerModel + 1)}).ok());
  Action load = action(3, ActionType::kLoad);
  load.model = ModelId(kWorkerModel + 1);
  ASSERT_TRUE(controller_->say(load).ok());
  ASSERT_TRUE(controller_->say(action(4, ActionType::kUnload)).ok());
  run();
  EXPECT_THAT(outcomes(), UnorderedElementsAre("3 done", "4 done"));
  EXPECT_EQ(gone_, 0);
  ASSERT_TRUE(controller_->say(Release{ModelId(0)}).ok());
  EXPECT_EQ(gone_, 1);
  ASSERT_TRUE(controller_->say(action(5, ActionType::kLoad)).ok());
  EXPECT_THAT(outcomes(), ElementsAre("5 unknown model"));
}

TEST_F(WorkerLinkTest, ThePagesHoldOnlyModelsThatTheNextControllerKnows) {
  begin();
  controller_->close();
  update();
  EXPECT_EQ(gone_, 0);
  const auto next = meet_controller();
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration), IsEmpty()) << "the pages are being emptied";
  run();
  const auto registrations = next->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  ASSERT_EQ(registrations[0].models.size(), 1u);
  EXPECT_EQ(registrations[0].models[0].version, "2");
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty()));
  EXPECT_FALSE(worker_.resident(ModelId(0)));
  EXPECT_EQ(gone_, 1);
}

TEST_F(WorkerLinkTest, ThePagesHoldNothingThatTheControllerHasNoNameFor) {
  begin();
  controller_->close();
  const auto next = meet_controller();
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration)[0].residents, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(next->say(Welcome{{DeviceId(kDevice)}, {kUnnamed}}).message(), HasSubstr("not served"));
  next->close();
  const auto again = meet_controller();
  run();
  const auto registrations = again->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_EQ(registrations[0].models.size(), 1u);
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty()));
}

class TwoDevicesTest : public WorkerLinkTest {
 protected:
  static constexpr uint32_t kSecond = 3;

  TwoDevicesTest() : WorkerLinkTest(true) {}
  void welcome_both(TestPeer& controller) {
    EXPECT_TRUE(controller.say(Welcome{{DeviceId(kDevice), DeviceId(kSecond)}, {ModelId(kWorkerModel)}}).ok());
  }
  static Action on(uint32_t device, Action action) {
    action.device = DeviceId(device);
    return action;
  }
};

TEST_F(TwoDevicesTest, EachIsRegisteredWithItsPagesAndWhatTheyHold) {
  auto registrations = controller_->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_THAT(registrations[0].page_counts, ElementsAre(4, 4));
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty(), IsEmpty()));
  welcome_both(*controller_);
  ASSERT_TRUE(controller_->say(on(kSecond, action(1, ActionType::kLoad))).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("1 done"));
  EXPECT_FALSE(worker_.resident(ModelId(0)));
  EXPECT_TRUE(second_.resident(ModelId(0)));
  controller_->close();
  const auto next = meet_controller();
  registrations = next->received<Registration>(MessageType::kRegistration);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_THAT(registrations[0].residents, ElementsAre(IsEmpty(), ElementsAre(0)));
}

TEST_F(TwoDevicesTest, ActionsGoToTheirDevicesAndOutcomesNameThem) {
  welcome_both(*controller_);
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(on(kSecond, action(1, ActionType::kLoad))).ok());
  ASSERT_TRUE(controller_->say(on(kDevice, infer(2, {{1, 10}}))).ok());
  ASSERT_TRUE(controller_->say(on(kSecond, infer(3, {{1, 11}}))).ok());
  ASSERT_TRUE(client.send(2, 10, 4).ok());
  ASSERT_TRUE(client.send(3, 11, 5).ok());
  run();
  std::vector<std::string> ended;
  for (const Outcome& outcome : controller_->received<Outcome>(MessageType::kOutcome)) {
    ended.push_back(std::to_string(outcome.action.value()) + " on " + std::to_string(outcome.device.value()) + " " +
                    std::string(to_string(outcome.status)));
  }
  EXPECT_THAT(ended, UnorderedElementsAre("1 on 3 done", "2 on 7 not loaded", "3 on 3 done"));
  EXPECT_THAT(client.outputs(), ElementsAre("11: 10"));
}

TEST_F(TwoDevicesTest, WhatOneHoldsIsFedToTheOtherWithoutALink) {
  welcome_both(*controller_);
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(on(kDevice, action(1, ActionType::kLoad))).ok());
  ASSERT_TRUE(controller_->say(on(kSecond, action(2, ActionType::kLoad))).ok());
  run();
  const PayloadReference held = hold(client, 3, 4);
  ASSERT_TRUE(controller_->say(on(kSecond, infer(4, {{1, 11, held}}))).ok());
  run();
  EXPECT_THAT(client.outputs(), ElementsAre("11: 16"));
  EXPECT_THAT(loop_.kept, IsEmpty());
}

TEST_F(TwoDevicesTest, BothAreEmptiedOfWhatIsNotServed) {
  welcome_both(*controller_);
  ASSERT_TRUE(controller_->say(on(kDevice, action(1, ActionType::kLoad))).ok());
  ASSERT_TRUE(controller_->say(on(kSecond, action(2, ActionType::kLoad))).ok());
  run();
  controller_->close();
  update();
  const auto next = meet_controller();
  run();
  EXPECT_FALSE(worker_.resident(ModelId(0)) || second_.resident(ModelId(0)));
  EXPECT_THAT(next->received<Registration>(MessageType::kRegistration)[0].residents, ElementsAre(IsEmpty(), IsEmpty()));
}

TEST_F(TwoDevicesTest, AWelcomeForAnotherNumberOfDevicesIsAnError) {
  EXPECT_THAT(controller_->say(Welcome{{DeviceId(kDevice)}, {ModelId(kWorkerModel)}}).message(),
              HasSubstr("does not fit the registration"));
}

TEST_F(WorkerLinkTest, AModelWhoseBatchHasNoRoomIsNotTakenIn) {
  EXPECT_TRUE(link_.check(hosted_model()).ok());
  ModelInfo large = hosted_model();
  large.inputs[0].shape = {kStagingBytes};
  EXPECT_THAT(link_.check(large).message(), HasSubstr("--staging"));
}

TEST_F(WorkerLinkTest, NamesBeforeItsWelcomeEndTheSession) {
  EXPECT_FALSE(controller_->say(Naming{ModelId(0), ModelId(kWorkerModel)}).ok());
}

TEST_F(WorkerLinkTest, DrainingAsksForNoMoreAndEndsWhenNothingIsUnderWay) {
  begin();
  Client client(link_, 1);
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  link_.drain();
  link_.on_turn_end(now_);
  EXPECT_EQ(controller_->received<Leave>(MessageType::kLeave).size(), 1u);
  now_ = at_ms(500);
  link_.on_turn_end(now_);
  EXPECT_FALSE(drained_);
  ASSERT_TRUE(client.send(2, 10, 1).ok());
  run();
  EXPECT_THAT(outcomes(), ElementsAre("2 done"));
  now_ = at_ms(900);
  link_.on_turn_end(now_);
  EXPECT_TRUE(drained_);
}

TEST_F(WorkerLinkTest, DrainingGivesUpAfterItsTime) {
  begin();
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  link_.drain();
  link_.on_turn_end(now_);
  now_ = at_ms(1002);
  link_.on_turn_end(now_);
  EXPECT_TRUE(drained_);
}

TEST_F(WorkerLinkTest, AFrameOutOfPlaceEndsTheSession) {
  EXPECT_THAT(controller_->say(infer(2, {{1, 10}})).message(), HasSubstr("for another device")) << "not welcome yet";
  EXPECT_THAT(controller_->say(Welcome{{DeviceId(1), DeviceId(2)}, {ModelId(0)}}).message(), HasSubstr("does not fit"));
  begin();
  EXPECT_THAT(controller_->say(Welcome{{DeviceId(1)}, {ModelId(0)}}).message(), HasSubstr("does not fit"));
  EXPECT_THAT(controller_->say(Leave{}).message(), HasSubstr("unexpected LEAVE message"));
  EXPECT_THAT(controller_->say(Pong{at_ms(77), at_ms(1)}).message(), HasSubstr("without a PING"));
  Action other = infer(2, {{1, 10}});
  other.device = DeviceId(kDevice + 1);
  EXPECT_THAT(controller_->say(other).message(), HasSubstr("for another device"));
  ASSERT_TRUE(controller_->say(infer(2, {{1, 10}})).ok());
  EXPECT_THAT(controller_->say(infer(2, {{1, 10}})).message(), HasSubstr("was sent before"));

  Client client(link_, 1);
  EXPECT_THAT(client.say(Attach{2}).message(), HasSubstr("attaches once"));
  EXPECT_THAT(client.say(Outputs{}).message(), HasSubstr("unexpected OUTPUTS message"));
  EXPECT_THAT(client.say(Inputs{ActionId(2), RequestId(10), {{}, {}}}).message(), HasSubstr("do not fit the model"));
  const std::byte byte{};
  EXPECT_THAT(client.say(Inputs{ActionId(2), RequestId(10), {{&byte, 1}}}).message(),
              HasSubstr("do not fit the model"));
  EXPECT_TRUE(client.send(5, 10, 1).ok()) << "of an action that is over, or of none: ignored";
  EXPECT_TRUE(client.send(2, 77, 1).ok());
  TestPeer stranger(link_, Role::kClient);
  EXPECT_THAT(stranger.say(Inputs{ActionId(2), RequestId(10), {}}).message(), HasSubstr("INPUTS without a FETCH"));
}

TEST_F(WorkerLinkTest, AClientThatIsSilentIsNotWaitedFor) {
  begin();
  Client client(link_, 1);
  client.now = at_ms(1000);
  ASSERT_TRUE(client.say(Ping{at_ms(1000)}).ok());
  now_ = at_ms(4900);
  link_.on_turn_end(now_);
  EXPECT_TRUE(client.check().ok());
  now_ = at_ms(5100);
  link_.on_turn_end(now_);
  EXPECT_THAT(client.check().message(), HasSubstr("no message for"));
}

}  // namespace
}  // namespace foliot
