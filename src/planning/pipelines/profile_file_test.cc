#include "planning/pipelines/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using testing::HasSubstr;

class ProfileFileTest : public testing::Test {
 protected:
  Result<StageProfiles> read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_profile_file(file_);
  }
  std::string error(const std::string& text) { return read(text).status().message(); }
  const std::string file_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_foliot_profiles.toml";
};

constexpr const char* kDecode =
    "[[profile]]\nstage = 'decode'\nkind = 'cpu'\nbatch_sizes = [1, 4]\ndurations = ['2ms', '7ms']\n";

TEST_F(ProfileFileTest, ReadsDurationsByStageKindAndBatchSize) {
  const auto profiles = read(std::string(kDecode) +
                             "[[profile]]\nstage = 'decode'\nkind = 'cuda'\nbatch_sizes = [1, 2]\n"
                             "p50 = ['1ms', '2ms']\np99 = ['3ms', '4ms']\n[visits]\ndecode = 0.25\n");
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  const StageProfile& decode = profiles->at("decode");
  EXPECT_EQ(decode.scale_factor, 0.25);
  ASSERT_NE(decode.find("cpu"), nullptr);
  // The next batch size that was measured.
  EXPECT_EQ(decode.find("cpu")->duration(1, 0.99), ms(2));
  EXPECT_EQ(decode.find("cpu")->duration(2, 0.99), ms(7));
  EXPECT_EQ(decode.find("cpu")->duration(4, 0.5), ms(7));
  EXPECT_EQ(decode.find("cuda")->duration(2, 0.5), ms(2));
  EXPECT_EQ(decode.find("cuda")->duration(2, 0.6), ms(4));
  EXPECT_EQ(decode.find("cuda")->duration(2, 1), ms(4));
  EXPECT_EQ(decode.find("tpu"), nullptr);
}

TEST_F(ProfileFileTest, VisitsAreAMeanOrTheSharesOfTheirNumbers) {
  auto profiles = read(std::string(kDecode) + "[visits]\ndecode = 2.5\n");
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  EXPECT_EQ(profiles->at("decode").scale_factor, 2.5);
  EXPECT_EQ(profiles->at("decode").visits_shares, std::vector<double>());
  EXPECT_THAT(profile_file_text(*profiles), HasSubstr("[visits]\ndecode = 2.5\n"));
  profiles = read(std::string(kDecode) + "[visits]\ndecode = [1, 1, 2]\n");
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  EXPECT_EQ(profiles->at("decode").scale_factor, 1.25);
  EXPECT_EQ(profiles->at("decode").visits_shares, (std::vector<double>{1, 1, 2}));
  EXPECT_THAT(profile_file_text(*profiles), HasSubstr("[visits]\ndecode = [1, 1, 2]\n"));
  EXPECT_THAT(error(std::string(kDecode) + "[visits]\ndecode = 256\n"),
              HasSubstr(":7: 'decode' is 256; a query has at most 255 visits"));
  EXPECT_THAT(error(std::string(kDecode) + "[visits]\ndecode = -1\n"), HasSubstr(":7: 'decode' must"));
  EXPECT_THAT(error(std::string(kDecode) + "[visits]\ndecode = [0]\n"), HasSubstr("of which one is above 0"));
}

TEST_F(ProfileFileTest, ErrorsNameFileLineStageAndKind) {
  const std::string profile = "[[profile]]\nstage = 'decode'\nkind = 'cpu'\n";
  EXPECT_THAT(error(""), HasSubstr("has no [[profile]]"));
  EXPECT_THAT(error("[[profile]]\nkind = 'cpu'\nbatch_sizes = [1]\ndurations = ['1ms']\n"), HasSubstr("needs 'stage'"));
  EXPECT_THAT(error(profile), HasSubstr("foliot_profiles.toml:1: needs 'durations', or some of 'p50'"));
  EXPECT_THAT(error(profile + "batch_sizes = [2, 4]\ndurations = ['1ms', '2ms']\n"),
              HasSubstr("foliot_profiles.toml:1: profile of stage 'decode' on 'cpu': batch sizes must begin with 1"));
  EXPECT_THAT(error(profile + "batch_sizes = [1, 128]\ndurations = ['1ms', '2ms']\n"),
              HasSubstr("a batch size of 128 is above the limit of 64"));
  EXPECT_THAT(error(profile + "batch_sizes = [1, 2]\ndurations = ['1ms']\n"),
              HasSubstr("has 1 durations for 2 batch sizes"));
  EXPECT_THAT(error(profile + "batch_sizes = [1, 2]\ndurations = ['2ms', '1ms']\n"),
              HasSubstr("a larger batch takes less time than a smaller one"));
  EXPECT_THAT(error(profile + "batch_sizes = [1]\np50 = ['2ms']\np99 = ['1ms']\n"),
              HasSubstr("at batch size 1, a higher quantile is less than a lower one"));
  EXPECT_THAT(error(std::string(kDecode) + kDecode),
              HasSubstr(":6: profile of stage 'decode' on 'cpu' is given twice"));
  EXPECT_THAT(error(std::string(kDecode) + "[visits]\nresnet = 0.5\n"),
              HasSubstr(":7: 'resnet' is a stage without a [[profile]]"));
  EXPECT_THAT(error(std::string(kDecode) + "[visits]\ndecode = 'often'\n"), HasSubstr(":7: 'decode'"));
}

TEST_F(ProfileFileTest, IsReadAsItWasWritten) {
  const KindProfile cpu{"cpu:4", {1, 8}, {{1, {Duration::microseconds(1500), ms(70)}}}};
  const KindProfile varying{"tpu", {1, 2}, {{0.5, {ms(1), ms(2)}}, {0.99, {ms(3), ms(5)}}}};
  const KindProfile cuda{"cu\"da\\", {1}, {{1, {ms(3)}}}};
  const StageProfiles written{
      {"a", {"a", 0.25, {cpu, cuda, varying}}}, {"b", {"b", 1, {cpu}}}, {"c \"d\"", {"c \"d\"", 0.5, {cpu}}}};
  const auto profiles = read(profile_file_text(written));
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  ASSERT_EQ(profiles->size(), 3u);
  EXPECT_EQ(profiles->at("c \"d\"").scale_factor, 0.5);
  const StageProfile& a = profiles->at("a");
  EXPECT_EQ(a.scale_factor, 0.25);
  EXPECT_EQ(profiles->at("b").scale_factor, 1);
  ASSERT_EQ(a.kinds.size(), 3u);
  EXPECT_EQ(a.find("tpu")->duration(2, 0.5), ms(2));
  EXPECT_EQ(a.find("tpu")->duration(2, 0.99), ms(5));
  EXPECT_EQ(a.kinds[0].kind, "cpu:4");
  EXPECT_EQ(a.kinds[0].batch_sizes, cpu.batch_sizes);
  EXPECT_EQ(a.kinds[0].quantiles[0].of_batches, cpu.quantiles[0].of_batches);
  EXPECT_EQ(a.find("cu\"da\\")->duration(1, 1), ms(3));
}

}  // namespace
}  // namespace foliot
