#include "planning/profiling/sample_file.h"

#include <gtest/gtest.h>

#include "foundation/store/simulated_storage.h"

namespace foliot {
namespace {

constexpr const char* kSetting = "two lanes, models a and b";

OverlapSample sample(uint32_t number) {
  return {.parts = {{0, 0, {0, number + 1}}, {1, 2, {number, OperatorRange::kEnd}}},
          .together = Duration::microseconds(number + 10),
          .spread = 0.25F};
}

void expect_samples(const std::vector<OverlapSample>& samples, uint32_t count) {
  ASSERT_EQ(samples.size(), count);
  for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(SampleFile::encode(samples[i]), SampleFile::encode(sample(i)));
}

TEST(SampleFileTest, GoesOnWhereAnEarlierProcessWas) {
  SimulatedStorage storage;
  for (uint32_t before = 0; before < 30; before += 10) {
    SampleFile file = SampleFile::open(storage, kSetting).value();
    EXPECT_EQ(file.found(), before);
    for (uint32_t i = before; i < before + 10; ++i) ASSERT_TRUE(file.add(sample(i)).ok());
    ASSERT_TRUE(file.sync().ok());
    expect_samples(file.samples(), before + 10);
  }
  EXPECT_EQ(SampleFile::open(storage, "three lanes")->found(), 0u);
}

// Wherever the machine goes down, all that was synced is there, and nothing else than a beginning of
// what was added.
TEST(SampleFileTest, LosesNothingThatWasSynced) {
  uint32_t resumed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimulatedStorage storage(seed, {.crash = 0.05, .failed_append = 0.02, .failed_sync = 0.02, .failed_name = 0.02});
    uint32_t synced = 0;
    for (int process = 0; process < 5; ++process) {
      Result<SampleFile> file = SampleFile::open(storage, kSetting);
      if (file.ok()) {
        expect_samples(file->samples(), static_cast<uint32_t>(file->samples().size()));
        EXPECT_GE(file->samples().size(), synced) << "seed " << seed;
        synced = static_cast<uint32_t>(file->samples().size());
        resumed += synced > 0 ? 1 : 0;
        for (uint32_t i = synced; i < synced + 8; ++i) {
          if (!file->add(sample(i)).ok()) break;
        }
        if (file->sync().ok()) synced = static_cast<uint32_t>(file->samples().size());
      }
      storage.crash();
      storage.restart();
    }
  }
  EXPECT_GT(resumed, 300u);
}

TEST(SampleFileTest, AFullDiskEndsIt) {
  SimulatedStorage storage;
  SampleFile file = SampleFile::open(storage, kSetting).value();
  ASSERT_TRUE(file.add(sample(0)).ok() && file.sync().ok());
  storage.set_faults({.disk_full = 1});
  EXPECT_EQ(file.add(sample(1)).code(), StatusCode::kResourceExhausted);
  storage.set_faults({});
  EXPECT_FALSE(file.add(sample(1)).ok()) << "behind a part of the one before";
  expect_samples(SampleFile::open(storage, kSetting)->samples(), 1);
}

// Any byte that is damaged ends it there.
TEST(SampleFileTest, DamageEndsIt) {
  std::vector<std::byte> bytes = SampleFile::encode_header(kSetting);
  const size_t header = bytes.size(), each = SampleFile::encode(sample(0)).size();
  for (uint32_t i = 0; i < 4; ++i) {
    const std::vector<std::byte> one = SampleFile::encode(sample(i));
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  expect_samples(SampleFile::decode(bytes, kSetting), 4);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> damaged = bytes;
    damaged[at] ^= std::byte{4};
    expect_samples(SampleFile::decode(damaged, kSetting),
                   at < header ? 0 : static_cast<uint32_t>((at - header) / each));
    expect_samples(SampleFile::decode(std::span(bytes).first(at), kSetting),
                   at < header ? 0 : static_cast<uint32_t>((at - header) / each));
  }
}

}  // namespace
}  // namespace foliot
