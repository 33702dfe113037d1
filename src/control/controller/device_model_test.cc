#include "control/controller/device_model.h"

#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

const Timeline::Link kHere{};
const Timeline::Link kFar{.delivery = ms(2), .report = ms(3)};

TEST(TimelineTest, WorkQueuesUp) {
  Timeline timeline;
  EXPECT_EQ(timeline.available(at(3), kHere), at(3));
  timeline.add(ActionId(1), at(3), ms(10), at(3), kHere);
  timeline.add(ActionId(2), at(3), ms(5), at(4), kHere);
  EXPECT_EQ(timeline.available(at(4), kHere), at(18));
}

TEST(TimelineTest, AnEarlyOrLateEndMovesWhatIsBehind) {
  Timeline timeline;
  timeline.add(ActionId(1), at(0), ms(10), at(0), kHere);
  timeline.add(ActionId(2), at(0), ms(5), at(0), kHere);
  timeline.remove(ActionId(1), at(7));
  EXPECT_EQ(timeline.available(at(8), kHere), at(12));
  // Overdue: over any moment now, not in the past.
  EXPECT_EQ(timeline.available(at(20), kHere), at(20));
}

TEST(TimelineTest, WhatIsRefusedFromBehindLeavesTheFirstAlone) {
  Timeline timeline;
  timeline.add(ActionId(1), at(0), ms(10), at(0), kHere);
  timeline.add(ActionId(2), at(0), ms(5), at(0), kHere);
  timeline.remove(ActionId(2), at(3));
  EXPECT_EQ(timeline.available(at(3), kHere), at(10));
}

TEST(TimelineTest, TakesWorkByItsWindowLikeTheExecutor) {
  Timeline timeline;
  timeline.add(ActionId(1), at(50), ms(10), at(0), kHere);
  EXPECT_EQ(timeline.available(at(0), kHere), at(60));
  timeline.add(ActionId(2), at(0), ms(5), at(0), kHere);
  timeline.remove(ActionId(2), at(5));
  EXPECT_EQ(timeline.available(at(5), kHere), at(60));
}

TEST(TimelineTest, WorkBeginsWhenItIsThere) {
  Timeline timeline;
  EXPECT_EQ(timeline.available(at(3), kFar), at(5));
  timeline.add(ActionId(1), at(3), ms(10), at(3), kFar);
  EXPECT_EQ(timeline.available(at(3), kFar), at(15));
  // Sent early enough, it is there when the other one ends.
  timeline.add(ActionId(2), at(12), ms(10), at(12), kFar);
  EXPECT_EQ(timeline.available(at(12), kFar), at(25));
  timeline.remove(ActionId(1), at(13));
  EXPECT_EQ(timeline.available(at(16), kFar), at(24));
}

constexpr LaneInterval kLeft{0, 1};
constexpr LaneInterval kRight{1, 1};
constexpr LaneInterval kBoth{0, 2};

TEST(TimelineTest, LanesAreFreeOnTheirOwn) {
  Timeline timeline(2);
  timeline.add(ActionId(1), at(0), ms(10), at(0), kHere, kLeft);
  EXPECT_EQ(timeline.available(at(0), kHere, kLeft), at(10));
  EXPECT_EQ(timeline.available(at(0), kHere, kRight), at(0));
  EXPECT_EQ(timeline.available(at(0), kHere, kBoth), at(10));
}

TEST(TimelineTest, AWideActionBeginsWhenTheLastOfItsLanesIsFree) {
  Timeline timeline(2);
  timeline.add(ActionId(1), at(0), ms(10), at(0), kHere, kLeft);
  timeline.add(ActionId(2), at(0), ms(5), at(0), kHere, kBoth);
  timeline.add(ActionId(3), at(0), ms(3), at(0), kHere, kRight);
  EXPECT_EQ(timeline.available(at(0), kHere, kLeft), at(15));
  EXPECT_EQ(timeline.available(at(0), kHere, kRight), at(18)) << "in the order in which they were sent";
  timeline.remove(ActionId(1), at(8));
  EXPECT_EQ(timeline.available(at(8), kHere, kLeft), at(13));
  EXPECT_EQ(timeline.available(at(8), kHere, kRight), at(16));
  timeline.remove(ActionId(2), at(14));
  EXPECT_EQ(timeline.available(at(14), kHere, kLeft), at(14));
  EXPECT_EQ(timeline.available(at(14), kHere, kRight), at(17));
}

TEST(TimelineTest, WhatRunsElsewhereLeavesTheFirstOfALaneAlone) {
  Timeline timeline(2);
  timeline.add(ActionId(1), at(0), ms(10), at(0), kHere, kLeft);
  timeline.add(ActionId(2), at(0), ms(20), at(0), kHere, kRight);
  timeline.remove(ActionId(1), at(12));
  EXPECT_EQ(timeline.available(at(12), kHere, kRight), at(20));
  EXPECT_EQ(timeline.first_end(1), at(20));
}

TEST(TimelineTest, TheFirstEndIsThatOfAnyLane) {
  Timeline timeline(2);
  EXPECT_TRUE(timeline.first_end(2).is_infinite());
  timeline.add(ActionId(1), at(0), ms(10), at(0), kHere, kLeft);
  timeline.add(ActionId(2), at(0), ms(4), at(0), kHere, kRight);
  EXPECT_EQ(timeline.first_end(2), at(8));
  timeline.remove(ActionId(2), at(4));
  EXPECT_EQ(timeline.first_end(2), at(20));
}

TEST(TimelineTest, WhatComesBeforeAWideActionPutsItBackOnAllLanes) {
  Timeline timeline(2);
  timeline.add(ActionId(1), at(5), ms(10), at(0), kHere, kBoth);
  timeline.add(ActionId(2), at(0), ms(8), at(0), kHere, kRight);
  EXPECT_EQ(timeline.available(at(0), kHere, kLeft), at(18));
  timeline.remove(ActionId(2), at(9));
  EXPECT_EQ(timeline.available(at(9), kHere, kLeft), at(19));
}

TEST(TimelineTest, WhatHasEndedNeedNotBeKnownYet) {
  Timeline timeline;
  timeline.add(ActionId(1), at(0), ms(10), at(0), kFar);
  timeline.add(ActionId(2), at(0), ms(10), at(0), kFar);
  EXPECT_EQ(timeline.available(at(15), kFar), at(22)) << "the first ended at 12, and is known to have at 15";
  EXPECT_EQ(timeline.available(at(17), kFar), at(24)) << "it ends later than was thought";
}

// EXEC takes 1 ms, OUTPUT 3.
TEST(TimelineTest, AnExecWaitsUntilOutputHasButOneResultLeft) {
  Timeline timeline;
  const auto add = [&](uint64_t id) { timeline.add(ActionId(id), at(0), ms(1), at(0), kHere, {}, ms(3)); };
  add(1);
  EXPECT_EQ(timeline.available(at(0), kHere), at(1)) << "OUTPUT will have this one alone";
  add(2);
  EXPECT_EQ(timeline.available(at(0), kHere), at(4)) << "OUTPUT has the first from 1 to 4";
  timeline.remove(ActionId(1), at(1), at(6));
  EXPECT_EQ(timeline.available(at(6), kHere), at(6));
  add(3);
  EXPECT_EQ(timeline.available(at(6), kHere), at(9)) << "the second is taken from 6 to 9";
  timeline.remove(ActionId(2), at(2), at(9));
  timeline.remove(ActionId(3), at(7), at(12));
  EXPECT_EQ(timeline.available(at(12), kHere), at(12));
}

TEST(TimelineTest, OutputThatKeepsUpDelaysNoExec) {
  Timeline timeline;
  for (uint64_t id = 1; id <= 5; ++id) timeline.add(ActionId(id), at(0), ms(4), at(0), kHere, {}, ms(3));
  EXPECT_EQ(timeline.available(at(0), kHere), at(20));
}

TEST(TimelineTest, ResultsOfOtherLanesThatAreNotThereYetDelayNoExec) {
  Timeline timeline(2);
  timeline.add(ActionId(1), at(0), ms(50), at(0), kHere, kLeft, ms(3));
  timeline.add(ActionId(2), at(0), ms(1), at(0), kHere, kRight, ms(3));
  EXPECT_EQ(timeline.available(at(0), kHere, kRight), at(1));
  timeline.add(ActionId(3), at(0), ms(1), at(0), kHere, kRight, ms(3));
  EXPECT_EQ(timeline.available(at(0), kHere, kRight), at(4));
}

// A thread that lost its core once took long for once.
TEST(DeviceModelTest, OfTwoOutputsTheShorterIsExpected) {
  DeviceModel device(DeviceId(0), 10);
  device.sent_load(ActionId(1), ModelId(0), 1, at(0), ms(1), at(0));
  device.load_over(ActionId(1), ModelId(0), 1, true, at(0));
  const auto available_after = [&](Duration first, Duration second) {
    for (const Duration row : {first, second}) {
      device.sent_infer(ActionId(2), ModelId(0), {}, at(0), ms(1), at(0), false, 1);
      device.measured_output(ModelId(0), row);
      device.infer_over(ActionId(2), ModelId(0), at(0), false, at(0));
    }
    for (uint64_t id = 3; id < 5; ++id) {
      device.sent_infer(ActionId(id), ModelId(0), {}, at(0), ms(1), at(0), false, 2);
    }
    const TimePoint available = device.exec_available(at(0));
    for (uint64_t id = 3; id < 5; ++id) device.infer_over(ActionId(id), ModelId(0), at(0), false, at(0));
    return available;
  };
  EXPECT_EQ(available_after(ms(3), ms(9)), at(7)) << "two rows of 3 ms from 1 on";
  EXPECT_EQ(available_after(ms(9), ms(3)), at(7));
  EXPECT_EQ(available_after(Duration(), ms(9)), at(2));
}

TEST(DeviceModelTest, PagesBalance) {
  DeviceModel device(DeviceId(0), 10);
  device.sent_load(ActionId(1), ModelId(0), 7, at(0), ms(8), at(0));
  EXPECT_EQ(device.free_pages(), 3u);
  EXPECT_EQ(device.residency(ModelId(0)), Residency::kLoading);
  EXPECT_EQ(device.loaded_at(ModelId(0)), at(8));
  device.load_over(ActionId(1), ModelId(0), 7, true, at(9));
  EXPECT_EQ(device.residency(ModelId(0)), Residency::kLoaded);
  device.sent_unload(ModelId(0), 7);
  EXPECT_EQ(device.free_pages(), 10u);
  EXPECT_EQ(device.residency(ModelId(0)), Residency::kAbsent);
}

TEST(DeviceModelTest, AFailedLoadAndARefusedUnloadPutThingsBack) {
  DeviceModel device(DeviceId(0), 10);
  device.sent_load(ActionId(1), ModelId(0), 7, at(0), ms(8), at(0));
  device.load_over(ActionId(1), ModelId(0), 7, false, at(9));
  EXPECT_EQ(device.free_pages(), 10u);

  device.sent_load(ActionId(2), ModelId(0), 7, at(0), ms(8), at(0));
  device.load_over(ActionId(2), ModelId(0), 7, true, at(9));
  device.sent_unload(ModelId(0), 7);
  // A LOAD that counts on those pages is on its way when the UNLOAD is refused.
  device.sent_load(ActionId(3), ModelId(1), 6, at(9), ms(8), at(9));
  device.unload_refused(ModelId(0), 7);
  EXPECT_EQ(device.free_pages(), 0u);
  device.load_over(ActionId(3), ModelId(1), 6, false, at(10));
  EXPECT_EQ(device.free_pages(), 3u);
}

}  // namespace
}  // namespace foliot
