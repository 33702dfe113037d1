#include "node/files/predictor_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "foundation/store/disk_storage.h"
#include "planning/profiling/predictor_file.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PredictorFolderTest : public testing::Test {
 protected:
  PredictorFolderTest() {
    std::string name = testing::TempDir() + "foliot_predictor_XXXXXX";
    cache_ = ::mkdtemp(name.data());
  }
  ~PredictorFolderTest() override { std::filesystem::remove_all(cache_); }

  void write() {
    ProfiledModel model{.name = "digits", .content = "abc", .operators = 2};
    model.ends = {{{1, 2}, {2, 3}}};
    Random random(1);
    const auto storage = DiskStorage::open(cache_ / kOverlapFolder).value();
    ASSERT_TRUE(write_predictor(*storage, OverlapPredictor(2, {model}, Mlp(OverlapPredictor::kFeatures, random))).ok());
  }
  std::shared_ptr<const OverlapPredictor> open(uint32_t lanes) {
    notes_.clear();
    return open_predictor(predictor_file(cache_), lanes, [this](const std::string& note) { notes_.push_back(note); });
  }

  std::filesystem::path cache_;
  std::vector<std::string> notes_;
};

TEST_F(PredictorFolderTest, SaysWhatItCannotUse) {
  EXPECT_EQ(open(2), nullptr);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("there is no predictor")));
  write();
  EXPECT_NE(open(2), nullptr);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(open(1), nullptr);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("one lane")));
  EXPECT_EQ(open(4), nullptr);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("profiled on 2 lanes, and devices have 4")));
  std::ofstream(cache_ / kOverlapFolder / kPredictorFileName) << "no predictor";
  EXPECT_EQ(open(2), nullptr);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("damaged; profile its models anew; models run one at a time")));
}

TEST_F(PredictorFolderTest, SaysWhichModelsItDoesNotKnow) {
  write();
  const auto predictor = open(2);
  ModelInfo info{.name = "digits", .content = "abc"};
  info.buckets.resize(1);
  info.only().operator_ends = {0.5, 1};
  EXPECT_EQ(unprofiled_note(*predictor, info), "");
  info.only().operator_ends = {0.2, 0.5, 1};
  EXPECT_THAT(unprofiled_note(*predictor, info), HasSubstr("model 'digits' was not profiled as it is now"));
  info.content = "abcd";
  EXPECT_NE(unprofiled_note(*predictor, info), "");
}

}  // namespace
}  // namespace foliot
