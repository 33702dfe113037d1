#include "planning/profiling/predictor_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "foundation/store/simulated_storage.h"

namespace foliot {
namespace {

OverlapPredictor two_models(uint64_t seed = 1) {
  std::vector<ProfiledModel> models;
  for (const char* name : {"one", "other"}) {
    ProfiledModel& model = models.emplace_back(ProfiledModel{.name = name, .content = name, .operators = 3});
    model.ends = {{{1000, 2000, 4000}, {2000, 3000, 7000}}, {{1, 1, 1}, {2, 2, 5}}};
  }
  Random random(seed);
  return OverlapPredictor(2, std::move(models), Mlp(2 * OverlapPredictor::kFeatures, random));
}

TEST(PredictorFileTest, KeepsWhatThePredictorSays) {
  SimulatedStorage storage;
  EXPECT_EQ(read_predictor(storage).status().code(), StatusCode::kNotFound);
  const OverlapPredictor made = two_models();
  ASSERT_TRUE(write_predictor(storage, two_models(2)).ok());
  ASSERT_TRUE(write_predictor(storage, made).ok());
  const Result<OverlapPredictor> read = read_predictor(storage);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(encode_predictor(*read), encode_predictor(made));
  const std::vector<OverlapPredictor::Part> group{{0, 1, {}}, {1, 0, {1, 2}}};
  EXPECT_EQ(read->predict(group), made.predict(group));
  EXPECT_EQ(read->lane_count(), 2u);
}

TEST(PredictorFileTest, AFullDiskLeavesTheOldOne) {
  SimulatedStorage storage;
  ASSERT_TRUE(write_predictor(storage, two_models()).ok());
  storage.set_faults({.disk_full = 1});
  EXPECT_EQ(write_predictor(storage, two_models(2)).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(encode_predictor(read_predictor(storage).value()), encode_predictor(two_models()));
}

TEST(PredictorFileTest, RefusesWhatIsDamagedOrOfAnotherVersion) {
  const std::vector<std::byte> bytes = encode_predictor(two_models());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> damaged = bytes;
    damaged[at] ^= std::byte{8};
    EXPECT_FALSE(decode_predictor(damaged).ok()) << at;
    EXPECT_FALSE(decode_predictor(std::span(bytes).first(at)).ok()) << at;
  }
  std::vector<std::byte> newer = bytes;
  newer[8] = std::byte{2};
  EXPECT_EQ(decode_predictor(newer).status().message(),
            "the file has version 2, and this is for version 1; profile its models anew");
}

// With the right hash, as a file from elsewhere may have it.
TEST(PredictorFileTest, RefusesProfilesThatCannotBe) {
  const auto accepted = [](auto change) {
    OverlapPredictor sound = two_models();
    std::vector<ProfiledModel> models = sound.models();
    change(models[1].ends[1][0]);
    return decode_predictor(encode_predictor(OverlapPredictor(2, std::move(models), sound.mlp()))).ok();
  };
  EXPECT_TRUE(accepted([](std::vector<float>&) {}));
  EXPECT_FALSE(accepted([](std::vector<float>& ends) { ends = {3, 2, 5}; }));
  EXPECT_FALSE(accepted([](std::vector<float>& ends) { ends = {-1, 2, 5}; }));
  EXPECT_FALSE(accepted([](std::vector<float>& ends) { ends = {1, 2, INFINITY}; }));
  EXPECT_FALSE(accepted([](std::vector<float>& ends) { ends = {1, NAN, 5}; }));
}

}  // namespace
}  // namespace foliot
