#include "control/controller/rolling_duration_model.h"

#include <gtest/gtest.h>

#include <array>

#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr std::array<KindId, 1> kOneKind{};

TEST(RollingDurationModelTest, BeginsWithTheSeedAndFollowsTheLastTen) {
  RollingProfile profile(Duration::milliseconds(9));
  RollingProfile::Outliers outliers;
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(9));
  profile.record(Duration::milliseconds(2), outliers);
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(2));
  profile.record(Duration::milliseconds(5), outliers);
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(5));
  for (int i = 0; i < 9; ++i) profile.record(Duration::milliseconds(4), outliers);
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(5));
  profile.record(Duration::milliseconds(4), outliers);
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(4));
}

// One in ten takes ten times as long.
TEST(RollingDurationModelTest, DurationsThatAreOftenOutOfLineAreNotExpected) {
  RollingProfile profile;
  RollingProfile::Outliers outliers;
  Random random(7);
  const auto record = [&](double milliseconds) { profile.record(Duration::from_milliseconds(milliseconds), outliers); };
  int expected = 0;
  for (int i = 0; i < 20'000; ++i) {
    record((random.uniform() < 0.1 ? 10 : 1) * (2 + 0.2 * random.uniform()));
    if (i > 500 && profile.estimate() > Duration::milliseconds(3)) ++expected;
  }
  EXPECT_LT(expected, 40);
  for (int i = 0; i < 8; ++i) record(20);
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(20)) << "a change is";
}

TEST(RollingDurationModelTest, WhereNoneWasOutOfLineAChangeIsSeenInThree) {
  RollingProfile profile;
  RollingProfile::Outliers outliers;
  for (int i = 0; i < 1000; ++i) profile.record(Duration::milliseconds(2), outliers);
  for (int i = 0; i < 3; ++i) profile.record(Duration::milliseconds(4), outliers);
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(4));
}

TEST(RollingDurationModelTest, AFirstDurationThatIsColdIsNotExpectedAgain) {
  const auto after = [](Duration seed, std::initializer_list<int64_t> milliseconds) {
    RollingProfile profile(seed);
    RollingProfile::Outliers outliers;
    for (const int64_t ms : milliseconds) profile.record(Duration::milliseconds(ms), outliers);
    return profile.estimate().to_milliseconds();
  };
  EXPECT_EQ(after(Duration::milliseconds(2), {30}), 2) << "what was expected stands";
  EXPECT_EQ(after(Duration::milliseconds(2), {30, 1}), 1);
  EXPECT_EQ(after(Duration::milliseconds(2), {30, 28}), 30) << "it was not cold";
  EXPECT_EQ(after(Duration::milliseconds(2), {7}), 7) << "not so many times as long";
  EXPECT_EQ(after(Duration(), {30}), 30) << "nothing was expected";
  EXPECT_EQ(after(Duration(), {30, 1, 2}), 2);
  EXPECT_EQ(after(Duration(), {1, 30}), 30) << "the second one is not cold";
}

// A model of one model with one batch size, on two devices.
class DoubtTest : public testing::Test {
 protected:
  DoubtTest() {
    ModelInfo model;
    model.only().batch_sizes = {1};
    model.buckets.resize(1);
    model.only().seed_exec = {{Duration::milliseconds(400)}};
    durations_.add_device(KindId());
    durations_.add_device(KindId());
    durations_.add_model(model, kOneKind);
  }
  void measure(uint32_t device, int64_t ms) {
    durations_.record_exec({DeviceId(device), ModelId(0), BucketId(0), 0}, Duration::milliseconds(ms));
  }
  void doubt(int64_t at_ms) { durations_.doubt(ModelId(0), BucketId(0), TimePoint() + Duration::milliseconds(at_ms)); }
  double exec_ms(uint32_t device) const {
    return durations_.exec({DeviceId(device), ModelId(0), BucketId(0), 0}).to_milliseconds();
  }

  RollingDurationModel durations_;
};

TEST_F(DoubtTest, LowersAnEstimateThatNothingMeasuresAndAMeasurementSettlesIt) {
  doubt(1000);
  doubt(1499);
  EXPECT_EQ(exec_ms(0), 300);
  doubt(1500);
  EXPECT_EQ(exec_ms(0), 225);
  measure(0, 30);
  EXPECT_EQ(exec_ms(0), 30);
  EXPECT_EQ(exec_ms(1), 225);
}

TEST_F(DoubtTest, TakesLittleOffWhatWasMeasured) {
  measure(0, 32);
  doubt(1000);
  EXPECT_EQ(exec_ms(0), 30);
  EXPECT_EQ(exec_ms(1), 300);
  measure(0, 32);
  EXPECT_EQ(exec_ms(0), 32);
}

TEST_F(DoubtTest, BringsAStallBackToWhatWasMeasuredBefore) {
  for (int i = 0; i < 5; ++i) measure(0, 32);
  measure(0, 3000);
  for (int i = 0; i < 30; ++i) doubt(1000 + 500 * i);
  EXPECT_LT(exec_ms(0), 32);
}

TEST_F(DoubtTest, DoesNotCountWhatStandsAlone) {
  for (int i = 0; i < 10; ++i) measure(0, i % 2 == 0 ? 4 : 3);
  measure(0, 60);
  EXPECT_EQ(exec_ms(0), 4);
  measure(0, 50);
  EXPECT_EQ(exec_ms(0), 4);
  measure(0, 50);
  EXPECT_EQ(exec_ms(0), 60) << "a third one";
  for (int i = 0; i < 8; ++i) measure(0, 4);
  EXPECT_EQ(exec_ms(0), 4) << "two are left";
}

TEST_F(DoubtTest, OfFewMeasurementsOneMayStandAlone) {
  for (int i = 0; i < 3; ++i) measure(0, 4);
  measure(0, 60);
  EXPECT_EQ(exec_ms(0), 60) << "of four none";
  measure(0, 4);
  EXPECT_EQ(exec_ms(0), 4);
  measure(0, 60);
  EXPECT_EQ(exec_ms(0), 60) << "of six not two";
}

TEST_F(DoubtTest, TakesAQuarterOffWhatDoesNotStandAlone) {
  for (int i = 0; i < 10; ++i) measure(0, 4);
  for (int i = 0; i < 3; ++i) measure(0, 60);
  doubt(1000);
  EXPECT_EQ(exec_ms(0), 45) << "and forgets what was measured";
  measure(0, 4);
  EXPECT_EQ(exec_ms(0), 4);
}

TEST_F(DoubtTest, InTheEndDoubtsEvenWhatWasAlwaysMeasured) {
  for (int i = 0; i < 10; ++i) measure(0, 300);
  for (int i = 0; i < 60; ++i) doubt(1000 + 500 * i);
  EXPECT_LT(exec_ms(0), 10);
}

TEST(RollingDurationModelTest, ALargeBatchIsNeverExpectedToTakeMuchLongerThanItsRowsInSmallerOnes) {
  ModelInfo model;
  model.only().batch_sizes = {1, 4};
  model.buckets.resize(1);
  model.only().seed_exec = {{Duration::milliseconds(2), Duration::milliseconds(6)}};
  RollingDurationModel durations;
  durations.add_device(KindId());
  durations.add_model(model, kOneKind);
  for (int i = 0; i < 2; ++i) {  // the first one alone might be cold
    durations.record_exec({DeviceId(0), ModelId(0), BucketId(0), 1}, Duration::milliseconds(300));
  }
  EXPECT_EQ(durations.exec({DeviceId(0), ModelId(0), BucketId(0), 1}), Duration::milliseconds(10));
}

TEST(RollingDurationModelTest, ASizeThatHasNotRunForLongFollowsTheOneThatRanLast) {
  RollingDurationModel durations;
  durations.add_device(KindId());
  ModelInfo model;
  model.only().batch_sizes = {1, 4, 8};
  model.buckets.resize(1);
  model.only().seed_exec = {{Duration::milliseconds(2), Duration::milliseconds(3), Duration::milliseconds(4)}};
  durations.add_model(model, kOneKind);
  const auto exec = [&](uint32_t index) { return durations.exec({DeviceId(0), ModelId(0), BucketId(0), index}); };
  const auto measure = [&](uint32_t index, int64_t ms, int count) {
    for (int i = 0; i < count; ++i) {
      durations.record_exec({DeviceId(0), ModelId(0), BucketId(0), index}, Duration::milliseconds(ms));
    }
  };
  measure(1, 9, 3);
  measure(2, 12, 3);
  EXPECT_EQ(exec(1), Duration::milliseconds(9));
  measure(0, 3, 31);
  EXPECT_EQ(exec(2), Duration::microseconds(12'000));
  measure(0, 3, 33);
  EXPECT_EQ(exec(1), Duration::microseconds(4'500));
  EXPECT_EQ(exec(2), Duration::milliseconds(6));
  measure(2, 7, 1);
  EXPECT_EQ(exec(2), Duration::milliseconds(12)) << "it has run: its own count again";
  EXPECT_EQ(exec(1), Duration::milliseconds(9)) << "of what 8 rows take, 12 ms, three quarters";
}

TEST(RollingDurationModelTest, KeepsDevicesModelsBucketsAndBatchSizesApart) {
  ModelInfo model;
  model.only().batch_sizes = {1, 2};
  model.buckets.resize(2);
  model.only().seed_exec = {{Duration::milliseconds(1), Duration::milliseconds(2)},
                            {Duration::milliseconds(3), Duration::milliseconds(4)}};
  RollingDurationModel durations;
  durations.add_device(KindId());
  durations.add_model(model, kOneKind);
  durations.add_device(KindId());  // joins later, and is seeded all the same
  durations.record_exec({DeviceId(1), ModelId(0), BucketId(1), 0}, Duration::milliseconds(7));
  EXPECT_EQ(durations.exec({DeviceId(1), ModelId(0), BucketId(1), 0}), Duration::milliseconds(7));
  EXPECT_EQ(durations.exec({DeviceId(0), ModelId(0), BucketId(1), 0}), Duration::milliseconds(3));
  EXPECT_EQ(durations.exec({DeviceId(1), ModelId(0), BucketId(1), 1}), Duration::milliseconds(4));
  EXPECT_EQ(durations.exec({DeviceId(1), ModelId(0), BucketId(0), 0}), Duration::milliseconds(1));
}

TEST(RollingDurationModelTest, KeepsWhatWasMeasuredWhenAModelComesToHaveMoreBatchSizes) {
  const auto milliseconds = [](int64_t n) { return Duration::milliseconds(n); };
  ModelInfo model;
  model.only().batch_sizes = {1, 2};
  model.only().seed_load = milliseconds(9);
  model.buckets.resize(2);
  model.only().seed_exec = {{milliseconds(10), milliseconds(20)}, {milliseconds(30), milliseconds(60)}};
  RollingDurationModel durations;
  durations.add_device(KindId());
  durations.add_device(KindId());
  durations.add_model(model, kOneKind);
  durations.record_load(DeviceId(1), ModelId(0), milliseconds(5));
  durations.record_exec({DeviceId(1), ModelId(0), BucketId(0), 1}, milliseconds(13));
  durations.record_exec({DeviceId(1), ModelId(0), BucketId(1), 0}, milliseconds(25));

  model.only().batch_sizes = {1, 2, 4};
  model.only().seed_exec[0] = {milliseconds(11), milliseconds(21), milliseconds(39)};
  model.only().seed_exec[1] = {milliseconds(31), milliseconds(61), milliseconds(70)};
  durations.extend_model(model, kOneKind);
  const auto exec = [&](uint32_t device, uint16_t bucket, uint32_t batch_index) {
    return durations.exec({DeviceId(device), ModelId(0), BucketId(bucket), batch_index});
  };
  EXPECT_EQ(durations.load(DeviceId(1), ModelId(0)), milliseconds(5));
  EXPECT_EQ(exec(1, 0, 0), milliseconds(10));
  EXPECT_EQ(exec(1, 0, 1), milliseconds(13));
  EXPECT_EQ(exec(1, 0, 2), Duration::microseconds(32'500));  // what two runs of two rows take, and a quarter
  EXPECT_EQ(exec(1, 1, 0), milliseconds(25));
  EXPECT_EQ(exec(1, 1, 2), milliseconds(70));
  EXPECT_EQ(exec(0, 0, 2), milliseconds(39));

  durations.record_exec({DeviceId(1), ModelId(0), BucketId(1), 2}, milliseconds(80));
  durations.record_exec({DeviceId(1), ModelId(0), BucketId(0), 1}, milliseconds(12));
  EXPECT_EQ(exec(1, 1, 2), milliseconds(80));
  EXPECT_EQ(exec(1, 0, 1), milliseconds(13));  // the longest of the last, of before and of now
  model.only().batch_sizes = {1, 3, 4};
  EXPECT_DEATH(durations.extend_model(model, kOneKind), "sizes");
}

// ---- Widths that were not measured ----

// Three models of 8 ms and two batch sizes, on two devices of four lanes.
class WidthsTest : public testing::Test {
 protected:
  WidthsTest() {
    for (uint32_t device = 0; device < 2; ++device) {
      durations_.add_device(KindId());
      durations_.set_lane_count(DeviceId(device), 4);
    }
    for (uint32_t id = 0; id < 3; ++id) {
      ModelInfo model;
      model.id = ModelId(id);
      model.only().batch_sizes = {1, 8};
      model.buckets.resize(1);
      model.only().seed_exec = {{ms(8), ms(48)}};
      durations_.add_model(model, kOneKind);
    }
  }
  static Duration ms(int64_t n) { return Duration::milliseconds(n); }
  void measure(uint32_t model, uint32_t width, int64_t n) {
    durations_.record_exec({DeviceId(0), ModelId(model), BucketId(0), 0, width_index(width, 4)}, ms(n));
  }
  Duration exec(uint32_t device, uint32_t model, uint32_t width, uint32_t batch_index = 0) const {
    return durations_.exec({DeviceId(device), ModelId(model), BucketId(0), batch_index, width_index(width, 4)});
  }

  RollingDurationModel durations_;
};

TEST_F(WidthsTest, AWidthFollowsTheNextWiderOneThatWasMeasured) {
  measure(0, 4, 12);
  EXPECT_EQ(exec(0, 0, 2), ms(24));
  EXPECT_EQ(exec(0, 0, 1), ms(48));
  measure(0, 2, 14);
  EXPECT_EQ(exec(0, 0, 2), ms(14));
  EXPECT_EQ(exec(0, 0, 1), ms(28));
  EXPECT_EQ(exec(0, 0, 4), ms(12));
}

TEST_F(WidthsTest, WhatAStepCostsOneModelIsExpectedOfOthers) {
  measure(0, 4, 8);
  const uint64_t revision = durations_.revision();
  measure(0, 2, 10);
  EXPECT_NE(durations_.revision(), revision);
  for (uint32_t device = 0; device < 2; ++device) {
    EXPECT_EQ(exec(device, 1, 2), ms(10));
    EXPECT_EQ(exec(device, 1, 2, 1), ms(60));
    EXPECT_EQ(exec(device, 1, 1), ms(20));
    EXPECT_EQ(exec(device, 1, 4), ms(8));
  }
  measure(0, 1, 15);
  EXPECT_EQ(exec(1, 2, 1), ms(15));
}

TEST_F(WidthsTest, WhatWasMeasuredDoesNotFollowOthers) {
  measure(0, 2, 16);
  measure(0, 4, 8);
  measure(1, 4, 8);
  measure(1, 2, 10);
  EXPECT_EQ(exec(0, 0, 2), ms(16));
  EXPECT_EQ(exec(0, 1, 2), ms(10));
  EXPECT_EQ(exec(0, 2, 2), ms(16)) << "the largest ratio counts";
}

TEST_F(WidthsTest, MoreLanesAreNotExpectedToTakeLonger) {
  measure(0, 1, 6);
  EXPECT_EQ(exec(0, 0, 2), ms(6));
  EXPECT_EQ(exec(0, 0, 4), ms(6));
  EXPECT_EQ(exec(1, 0, 4), ms(8)) << "another device";
  measure(0, 4, 8);
  EXPECT_EQ(exec(0, 0, 4), ms(8));
}

TEST_F(WidthsTest, DoubtsLowerAWidthThatWasNotMeasured) {
  TimePoint now;
  for (int i = 0; i < 30; ++i) durations_.doubt(ModelId(0), BucketId(0), now += Duration::seconds(1));
  EXPECT_LT(exec(0, 0, 1), ms(1));
  measure(0, 1, 30);
  measure(0, 1, 30);
  EXPECT_EQ(exec(0, 0, 1), ms(30)) << "twice: it was not cold";
}

}  // namespace
}  // namespace foliot
