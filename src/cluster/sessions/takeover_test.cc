// A front end whose controller was elected and is lost: what waits for the next one, and what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cluster/sessions/cluster_timeouts.h"
#include "cluster/sessions/test_frontend_link.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TakeoverTest : public FrontendLinkTest {
 protected:
  TakeoverTest() {
    controller_->close();
    controller_ = lead(5, kServedModel);
  }

  // A controller that leads with this epoch, and calls the model so. `model` kUnnamed: it serves none yet.
  std::unique_ptr<TestPeer> lead(uint64_t epoch, uint32_t model) {
    auto controller = std::make_unique<TestPeer>(link_, Role::kController, "b:8100", Standing{.epoch = epoch});
    controller->now = now_;
    EXPECT_TRUE(controller->say(Admission{kNumber}).ok());
    EXPECT_TRUE(controller->say(two_workers()).ok());
    controller->answer_pings();
    if (model != kUnnamed.value()) serve(*controller, model);
    return controller;
  }
  static void serve(TestPeer& controller, uint32_t id) {
    ModelInfo model = served_model();
    model.id = ModelId(id);
    EXPECT_TRUE(controller.say(Models{{model}}).ok());
  }
  void lose_controller() { controller_->close(); }
  void meet_workers() {
    workers_.clear();
    for (uint32_t i = 0; i < 2; ++i) workers_.push_back(std::make_unique<WorkerPeer>(link_, address(i)));
  }
  bool is_ready() { return catalog_.find("doubling")->state == ModelState::kReady; }
  static constexpr int64_t kFar = 60'000;
};

TEST_F(TakeoverTest, WhatWasAskedIsAskedAgainAndAnsweredOnce) {
  const Request first = ask(100, 1, kFar);
  lose_controller();
  EXPECT_THAT(frontend_.completions, IsEmpty());
  EXPECT_TRUE(is_ready());
  controller_ = lead(6, kServedModel + 7);
  const auto sent = controller_->received<Request>(MessageType::kRequest);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].model, ModelId(kServedModel + 7));
  EXPECT_GT(sent[0].id, first.id);
  EXPECT_EQ(sent[0].deadline, first.deadline);
  meet_workers();
  // What the worker computed for the controller before has another number.
  ASSERT_TRUE(workers_[0]->send(7, first, 1).ok());
  ASSERT_TRUE(complete(first, 7).ok());
  EXPECT_THAT(frontend_.completions, IsEmpty());
  ASSERT_TRUE(workers_[0]->send(7, sent[0], 2).ok());
  ASSERT_TRUE(complete(sent[0], 7).ok());
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: 2"));
}

TEST_F(TakeoverTest, WhatHasLittleTimeLeftIsRefusedAtOnce) {
  ask(100, 1, 900);
  ask(101, 2, 1100);
  lose_controller();
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected"));
  // Likewise what comes while no controller is there.
  ask(102, 3, 900);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected", "102: disconnected"));
  pass(1101);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected", "102: disconnected", "101: disconnected"));
}

TEST_F(TakeoverTest, WhatComesMeanwhileWaitsUntilTheModelIsServed) {
  lose_controller();
  EXPECT_EQ(ask(100, 1, kFar).id, RequestId());
  controller_ = lead(6, kUnnamed.value());
  pass(200);
  EXPECT_TRUE(is_ready());
  EXPECT_EQ(ask(101, 2, kFar).id, RequestId());
  serve(*controller_, 3);
  const auto sent = controller_->received<Request>(MessageType::kRequest);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].payload, PayloadHandle(0));  // in the order in which they came
  EXPECT_EQ(sent[1].payload, PayloadHandle(1));
}

TEST_F(TakeoverTest, NothingWaitsLongerThanTheTakeoverMayTake) {
  ask(100, 1, kFar);
  lose_controller();
  pass(4000);
  EXPECT_THAT(frontend_.completions, IsEmpty());
  EXPECT_TRUE(is_ready());
  pass(5100);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected"));
  EXPECT_FALSE(is_ready());
  // A model that the next controller does not serve in time is not served any more.
  controller_ = lead(6, kServedModel);
  EXPECT_TRUE(is_ready());
  lose_controller();
  controller_ = lead(7, kUnnamed.value());
  pass(10'200);
  EXPECT_FALSE(is_ready());
}

TEST_F(TakeoverTest, ASecondLossHasATimeOfItsOwn) {
  ask(100, 1, kFar);
  lose_controller();
  pass(4400);
  controller_ = lead(6, kUnnamed.value());
  lose_controller();
  pass(8000);
  EXPECT_THAT(frontend_.completions, IsEmpty());
  pass(9600);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected"));
}

TEST_F(TakeoverTest, WhatIsCancelledMeanwhileEnds) {
  ask(100, 1, kFar);
  lose_controller();
  link_.cancel(RequestId(100), Refusal::kCancelled);
  pass(100);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: cancelled"));
  controller_ = lead(6, kServedModel);
  EXPECT_THAT(controller_->received<Request>(MessageType::kRequest), IsEmpty());
}

TEST_F(TakeoverTest, InputsThatAWorkerHoldsAreNotAskedForAgain) {
  ask(100, 1, kFar, {DeviceId(0), PayloadHandle(3)});
  lose_controller();
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected"));
}

// Of another version, or with other content, it is another model.
TEST_F(TakeoverTest, OnlyTheSameModelIsAskedAgain) {
  ask(100, 1, kFar);
  lose_controller();
  controller_ = lead(6, kUnnamed.value());
  ModelInfo other = served_model();
  other.version = "2";
  ASSERT_TRUE(controller_->say(Models{{other}}).ok());
  EXPECT_THAT(controller_->received<Request>(MessageType::kRequest), IsEmpty());
  EXPECT_EQ(ask(101, 2, kFar).payload, PayloadHandle(1));  // of version 2
  pass(5100);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected"));
}

TEST_F(TakeoverTest, WhatIsLeftWhenThisSideStopsIsRefused) {
  ask(100, 1, kFar);
  lose_controller();
  link_.refuse_waiting(now_);
  EXPECT_THAT(frontend_.answers(), ElementsAre("100: disconnected"));
}

}  // namespace
}  // namespace foliot
