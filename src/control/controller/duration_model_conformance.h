// DurationModelConformance: the suite that every DurationModel passes. The test of an
// implementation includes this, in one file of its test program, and instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Rolling, DurationModelConformance,
//                            testing::Values(DurationModelCase{"Rolling", [] { return std::make_unique<...>(); }}));
#ifndef FOLIOT_CONTROL_CONTROLLER_DURATION_MODEL_CONFORMANCE_H_
#define FOLIOT_CONTROL_CONTROLLER_DURATION_MODEL_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/controller/duration_model.h"
#include "foundation/core/lanes.h"

namespace foliot {

struct DurationModelCase {
  std::string name;
  std::function<std::unique_ptr<DurationModel>()> make;
};
inline void PrintTo(const DurationModelCase& value, std::ostream* out) { *out << value.name; }

// Two devices and two models, each with two buckets and the batch sizes 1 and 2.
class DurationModelConformance : public testing::TestWithParam<DurationModelCase> {
 protected:
  DurationModelConformance() : durations_(GetParam().make()) {
    durations_->add_device(kKind);
    durations_->add_model(model(0), kKinds);
    durations_->add_device(kKind);
    durations_->add_model(model(1), kKinds);
  }

  static Duration ms(int64_t n) { return Duration::milliseconds(n); }
  static ModelInfo model(uint32_t id) {
    ModelInfo model;
    model.id = ModelId(id);
    model.buckets.resize(2);
    model.runnables = {{.batch_sizes = {1, 2}, .seed_load = ms(9), .seed_exec = {{ms(10), ms(18)}, {ms(20), ms(38)}}}};
    return model;
  }
  static ExecShape shape(uint32_t device, uint32_t model, uint16_t bucket, uint32_t batch_index) {
    return {DeviceId(device), ModelId(model), BucketId(bucket), batch_index};
  }
  Duration exec(uint32_t device, uint32_t model, uint16_t bucket, uint32_t batch_index) const {
    return durations_->exec(shape(device, model, bucket, batch_index));
  }
  // Of everything but what is given.
  std::vector<Duration> others(uint32_t device, uint32_t model, uint16_t bucket) const {
    std::vector<Duration> all;
    for (uint32_t d = 0; d < 2; ++d) {
      for (uint32_t m = 0; m < 2; ++m) {
        for (uint16_t b = 0; b < 2; ++b) {
          if (d == device && m == model && b == bucket) continue;
          for (const Duration exec : durations_->execs(DeviceId(d), ModelId(m), BucketId(b), 0)) all.push_back(exec);
        }
      }
    }
    return all;
  }

  static constexpr KindId kKind = KindId(1);
  static constexpr std::array<KindId, 1> kKinds{kKind};
  std::unique_ptr<DurationModel> durations_;
};

TEST_P(DurationModelConformance, BeginsWithTheSeeds) {
  for (uint32_t device = 0; device < 2; ++device) {
    EXPECT_EQ(durations_->load(DeviceId(device), ModelId(1)), ms(9));
    EXPECT_EQ(exec(device, 1, 0, 0), ms(10));
    EXPECT_EQ(exec(device, 1, 1, 1), ms(38));
  }
}

TEST_P(DurationModelConformance, GivesAllBatchSizesAsItGivesEach) {
  durations_->record_exec(shape(0, 0, 1, 1), ms(25));
  for (uint32_t device = 0; device < 2; ++device) {
    const std::span<const Duration> execs = durations_->execs(DeviceId(device), ModelId(0), BucketId(1), 0);
    ASSERT_EQ(execs.size(), 2u);
    for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(execs[i], exec(device, 0, 1, i));
  }
}

TEST_P(DurationModelConformance, FollowsWhatIsRecordedOften) {
  for (int i = 0; i < 20; ++i) {
    durations_->record_exec(shape(1, 0, 0, 0), ms(30));
    durations_->record_load(DeviceId(1), ModelId(0), ms(40));
  }
  EXPECT_GE(exec(1, 0, 0, 0), ms(29));
  EXPECT_GE(durations_->load(DeviceId(1), ModelId(0)), ms(39));
  for (int i = 0; i < 20; ++i) {
    durations_->record_exec(shape(1, 0, 0, 0), ms(3));
    durations_->record_load(DeviceId(1), ModelId(0), ms(4));
  }
  EXPECT_LE(exec(1, 0, 0, 0), ms(4));
  EXPECT_LE(durations_->load(DeviceId(1), ModelId(0)), ms(5));
}

TEST_P(DurationModelConformance, KeepsDevicesModelsAndBucketsApart) {
  const std::vector<Duration> before = others(1, 0, 1);
  const uint64_t revision = durations_->revision();
  for (int i = 0; i < 20; ++i) durations_->record_exec(shape(1, 0, 1, 1), ms(5));
  EXPECT_EQ(others(1, 0, 1), before);
  EXPECT_EQ(durations_->revision(), revision);
  durations_->record_load(DeviceId(1), ModelId(0), ms(50));
  EXPECT_EQ(durations_->load(DeviceId(0), ModelId(0)), ms(9));
  EXPECT_EQ(durations_->load(DeviceId(1), ModelId(1)), ms(9));
}

TEST_P(DurationModelConformance, ForgetsADeviceThatIsAnother) {
  const uint64_t revision = durations_->revision();
  const uint64_t model_revision = durations_->revision(ModelId(0));
  durations_->record_exec(shape(1, 0, 0, 0), ms(30));
  durations_->record_load(DeviceId(1), ModelId(0), ms(40));
  durations_->record_exec(shape(0, 0, 0, 0), ms(31));
  durations_->forget_device(DeviceId(1));
  EXPECT_EQ(exec(1, 0, 0, 0), ms(10));
  EXPECT_EQ(durations_->load(DeviceId(1), ModelId(0)), ms(9));
  EXPECT_EQ(exec(0, 0, 0, 0), ms(31));
  EXPECT_NE(durations_->revision(), revision);
  EXPECT_NE(durations_->revision(ModelId(0)), model_revision);
  durations_->doubt(ModelId(0), BucketId(0), TimePoint() + Duration::seconds(1));
  EXPECT_LE(exec(1, 0, 0, 0), ms(10));
}

TEST_P(DurationModelConformance, ForgetsAModelWhoseIdIsUsedAgain) {
  durations_->record_exec(shape(1, 0, 0, 0), ms(30));
  durations_->record_load(DeviceId(1), ModelId(0), ms(40));
  durations_->add_model(model(0), kKinds);
  EXPECT_EQ(exec(1, 0, 0, 0), ms(10));
  EXPECT_EQ(durations_->load(DeviceId(1), ModelId(0)), ms(9));
  durations_->doubt(ModelId(0), BucketId(0), TimePoint() + Duration::seconds(1));
  EXPECT_LE(exec(1, 0, 0, 0), ms(10));
}

TEST_P(DurationModelConformance, KeepsWhatWasRecordedWhenAModelHasMoreBatchSizes) {
  durations_->record_exec(shape(1, 0, 1, 1), ms(25));
  const uint64_t revision = durations_->revision();
  const uint64_t model_revision = durations_->revision(ModelId(0));
  ModelInfo larger = model(0);
  larger.only().batch_sizes.push_back(4);
  larger.only().seed_exec[0].push_back(ms(30));
  larger.only().seed_exec[1].push_back(ms(50));
  durations_->extend_model(larger, kKinds);
  EXPECT_NE(durations_->revision(), revision);
  EXPECT_NE(durations_->revision(ModelId(0)), model_revision);
  EXPECT_EQ(exec(1, 0, 1, 1), ms(25));
  EXPECT_EQ(exec(0, 0, 1, 2), ms(50));
  EXPECT_EQ(durations_->execs(DeviceId(0), ModelId(0), BucketId(0), 0).size(), 3u);
}

TEST_P(DurationModelConformance, ADoubtRaisesNothingAndManyLowerWhatNothingMeasures) {
  const std::vector<Duration> before = others(2, 2, 2);
  const uint64_t revision = durations_->revision(ModelId(0));
  const uint64_t others_revision = durations_->revision(ModelId(1));
  TimePoint now;
  for (int i = 0; i < 30; ++i, now += Duration::seconds(1)) durations_->doubt(ModelId(0), BucketId(0), now);
  EXPECT_NE(durations_->revision(ModelId(0)), revision);
  EXPECT_EQ(durations_->revision(ModelId(1)), others_revision);
  const std::vector<Duration> after = others(2, 2, 2);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_LE(after[i], before[i]);
  for (uint32_t device = 0; device < 2; ++device) {
    EXPECT_LT(exec(device, 0, 0, 0), ms(1));
    EXPECT_GE(exec(device, 0, 0, 0), Duration());
    EXPECT_EQ(exec(device, 1, 0, 0), ms(10));
    EXPECT_EQ(exec(device, 0, 1, 0), ms(20));
  }
}

TEST_P(DurationModelConformance, KeepsKindsApart) {
  ModelInfo both = model(1);
  both.runnables.push_back(
      {.kind = "other", .batch_sizes = {1, 4}, .seed_load = ms(90), .seed_exec = {{ms(2), ms(5)}, {ms(3), ms(7)}}});
  const std::array<KindId, 2> kinds{kKind, KindId(3)};
  durations_->add_device(KindId(3));
  durations_->add_model(both, kinds);
  EXPECT_EQ(exec(2, 1, 0, 1), ms(5));
  EXPECT_EQ(exec(2, 1, 1, 0), ms(3));
  EXPECT_EQ(durations_->load(DeviceId(2), ModelId(1)), ms(90));
  EXPECT_EQ(exec(0, 1, 0, 1), ms(18));
  for (int i = 0; i < 20; ++i) durations_->record_exec(shape(2, 1, 0, 0), ms(1));
  EXPECT_EQ(exec(0, 1, 0, 0), ms(10));
}

TEST_P(DurationModelConformance, ExpectsNarrowExecsToTakeLongerInProportion) {
  const uint64_t revision = durations_->revision();
  durations_->set_lane_count(DeviceId(1), 4);
  EXPECT_NE(durations_->revision(), revision);
  for (uint32_t width = 0; width < width_count(4); ++width) {
    const int64_t times = 4 / width_at(width, 4);
    EXPECT_EQ(durations_->exec({DeviceId(1), ModelId(0), BucketId(0), 0, width}), ms(10) * times);
    const std::span<const Duration> execs = durations_->execs(DeviceId(1), ModelId(0), BucketId(1), width);
    ASSERT_EQ(execs.size(), 2u);
    EXPECT_EQ(execs[0], ms(20) * times);
    EXPECT_EQ(execs[1], ms(38) * times);
  }
  EXPECT_EQ(exec(0, 0, 0, 0), ms(10));
}

TEST_P(DurationModelConformance, KeepsWidthsApart) {
  durations_->set_lane_count(DeviceId(1), 2);
  for (int i = 0; i < 20; ++i) durations_->record_exec({DeviceId(1), ModelId(0), BucketId(1), 1, 1}, ms(45));
  EXPECT_EQ(durations_->exec({DeviceId(1), ModelId(0), BucketId(1), 1, 1}), ms(45));
  EXPECT_EQ(exec(1, 0, 1, 1), ms(38));
  for (int i = 0; i < 20; ++i) durations_->record_exec(shape(1, 0, 1, 1), ms(30));
  EXPECT_EQ(durations_->exec({DeviceId(1), ModelId(0), BucketId(1), 1, 1}), ms(45));
  EXPECT_EQ(durations_->execs(DeviceId(1), ModelId(0), BucketId(1), 1)[1], ms(45));
  EXPECT_EQ(exec(0, 0, 1, 1), ms(38));
}

TEST_P(DurationModelConformance, ADeviceThatIsForgottenMayHaveOtherLanes) {
  durations_->set_lane_count(DeviceId(1), 4);
  durations_->record_exec({DeviceId(1), ModelId(0), BucketId(0), 0, 2}, ms(12));
  durations_->forget_device(DeviceId(1));
  durations_->set_lane_count(DeviceId(1), 2);
  EXPECT_EQ(durations_->exec({DeviceId(1), ModelId(0), BucketId(0), 0, 1}), ms(20));
  EXPECT_EQ(exec(1, 0, 0, 0), ms(10));
}

TEST_P(DurationModelConformance, ModelsThatComeLaterHaveAllWidths) {
  durations_->set_lane_count(DeviceId(1), 2);
  durations_->add_model(model(2), kKinds);
  EXPECT_EQ(durations_->exec({DeviceId(1), ModelId(2), BucketId(0), 0, 1}), ms(20));
  ModelInfo larger = model(2);
  larger.only().batch_sizes.push_back(4);
  larger.only().seed_exec[0].push_back(ms(30));
  larger.only().seed_exec[1].push_back(ms(50));
  durations_->record_exec({DeviceId(1), ModelId(2), BucketId(0), 1, 1}, ms(31));
  durations_->extend_model(larger, kKinds);
  EXPECT_EQ(durations_->exec({DeviceId(1), ModelId(2), BucketId(0), 1, 1}), ms(31));
  EXPECT_EQ(durations_->exec({DeviceId(1), ModelId(2), BucketId(1), 2, 1}), ms(100));
}

TEST_P(DurationModelConformance, AModelCanBeExtendedByAKind) {
  durations_->record_exec(shape(0, 1, 0, 0), ms(12));
  ModelInfo both = model(1);
  both.runnables.push_back({.kind = "other", .batch_sizes = {1}, .seed_load = ms(90), .seed_exec = {{ms(2)}, {ms(3)}}});
  const std::array<KindId, 2> kinds{kKind, KindId(3)};
  durations_->add_device(KindId(3));
  durations_->extend_model(both, kinds);
  EXPECT_EQ(exec(2, 1, 1, 0), ms(3));
  EXPECT_GE(exec(0, 1, 0, 0), ms(12));
}

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_DURATION_MODEL_CONFORMANCE_H_
