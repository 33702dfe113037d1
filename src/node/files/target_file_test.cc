#include "node/files/target_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace foliot {
namespace {

using testing::HasSubstr;

class TargetFileTest : public testing::Test {
 protected:
  Result<NamedTargets> read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_target_file(file_);
  }
  std::string error(const std::string& text) { return read(text).status().message(); }
  const std::string file_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_foliot_targets.toml";
};

TEST_F(TargetFileTest, IsReadAsItWasWritten) {
  const NamedTargets written{
      {"a", {.copies_least = 2, .copies_most = 4, .kinds = {"cpu", "container:a"}, .batch_most = 8}},
      {"b", {.copies_most = 0}},
      {"c", {}},
      {"d \"e\" \\ f\n", {.kinds = {"\"", "\\"}}}};
  const auto targets = read(target_file_text(written));
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  EXPECT_EQ(*targets, written);
}

TEST_F(TargetFileTest, SeveralModelsMayHaveTheSameTargets) {
  const auto targets = read("[[targets]]\nmodels = ['a', 'b']\nbatch_most = 2\n");
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  EXPECT_EQ(targets->at("a").batch_most, 2u);
  EXPECT_EQ(targets->at("b").batch_most, 2u);
}

TEST_F(TargetFileTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(error("[[targets]]\nbatch_most = 2\n"), HasSubstr("foliot_targets.toml:1: needs 'models'"));
  EXPECT_THAT(error("[[targets]]\nmodels = ['a']\nbatch_most = 0\n"), HasSubstr("foliot_targets.toml:3: 'batch_most'"));
  EXPECT_THAT(error("[[targets]]\nmodels = ['a']\ncopies_least = 3\ncopies_most = 2\n"),
              HasSubstr("foliot_targets.toml:3: 'copies_least' is 3, and must not be above copies_most, which is 2"));
  EXPECT_THAT(error("[[targets]]\nmodels = ['a', 'a']\n"), HasSubstr("which has targets above"));
  EXPECT_THAT(error("[[targets]]\nmodels = ['a']\ncopies = 2\n"), HasSubstr("copies"));
  EXPECT_THAT(error("targets = 3\n"), HasSubstr("targets"));
}

}  // namespace
}  // namespace foliot
