#include "edge/jobs/folder_mark.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace foliot {
namespace {

class FolderMarkTest : public testing::Test {
 protected:
  FolderMarkTest() { std::filesystem::create_directories(folder_); }
  ~FolderMarkTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("foliot_mark_{}", ::getpid());
};

TEST_F(FolderMarkTest, TheFirstOneStays) {
  EXPECT_EQ(*folder_mark(folder_, "one"), "one");
  EXPECT_EQ(*folder_mark(folder_, "two"), "one");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "nothing else is left";
}

TEST_F(FolderMarkTest, AnEmptyFileIsNamed) {
  std::ofstream(folder_ / "shared").close();
  const Status status = folder_mark(folder_, "one").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr((folder_ / "shared").string()));
  EXPECT_EQ(folder_mark(folder_ / "none", "one").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
