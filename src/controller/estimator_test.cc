#include "controller/estimator.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(EstimatorTest, BeginsWithTheSeedAndFollowsTheLastTen) {
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

TEST(EstimatorTest, DoubtLowersAnEstimateThatNothingMeasuresAndAMeasurementSettlesIt) {
  RollingProfile profile(Duration::milliseconds(1));
  profile.record(Duration::milliseconds(400));
  const TimePoint start = TimePoint() + Duration::seconds(1);
  profile.doubt(start);
  profile.doubt(start + Duration::milliseconds(499));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(300));
  profile.doubt(start + Duration::milliseconds(500));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(225));
  profile.record(Duration::milliseconds(30));
  EXPECT_EQ(profile.estimate(), Duration::milliseconds(30));
}

TEST(EstimatorTest, ALargeBatchIsNeverExpectedToTakeMuchLongerThanItsRowsInSmallerOnes) {
  ModelInfo model;
  model.batch_sizes = {1, 4};
  model.buckets = {{.dimensions = {}, .seed_exec = {Duration::milliseconds(2), Duration::milliseconds(6)}}};
  Estimator estimator;
  estimator.add_device();
  estimator.add_model(model);
  estimator.record_exec(DeviceId(0), ModelId(0), BucketId(0), 1, Duration::milliseconds(300));
  EXPECT_EQ(estimator.exec(DeviceId(0), ModelId(0), BucketId(0), 1), Duration::milliseconds(10));
}

TEST(EstimatorTest, KeepsDevicesModelsBucketsAndBatchSizesApart) {
  ModelInfo model;
  model.batch_sizes = {1, 2};
  model.buckets = {{.dimensions = {}, .seed_exec = {Duration::milliseconds(1), Duration::milliseconds(2)}},
                   {.dimensions = {}, .seed_exec = {Duration::milliseconds(3), Duration::milliseconds(4)}}};
  Estimator estimator;
  estimator.add_device();
  estimator.add_model(model);
  estimator.add_device();  // joins later, and is seeded all the same
  estimator.record_exec(DeviceId(1), ModelId(0), BucketId(1), 0, Duration::milliseconds(7));
  EXPECT_EQ(estimator.exec(DeviceId(1), ModelId(0), BucketId(1), 0), Duration::milliseconds(7));
  EXPECT_EQ(estimator.exec(DeviceId(0), ModelId(0), BucketId(1), 0), Duration::milliseconds(3));
  EXPECT_EQ(estimator.exec(DeviceId(1), ModelId(0), BucketId(1), 1), Duration::milliseconds(4));
  EXPECT_EQ(estimator.exec(DeviceId(1), ModelId(0), BucketId(0), 0), Duration::milliseconds(1));
}

}  // namespace
}  // namespace foliot
