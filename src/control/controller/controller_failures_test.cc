// What a controller does when LOADs and EXECs fail, and when devices come, drain and are lost.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "control/controller/test_controller.h"

namespace foliot {
namespace {

TEST_F(ControllerTest, AFailedRequestIsTriedAgainAFewTimes) {
  request(1);
  request(2, 0, at(24));  // no time is left for it
  load_model();
  ASSERT_EQ(infer({RequestId(1), RequestId(2)}, 0, 2), Verdict::kAccepted);
  outcome(OutcomeStatus::kFailed, at(20));
  EXPECT_EQ(completion(2).refusal, Refusal::kWorkerLost);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(sink_.completions.contains(RequestId(1)));
    ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted) << "there is no other device";
    outcome(OutcomeStatus::kFailed, at(20));
  }
  EXPECT_EQ(completion(1).refusal, Refusal::kWorkerLost);
}

TEST_F(ControllerTest, WhatTheModelsOwnCodeFailedOnIsRefusedAndNotTriedAgain) {
  controller_->add_device(4, at(0));
  for (uint64_t id = 1; id <= 3; ++id) request(id);
  load_model();
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  outcome(OutcomeStatus::kModelError, at(20));
  EXPECT_EQ(completion(1).refusal, Refusal::kModelError);
  EXPECT_EQ(controller_->cluster().copies[0], 1u) << "the device is well";

  ASSERT_EQ(infer({RequestId(2), RequestId(3)}, 0, 2), Verdict::kAccepted);
  const Action& both = sink_.actions.back();
  Outcome some{.action = both.id, .type = both.type, .device = both.device, .model = both.model};
  some.start = at(25);
  some.end = some.output_end = at(30);
  some.duration = Duration::seconds(1);
  some.failed_rows.set(1);
  const ExecShape shape{DeviceId(0), ModelId(0), BucketId(0), 1};
  const Duration expected = controller_->cluster().durations().exec(shape);
  controller_->on_outcome(some, at(30));
  EXPECT_EQ(controller_->cluster().durations().exec(shape), expected) << "rows were computed alone";
  EXPECT_TRUE(completion(2).served());
  EXPECT_EQ(completion(3).refusal, Refusal::kModelError);
}

TEST_F(ControllerTest, ACopyThatFailsIsUnloadedWhereAnotherDeviceCouldServe) {
  controller_->add_device(4, at(0));
  for (uint64_t id = 1; id <= 3; ++id) request(id);
  load_model();
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  ASSERT_EQ(infer({RequestId(2)}), Verdict::kAccepted);
  const Action second = sink_.actions.back();
  outcome_of(sink_.actions[1], OutcomeStatus::kFailed, at(10));
  EXPECT_EQ(infer({RequestId(3)}), Verdict::kNotPlaced);
  EXPECT_EQ(controller_->cluster().copies[0], 0u);
  EXPECT_EQ(controller_->cluster().device(DeviceId(0)).free_pages(), 1u);
  EXPECT_EQ(sink_.actions.size(), 3u) << "the second still runs";

  outcome_of(second, OutcomeStatus::kDone, at(15));
  EXPECT_TRUE(completion(2).served());
  EXPECT_EQ(sink_.actions.back().type, ActionType::kUnload);
  EXPECT_EQ(controller_->cluster().device(DeviceId(0)).free_pages(), 4u);
  outcome(OutcomeStatus::kDone, at(16));
  EXPECT_EQ(load(0, 0, at(109)), Verdict::kBackingOff);
  EXPECT_EQ(load(0, 0, at(110)), Verdict::kAccepted);

  load_model(0, 1);
  ASSERT_EQ(infer({RequestId(1)}, 0, 1, 1), Verdict::kAccepted);
  outcome();
  EXPECT_TRUE(completion(1).served());
}

TEST_F(ControllerTest, ACopyThatIsSetAsideIsGoneWithItsModelOrDevice) {
  controller_->add_device(4, at(0));
  request(1);
  request(2);
  load_model();
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  ASSERT_EQ(infer({RequestId(2)}), Verdict::kAccepted);
  outcome_of(sink_.actions[1], OutcomeStatus::kFailed, at(10));
  controller_->remove_model(ModelId(0), at(15));
  EXPECT_FALSE(controller_->model_gone(ModelId(0)));
  lose();
  EXPECT_TRUE(controller_->model_gone(ModelId(0)));
}

TEST_F(ControllerTest, AFailedLoadEndsTheRequestsThatNoDeviceCouldServe) {
  request(1);
  ASSERT_EQ(load(0), Verdict::kAccepted);
  outcome(OutcomeStatus::kFailed, at(10));
  EXPECT_EQ(completion(1).refusal, Refusal::kWorkerLost);
  EXPECT_EQ(load(0, 0, at(109)), Verdict::kBackingOff);
  EXPECT_EQ(controller_->proposals_rejected(), 1u);
  request(2);
  EXPECT_EQ(completion(2).refusal, Refusal::kWorkerLost) << "at once, and without another LOAD";
  request(3, 1);
  EXPECT_EQ(controller_->queued(), 1u) << "other models wait for theirs";

  controller_->on_request({.id = RequestId(4), .model = ModelId(0), .deadline = at(500)}, at(110));
  EXPECT_EQ(controller_->queued(), 2u) << "it may be repaired";
  ASSERT_EQ(load(0, 0, at(110)), Verdict::kAccepted);
  outcome(OutcomeStatus::kFailed, at(120));
  EXPECT_EQ(completion(4).refusal, Refusal::kWorkerLost);
  EXPECT_EQ(load(0, 0, at(319)), Verdict::kBackingOff);
  EXPECT_EQ(load(0, 0, at(320)), Verdict::kAccepted);
}

TEST_F(ControllerTest, AfterAFailedLoadRequestsWaitForADeviceThatCouldStillServe) {
  controller_->add_device(4, at(0));
  request(1);
  ASSERT_EQ(load(0), Verdict::kAccepted);
  outcome(OutcomeStatus::kFailed, at(10));
  EXPECT_EQ(controller_->queued(), 1u);
  ASSERT_EQ(load(0, 1, at(11)), Verdict::kAccepted);
  request(2);
  EXPECT_EQ(controller_->queued(), 2u) << "it is loading there";
  outcome(OutcomeStatus::kFailed, at(20));
  EXPECT_EQ(controller_->queued(), 0u);
  EXPECT_EQ(completion(2).refusal, Refusal::kWorkerLost);
}

TEST_F(ControllerTest, ThePolicyIsWokenWhenABackOffEnds) {
  ASSERT_EQ(load(0), Verdict::kAccepted);
  outcome(OutcomeStatus::kFailed, at(10));
  EXPECT_EQ(controller_->turn(at(10)), at(110));
  const int changes = policy_->device_changes;
  EXPECT_TRUE(controller_->turn(at(110)).is_infinite());
  EXPECT_EQ(policy_->device_changes, changes + 1);
}

TEST_F(ControllerTest, WhatHasFailedIsForgottenWithModelAndDevice) {
  ASSERT_EQ(load(0), Verdict::kAccepted);
  outcome(OutcomeStatus::kFailed, at(10));
  ASSERT_EQ(load(1), Verdict::kAccepted);
  outcome(OutcomeStatus::kFailed, at(10));
  auto model = std::make_shared<ModelInfo>(controller_->cluster().model(ModelId(0)));
  controller_->remove_model(ModelId(0), at(15));
  controller_->add_model(model, at(15));
  EXPECT_EQ(load(0, 0, at(16)), Verdict::kAccepted);
  EXPECT_EQ(unload(0), Verdict::kInUse);
  lose();
  join({});
  EXPECT_EQ(load(1, 0, at(30)), Verdict::kAccepted);
}

// ---- Devices that come and go ----

// Sees what the controller says of devices and of what they had to do.
class Witness : public Observer {
 public:
  void on_outcome(const Action&, const Outcome& outcome, TimePoint) override { statuses.push_back(outcome.status); }
  void on_device(const DeviceChange& change, TimePoint) override { states.push_back(change.state); }
  std::vector<OutcomeStatus> statuses;
  std::vector<DeviceState> states;
};

TEST_F(ControllerTest, WhatALostDeviceHadIsPlannedAgainOrRefusedAtOnce) {
  Witness witness;
  controller_->add_observer(witness);
  load_model();
  request(1);
  request(2, 0, at(24));  // no time is left for it
  ASSERT_EQ(infer({RequestId(1), RequestId(2)}, 0, 2), Verdict::kAccepted);
  controller_->add_device(4, at(15));  // where it could go on
  policy_->queued.clear();
  lose();
  EXPECT_EQ(witness.statuses, (std::vector{OutcomeStatus::kDone, OutcomeStatus::kLost}));
  EXPECT_EQ(witness.states, (std::vector{DeviceState::kUp, DeviceState::kLost}));
  EXPECT_EQ(policy_->queued, std::deque{RequestId(1)});
  EXPECT_EQ(completion(2).refusal, Refusal::kWorkerLost);
  EXPECT_EQ(controller_->actions_outstanding(), 0u);
}

TEST_F(ControllerTest, NothingIsPlacedOnALostDevice) {
  request(1);
  load_model();
  lose();
  const DeviceModel& device = controller_->cluster().device(DeviceId(0));
  EXPECT_EQ(device.page_count(), 0u);
  EXPECT_EQ(device.residency(ModelId(0)), Residency::kAbsent);
  EXPECT_EQ(controller_->cluster().copies[0], 0u);
  EXPECT_EQ(infer({RequestId(1)}), Verdict::kNotPlaced);
  EXPECT_EQ(load(0), Verdict::kNoPages);
  EXPECT_EQ(unload(0), Verdict::kNotPlaced);
  request(2);
  EXPECT_EQ(completion(2).refusal, Refusal::kWorkerLost) << "there is no device at all";
}

TEST_F(ControllerTest, ADeviceJoinsWithWhatItsPagesHold) {
  request(1);
  load_model();
  lose();
  join({ModelId(1)});
  EXPECT_EQ(controller_->cluster().copies[0], 0u);
  EXPECT_EQ(controller_->cluster().copies[1], 1u);
  EXPECT_EQ(controller_->cluster().device(DeviceId(0)).free_pages(), 1u);
  EXPECT_EQ(load(0), Verdict::kNoPages);
  request(3, 1);
  ASSERT_EQ(infer({RequestId(3)}, 1), Verdict::kAccepted);
  const ActionId answer = sink_.actions.back().id;
  outcome(OutcomeStatus::kDone, at(40));
  EXPECT_TRUE(completion(3).served());
  EXPECT_EQ(completion(3).action, answer);
}

TEST_F(ControllerTest, ALostDeviceForgetsItsMeasurements) {
  request(1);
  load_model();
  EXPECT_EQ(controller_->cluster().durations().load(DeviceId(0), ModelId(0)), ms(2));
  lose();
  EXPECT_EQ(controller_->cluster().durations().load(DeviceId(0), ModelId(0)), ms(5));
}

TEST_F(ControllerTest, ADrainingDeviceEndsWhatItHas) {
  request(1);
  request(2);
  load_model();
  ASSERT_EQ(infer({RequestId(1)}), Verdict::kAccepted);
  controller_->drain_device(DeviceId(0), at(20));
  EXPECT_EQ(infer({RequestId(2)}), Verdict::kNotPlaced);
  EXPECT_FALSE(controller_->idle(DeviceId(0)));
  outcome(OutcomeStatus::kDone, at(30));
  EXPECT_TRUE(completion(1).served());
  EXPECT_TRUE(controller_->idle(DeviceId(0)));
  lose();
  EXPECT_EQ(controller_->queued(), 1u) << "the other waits for a device";
}

TEST_F(ControllerTest, AModelThatIsRemovedIsGoneWithTheDeviceThatHeldIt) {
  load_model();
  controller_->remove_model(ModelId(0), at(15));
  EXPECT_FALSE(controller_->model_gone(ModelId(0)));
  lose();
  EXPECT_TRUE(controller_->model_gone(ModelId(0)));
}

TEST_F(ControllerTest, WhatWaitsForLostDevicesIsRefusedInTheEnd) {
  const DeviceId other = controller_->add_device(4, at(0));
  request(1);
  lose();
  controller_->lose_device(other, DeviceTrouble::kLink, at(3000));
  EXPECT_LE(controller_->turn(at(9000)), at(10'020));
  EXPECT_EQ(controller_->turn(at(10'020)), at(13'000));
  EXPECT_EQ(controller_->queued(), 1u);
  controller_->turn(at(13'000));
  EXPECT_EQ(completion(1).refusal, Refusal::kWorkerLost);
}

TEST_F(ControllerTest, WhatWaitsForADeviceThatComesBackIsKept) {
  request(1);
  lose();
  join({});
  controller_->turn(at(10'020));
  EXPECT_EQ(controller_->queued(), 1u);
  controller_->lose_device(DeviceId(0), DeviceTrouble::kLink, at(15'000));
  controller_->turn(at(20'000));
  EXPECT_EQ(controller_->queued(), 1u);
  controller_->turn(at(25'000));
  EXPECT_EQ(completion(1).refusal, Refusal::kWorkerLost);
}

}  // namespace
}  // namespace foliot
