#include "answer/selection/state_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace foliot {
namespace {

using ::testing::HasSubstr;

class StateFileTest : public testing::Test {
 protected:
  ~StateFileTest() override { std::filesystem::remove(file_); }
  std::vector<StateFile::Learned> read() {
    Result<StateFile> file = StateFile::open(file_);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return *file->read();
  }

  // Processes of tests run at the same time.
  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("foliot_learned_{}.sqlite", ::getpid());
};

TEST_F(StateFileTest, KeepsWhatWasWritten) {
  const std::string binary("a\0b", 3);
  {
    Result<StateFile> file = StateFile::open(file_);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE(
        file->write(std::vector<StateFile::Learned>{
                        {"app", "exp3", {"", binary}}, {"app", "exp3", {"x", "1"}}, {"app", "exp3", {"y", "2"}}})
            .ok());
    ASSERT_TRUE(
        file->write(std::vector<StateFile::Learned>{{"app", "exp3", {"x", "3"}}, {"app", "exp3", {"y", {}}}}).ok());
  }
  const std::vector<StateFile::Learned> kept = read();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].learned.state, binary);
  EXPECT_EQ(kept[1].learned.context, "x");
  EXPECT_EQ(kept[1].learned.state, "3");
  EXPECT_EQ(kept[1].learns_as, "exp3");
}

TEST_F(StateFileTest, ErrorsNameTheFile) {
  EXPECT_THAT(StateFile::open("/nowhere/learned").status().message(), HasSubstr("/nowhere/learned"));
  std::ofstream(file_) << std::string(5000, 'x');
  EXPECT_THAT(StateFile::open(file_).status().message(), HasSubstr("--state"));
}

TEST_F(StateFileTest, OneProcessUsesIt) {
  const Result<StateFile> first = StateFile::open(file_);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(StateFile::open(file_).ok());
}

}  // namespace
}  // namespace foliot
