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
TEST(TimelineTest, OutputTakesOneResultAfterTheOther) {
  Timeline timeline;
  const auto add = [&](uint64_t id) { timeline.add(ActionId(id), at(0), ms(1), at(0), kHere, {}, ms(3)); };
  const auto left = [&](TimePoint then, TimePoint now) { return timeline.but_one_output_left(then, now, kHere); };
  add(1);
  EXPECT_EQ(left(at(2), at(0)), at(1));
  add(2);
  add(3);
  EXPECT_EQ(left(at(1), at(0)), at(1)) << "the second is not there then";
  EXPECT_EQ(left(at(2), at(0)), at(4)) << "OUTPUT has the first from 1 to 4";
  EXPECT_EQ(left(at(3), at(0)), at(7));
  timeline.remove(ActionId(1), at(1), at(6));
  EXPECT_EQ(left(at(3), at(6)), at(9)) << "the second is taken from 6 to 9";
  EXPECT_EQ(timeline.outputs(), ms(6));
  timeline.remove(ActionId(2), at(2), at(9));
  timeline.remove(ActionId(3), at(3), at(12));
  EXPECT_EQ(timeline.outputs(), Duration());
}

TEST(TimelineTest, ResultsOfOtherLanesThatAreNotThereYetTakeNoOutput) {
  Timeline timeline(2);
  timeline.add(ActionId(1), at(0), ms(50), at(0), kHere, kLeft, ms(3));
  timeline.add(ActionId(2), at(0), ms(1), at(0), kHere, kRight, ms(3));
  timeline.add(ActionId(3), at(0), ms(1), at(0), kHere, kRight, ms(3));
  EXPECT_EQ(timeline.but_one_output_left(at(3), at(0), kHere), at(4));
}

class OutputsTest : public testing::Test {
 protected:
  OutputsTest() {
    device_.sent_load(ActionId(1), kModel, 1, at(0), ms(1), at(0));
    device_.load_over(ActionId(1), kModel, 1, true, at(0));
  }
  void measure(Duration row, Duration whole) {
    device_.sent_infer(ActionId(2), kModel, {}, at(0), ms(1), at(0), false, 1);
    device_.measured_output(kModel, row, whole, at(0));
    device_.infer_over(ActionId(2), kModel, at(0), false, at(0));
  }
  // Of an EXEC of 1 ms with two batches of two rows outstanding, which takes 1 ms each.
  TimePoint allowed() {
    for (uint64_t id = 3; id < 5; ++id) {
      device_.sent_infer(ActionId(id), kModel, {}, at(0), ms(1), at(0), false, 2);
    }
    EXPECT_EQ(device_.exec_available(at(0)), at(2));
    const TimePoint allowed = device_.output_allows(kModel, at(2), ms(1), at(0));
    for (uint64_t id = 3; id < 5; ++id) device_.infer_over(ActionId(id), kModel, at(0), false, at(0));
    return allowed;
  }

  static constexpr ModelId kModel{0};
  DeviceModel device_{DeviceId(0), 10};
};

TEST_F(OutputsTest, ExecsWaitForWhatOutputTakesOnAverage) {
  EXPECT_EQ(allowed(), at(2));
  measure(ms(3), ms(4));
  EXPECT_EQ(allowed(), at(6)) << "two rows of 3 ms are taken from 1 on, and it ends at 7";
  EXPECT_EQ(device_.output_reserve(kModel), ms(4));
  for (int i = 0; i < 100; ++i) measure(i % 2 == 0 ? ms(1) : ms(3), ms(5));
  EXPECT_NEAR((allowed() - at(0)).to_milliseconds(), 4, 0.5) << "two rows of 2 ms";
  EXPECT_EQ(device_.output_reserve(kModel), ms(5));
}

TEST_F(OutputsTest, WhatWasNotMeasuredLatelyIsDoubted) {
  measure(ms(3), ms(40));
  device_.doubt_output(kModel, at(499));
  EXPECT_EQ(device_.output_reserve(kModel), ms(40));
  for (int i = 0; i < 2; ++i) device_.doubt_output(kModel, at(500));
  EXPECT_EQ(device_.output_reserve(kModel), ms(20));
  device_.doubt_output(kModel, at(1000));
  EXPECT_EQ(device_.output_reserve(kModel), ms(10));
  measure(ms(3), ms(12));
  EXPECT_EQ(device_.output_reserve(kModel), ms(12));
}

// A thread that lost its core once took long for once.
TEST_F(OutputsTest, SmallResultsStaySmallThoughOneTookLong) {
  for (int i = 0; i < 20; ++i) {
    measure(i == 10 ? ms(20) : Duration::microseconds(5), i == 10 ? ms(20) : Duration::microseconds(8));
    EXPECT_EQ(allowed(), at(2));
    EXPECT_EQ(device_.output_reserve(kModel), Duration());
  }
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
