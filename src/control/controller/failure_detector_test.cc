#include "control/controller/failure_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

constexpr DeviceId kFirst(0);
const Duration kSeed = ms(5);

// Devices that send something every 50 ms, but for those that are mute.
class FailureDetectorTest : public ::testing::Test {
 protected:
  FailureDetectorTest() { make(4); }

  void make(uint32_t devices) {
    cluster_.devices.clear();
    failure_detector_.emplace(FailureDetectorOptions(), cluster_);
    for (uint32_t i = 0; i < devices; ++i) {
      cluster_.add_device(KindId(), 10);
      failure_detector_->on_join(DeviceId(i), at(0));
    }
  }
  DeviceModel& device(DeviceId id) { return cluster_.devices[id.value()]; }

  // Lets time pass, and takes in what is found as the controller does.
  void run_until(int64_t end, DeviceId mute = DeviceId(99)) {
    for (; now_ <= end; now_ += 50) {
      for (const DeviceModel& d : cluster_.devices) {
        if (d.id() != mute && d.state() != DeviceState::kLost) failure_detector_->on_message(d.id(), at(now_));
      }
      for (const FailureDetector::Finding& finding : failure_detector_->check(at(now_))) {
        findings_.push_back(finding);
        if (finding.state != DeviceState::kLost) {
          device(finding.device).set_state(finding.state);
          continue;
        }
        device(finding.device).lose();
        failure_detector_->on_lost(finding.device, finding.trouble, at(now_));
      }
    }
  }
  void rejoin(DeviceId id) {
    device(id).join(10, 1, {}, 0, at(now_));
    failure_detector_->on_join(id, at(now_));
  }
  void exec(DeviceId id, double times, int64_t when) {
    failure_detector_->on_exec(id, kSeed, kSeed.scaled(times), at(when));
  }
  void fail(DeviceId id, ActionType type, const std::vector<uint32_t>& models) {
    for (const uint32_t model : models) failure_detector_->on_result(id, type, ModelId(model), true, at(now_));
  }
  void succeed(DeviceId id, ActionType type, const std::vector<uint32_t>& models) {
    for (const uint32_t model : models) {
      failure_detector_->on_result(id, type, ModelId(model), false, at(now_));
      if (type == ActionType::kInfer) exec(id, 1, now_);
    }
  }
  // Every device reports, `late` by so many milliseconds, so many times in a row.
  void report(DeviceId late, int64_t by_ms, int times = 3) {
    for (int i = 0; i < times; ++i) {
      for (const DeviceModel& d : cluster_.devices) {
        failure_detector_->on_report(d.id(), at(now_ - (d.id() == late ? by_ms : 1)), at(now_));
      }
    }
    run_until(now_);
  }
  DeviceState state(DeviceId id = kFirst) { return device(id).state(); }

  Cluster cluster_;
  std::optional<FailureDetector> failure_detector_;
  std::vector<FailureDetector::Finding> findings_;
  int64_t now_ = 0;
};

TEST_F(FailureDetectorTest, NothingIsWrongWithDevicesThatSendHeartbeats) {
  run_until(5000);
  EXPECT_TRUE(findings_.empty());
}

TEST_F(FailureDetectorTest, SilenceIsSuspectAndThenFenced) {
  run_until(100, kFirst);
  EXPECT_EQ(state(), DeviceState::kUp);
  run_until(250, kFirst);
  EXPECT_EQ(state(), DeviceState::kSuspected);
  run_until(600, kFirst);
  EXPECT_EQ(state(), DeviceState::kLost);
  EXPECT_EQ(findings_.back().trouble, DeviceTrouble::kSilent);
  EXPECT_EQ(state(DeviceId(1)), DeviceState::kUp);
}

TEST_F(FailureDetectorTest, AShortSilenceIsForgiven) {
  run_until(250, kFirst);
  run_until(300);
  EXPECT_EQ(state(), DeviceState::kUp);
  EXPECT_EQ(findings_.size(), 2u);
}

TEST_F(FailureDetectorTest, TimeoutsRestartAfterTheControllerWasAway) {
  run_until(100);
  now_ = 3000;
  run_until(3050, kFirst);
  EXPECT_TRUE(findings_.empty());
}

TEST_F(FailureDetectorTest, AnActionThatNeverEndsIsFoundDespiteHeartbeats) {
  const ModelId model(0);
  device(kFirst).sent_load(ActionId(1), model, 1, at(0), ms(5), at(0));
  device(kFirst).load_over(ActionId(1), model, 1, true, at(5));
  device(kFirst).sent_infer(ActionId(2), model, {}, at(100), ms(20), at(100));
  run_until(200);
  EXPECT_EQ(state(), DeviceState::kUp);  // 80 ms would be slow, not strange
  run_until(400);
  EXPECT_EQ(state(), DeviceState::kSuspected);
  run_until(750);
  EXPECT_EQ(state(), DeviceState::kLost);
  EXPECT_EQ(findings_.back().trouble, DeviceTrouble::kOverdue);
}

TEST_F(FailureDetectorTest, ADeviceThatIsTenTimesAsSlowIsFenced) {
  for (int i = 0; i < 20; ++i) exec(DeviceId(1), 1, i);
  for (int i = 0; i < 5; ++i) exec(kFirst, 10, 50 * i);
  run_until(300);
  EXPECT_EQ(state(), DeviceState::kLost);
  EXPECT_EQ(findings_.back().trouble, DeviceTrouble::kSlow);
}

TEST_F(FailureDetectorTest, AFewSlowOnesAreEnoughWhereThereAreNoOthers) {
  for (int i = 0; i < 3; ++i) exec(kFirst, 5, 300 * i);
  run_until(900);
  EXPECT_EQ(state(), DeviceState::kUp);
  run_until(1100);
  EXPECT_EQ(state(), DeviceState::kLost);
}

TEST_F(FailureDetectorTest, StallsAndErrorsOfEstimationAreNoReason) {
  for (int i = 0; i < 400; ++i) {
    exec(kFirst, i % 5 == 0 ? 13 : 1, 10 * i);  // a stall of 60 ms every 50 ms
    exec(DeviceId(1), 3.5, 10 * i);             // seeds that are far too low
  }
  run_until(4000);
  EXPECT_TRUE(findings_.empty());
}

TEST_F(FailureDetectorTest, AClusterThatIsSlowAsAWholeServesOn) {
  for (int i = 0; i < 100; ++i) {
    for (uint32_t d = 0; d < 4; ++d) exec(DeviceId(d), 10, 20 * i + d);
    run_until(20 * i);
  }
  EXPECT_LE(findings_.size(), 1u);
}

TEST_F(FailureDetectorTest, NoMoreThanHalfAreFencedForBeingSlow) {
  make(2);
  for (int i = 0; i < 5; ++i) exec(DeviceId(0), 40, 10 * i);
  for (int i = 0; i < 5; ++i) exec(DeviceId(1), 9000, 50 + 10 * i);
  run_until(200);
  EXPECT_EQ(state(DeviceId(0)), DeviceState::kLost);
  EXPECT_EQ(state(DeviceId(1)), DeviceState::kUp);
  make(1);
  for (int i = 0; i < 50; ++i) exec(kFirst, 40, 10 * i);
  run_until(5000);
  EXPECT_EQ(state(), DeviceState::kUp) << "there is no other device";
}

TEST_F(FailureDetectorTest, ProbationIsShortForADeviceStillSlow) {
  for (int i = 0; i < 5; ++i) exec(kFirst, 10, 10 * i);
  run_until(100);
  ASSERT_EQ(state(), DeviceState::kLost);
  EXPECT_EQ(failure_detector_->may_join(kFirst), at(1000));

  run_until(1050);
  rejoin(kFirst);
  for (int i = 0; i < 2; ++i) exec(kFirst, 10, now_);
  run_until(1200);
  ASSERT_EQ(state(), DeviceState::kLost);
  EXPECT_GE(failure_detector_->may_join(kFirst), at(3000)) << "twice as long";

  run_until(4000);
  rejoin(kFirst);
  for (int i = 0; i < 20; ++i) exec(kFirst, 1, now_);
  for (int i = 0; i < 2; ++i) exec(kFirst, 10, now_);
  run_until(4100);
  EXPECT_EQ(state(), DeviceState::kUp) << "it is trusted again";
}

// ---- Failures ----

TEST_F(FailureDetectorTest, ADeviceThatFailsWhereOthersDoNotIsFencedAtOnce) {
  for (const ActionType type : {ActionType::kLoad, ActionType::kInfer}) {
    make(2);
    run_until(now_);
    succeed(kFirst, ActionType::kInfer, {1, 2, 3, 4});
    succeed(DeviceId(1), type, {1, 2, 3});
    fail(kFirst, type, {1, 2, 1, 3});
    run_until(now_);
    ASSERT_EQ(state(), DeviceState::kUp) << "four may be chance";
    fail(kFirst, type, {2});
    EXPECT_EQ(failure_detector_->next_check(), at(now_)) << "it takes all the work";
    run_until(now_);
    EXPECT_EQ(state(), DeviceState::kLost);
    EXPECT_EQ(findings_.back().trouble, DeviceTrouble::kFailing);
    EXPECT_EQ(state(DeviceId(1)), DeviceState::kUp);
  }
}

TEST_F(FailureDetectorTest, OneSuccessIsEnoughToBeWell) {
  for (int i = 0; i < 20; ++i) {
    fail(kFirst, ActionType::kLoad, {1, 2, 3, 4});
    succeed(kFirst, ActionType::kLoad, {5});
    run_until(now_);
  }
  EXPECT_TRUE(findings_.empty());
}

// LOADs of the others need not come, since they are loaded.
TEST_F(FailureDetectorTest, DamagedModelsAreNoReasonWhereOthersRun) {
  succeed(kFirst, ActionType::kInfer, {3});
  for (int i = 0; i < 50; ++i) {
    fail(kFirst, ActionType::kLoad, {1, 2});
    fail(kFirst, ActionType::kInfer, {1, 2});
    run_until(now_);
  }
  EXPECT_TRUE(findings_.empty());
  failure_detector_->forget_model(ModelId(3));
  fail(kFirst, ActionType::kLoad, {1});
  run_until(now_);
  EXPECT_EQ(state(), DeviceState::kLost) << "nothing runs on it any more";
}

TEST_F(FailureDetectorTest, LoadsThatAllFailAreAReasonThoughOtherModelsRun) {
  for (uint32_t model = 1; model <= 5; ++model) {
    succeed(kFirst, ActionType::kInfer, {9});
    fail(kFirst, ActionType::kLoad, {model});
  }
  run_until(now_);
  EXPECT_EQ(findings_.back().trouble, DeviceTrouble::kFailing);
}

TEST_F(FailureDetectorTest, WhereThereAreFewModelsTheyAreEnough) {
  succeed(kFirst, ActionType::kInfer, {1});
  fail(kFirst, ActionType::kInfer, {1, 1, 1, 1, 1});
  run_until(now_);
  EXPECT_EQ(state(), DeviceState::kLost);
}

TEST_F(FailureDetectorTest, NoMoreThanHalfAreFencedForFailing) {
  for (uint32_t d = 0; d < 4; ++d) fail(DeviceId(d), ActionType::kLoad, {1, 2, 3, 4, 5, 6});
  run_until(now_ + 500);
  EXPECT_TRUE(findings_.empty()) << "all fail alike";
  for (uint32_t d = 2; d < 4; ++d) succeed(DeviceId(d), ActionType::kLoad, {1});
  run_until(now_ + 500);
  EXPECT_EQ(findings_.size(), 2u) << "those that still fail";
  fail(DeviceId(2), ActionType::kLoad, {1, 2, 3, 4, 5, 6});
  run_until(now_ + 500);
  EXPECT_EQ(state(DeviceId(2)), DeviceState::kUp);
  make(1);
  fail(kFirst, ActionType::kLoad, {1, 2, 3, 4, 5, 6});
  run_until(now_ + 500);
  EXPECT_EQ(state(), DeviceState::kUp) << "there is no other";
}

TEST_F(FailureDetectorTest, ProbationIsShortForWhatStillFails) {
  fail(kFirst, ActionType::kLoad, {1, 2, 3, 4, 5});
  run_until(100);
  ASSERT_EQ(state(), DeviceState::kLost);
  EXPECT_EQ(failure_detector_->may_join(kFirst), at(1000));

  run_until(1050);
  rejoin(kFirst);
  succeed(kFirst, ActionType::kInfer, std::vector<uint32_t>(50, 1));
  fail(kFirst, ActionType::kLoad, {2});
  run_until(now_ + 50);
  EXPECT_EQ(state(), DeviceState::kUp);
  fail(kFirst, ActionType::kLoad, {3});
  run_until(now_ + 50);
  ASSERT_EQ(state(), DeviceState::kLost) << "no LOAD has succeeded";
  EXPECT_GE(failure_detector_->may_join(kFirst), at(3000)) << "twice as long";

  run_until(4000);
  rejoin(kFirst);
  succeed(kFirst, ActionType::kLoad, {1});
  succeed(kFirst, ActionType::kInfer, std::vector<uint32_t>(20, 1));
  fail(kFirst, ActionType::kLoad, {2, 3});
  run_until(now_ + 50);
  EXPECT_EQ(state(), DeviceState::kUp) << "it is trusted again";
}

TEST_F(FailureDetectorTest, ADeviceThatReportsLateIsSuspectedForAWhile) {
  report(kFirst, 50, 2);
  EXPECT_EQ(state(), DeviceState::kUp) << "two may be chance";
  report(kFirst, 50, 1);
  EXPECT_EQ(state(), DeviceState::kSuspected);
  EXPECT_EQ(findings_.back().trouble, DeviceTrouble::kLate);
  run_until(now_ + 250);
  EXPECT_EQ(state(), DeviceState::kUp);
}

TEST_F(FailureDetectorTest, ADeviceStillLateIsSuspectedForTwiceAsLong) {
  report(kFirst, 50);
  run_until(now_ + 250);
  report(kFirst, 50, 1);
  EXPECT_EQ(state(), DeviceState::kSuspected) << "one is enough now";
  run_until(now_ + 250);
  EXPECT_EQ(state(), DeviceState::kSuspected);
  run_until(now_ + 200);
  EXPECT_EQ(state(), DeviceState::kUp);
  report(kFirst, 1, 1);
  report(kFirst, 50, 2);
  EXPECT_EQ(state(), DeviceState::kUp) << "it was in time between";
}

TEST_F(FailureDetectorTest, ADeviceInTimeAgainIsUpAtOnce) {
  report(kFirst, 50);
  ASSERT_EQ(state(), DeviceState::kSuspected);
  report(kFirst, 1, 1);
  EXPECT_EQ(state(), DeviceState::kUp);
}

TEST_F(FailureDetectorTest, WhereAllAreLateNoneIsSuspected) {
  for (int i = 0; i < 5; ++i) {
    for (uint32_t d = 0; d < 4; ++d) failure_detector_->on_report(DeviceId(d), at(now_ - 50), at(now_));
  }
  run_until(now_);
  for (uint32_t d = 0; d < 4; ++d) EXPECT_EQ(state(DeviceId(d)), DeviceState::kUp);
}

TEST_F(FailureDetectorTest, NoMoreThanHalfAreSuspectedForBeingLate) {
  for (int i = 0; i < 3; ++i) {
    for (uint32_t d = 0; d < 4; ++d)
      failure_detector_->on_report(DeviceId(d), at(now_ - (d == 0 ? 1 : 50 * d * d * d)), at(now_));
  }
  run_until(now_);
  const auto suspected = [&](uint32_t d) { return state(DeviceId(d)) == DeviceState::kSuspected; };
  EXPECT_LE(suspected(0) + suspected(1) + suspected(2) + suspected(3), 2);
  make(1);
  report(kFirst, 50);
  EXPECT_EQ(state(), DeviceState::kUp) << "late is better than not at all";
}

}  // namespace
}  // namespace foliot
