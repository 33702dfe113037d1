#include "controller/rolling_duration_model.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(RollingDurationModelTest, BeginsWithTheSeedAndFollowsTheLastTen) {
  RollingProfile profile(Duration::milliseconds(9));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(9));
  profile.record(Duration::milliseconds(2));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(2));
  profile.record(Duration::milliseconds(5));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(5));
  for (int i = 0; i < 9; ++i) profile.record(Duration::milliseconds(3));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(5));
  profile.record(Duration::milliseconds(3));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(3));
}

// A model of one model with one batch size, on two devices.
class DoubtTest : public testing::Test {
 protected:
  DoubtTest() {
    ModelInfo model;
    model.batch_sizes = {1};
    model.buckets = {{.dimensions = {}, .seed_exec = {Duration::milliseconds(400)}}};
    durations_.add_device();
    durations_.add_device();
    durations_.add_model(model);
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

TEST_F(DoubtTest, InTheEndDoubtsEvenWhatWasAlwaysMeasured) {
  for (int i = 0; i < 10; ++i) measure(0, 300);
  for (int i = 0; i < 60; ++i) doubt(1000 + 500 * i);
  EXPECT_LT(exec_ms(0), 10);
}

TEST(RollingDurationModelTest, ALargeBatchIsNeverExpectedToTakeMuchLongerThanItsRowsInSmallerOnes) {
  ModelInfo model;
  model.batch_sizes = {1, 4};
  model.buckets = {{.dimensions = {}, .seed_exec = {Duration::milliseconds(2), Duration::milliseconds(6)}}};
  RollingDurationModel durations;
  durations.add_device();
  durations.add_model(model);
  durations.record_exec({DeviceId(0), ModelId(0), BucketId(0), 1}, Duration::milliseconds(300));
  EXPECT_EQ(durations.exec({DeviceId(0), ModelId(0), BucketId(0), 1}), Duration::milliseconds(10));
}

TEST(RollingDurationModelTest, KeepsDevicesModelsBucketsAndBatchSizesApart) {
  ModelInfo model;
  model.batch_sizes = {1, 2};
  model.buckets = {{.dimensions = {}, .seed_exec = {Duration::milliseconds(1), Duration::milliseconds(2)}},
                   {.dimensions = {}, .seed_exec = {Duration::milliseconds(3), Duration::milliseconds(4)}}};
  RollingDurationModel durations;
  durations.add_device();
  durations.add_model(model);
  durations.add_device();  // joins later, and is seeded all the same
  durations.record_exec({DeviceId(1), ModelId(0), BucketId(1), 0}, Duration::milliseconds(7));
  EXPECT_EQ(durations.exec({DeviceId(1), ModelId(0), BucketId(1), 0}), Duration::milliseconds(7));
  EXPECT_EQ(durations.exec({DeviceId(0), ModelId(0), BucketId(1), 0}), Duration::milliseconds(3));
  EXPECT_EQ(durations.exec({DeviceId(1), ModelId(0), BucketId(1), 1}), Duration::milliseconds(4));
  EXPECT_EQ(durations.exec({DeviceId(1), ModelId(0), BucketId(0), 0}), Duration::milliseconds(1));
}

TEST(RollingDurationModelTest, KeepsWhatWasMeasuredWhenAModelComesToHaveMoreBatchSizes) {
  const auto milliseconds = [](int64_t n) { return Duration::milliseconds(n); };
  ModelInfo model;
  model.batch_sizes = {1, 2};
  model.seed_load = milliseconds(9);
  model.buckets = {{.dimensions = {}, .seed_exec = {milliseconds(10), milliseconds(20)}},
                   {.dimensions = {}, .seed_exec = {milliseconds(30), milliseconds(60)}}};
  RollingDurationModel durations;
  durations.add_device();
  durations.add_device();
  durations.add_model(model);
  durations.record_load(DeviceId(1), ModelId(0), milliseconds(5));
  durations.record_exec({DeviceId(1), ModelId(0), BucketId(0), 1}, milliseconds(13));
  durations.record_exec({DeviceId(1), ModelId(0), BucketId(1), 0}, milliseconds(25));

  model.batch_sizes = {1, 2, 4};
  model.buckets[0].seed_exec = {milliseconds(11), milliseconds(21), milliseconds(39)};
  model.buckets[1].seed_exec = {milliseconds(31), milliseconds(61), milliseconds(70)};
  durations.extend_model(model);
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
  model.batch_sizes = {1, 3, 4};
  EXPECT_DEATH(durations.extend_model(model), "sizes");
}

}  // namespace
}  // namespace foliot
