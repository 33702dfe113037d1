#include "edge/jobs/job_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace foliot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class JobFolderTest : public testing::Test {
 protected:
  JobFolderTest() {
    fs::create_directories(root_ / "in");
    std::ofstream(root_ / "in" / "rows.npy") << "rows";
    std::ofstream(outside_) << "secret";
  }
  ~JobFolderTest() override { fs::remove_all(base_); }
  std::string error(const std::string& path) { return folder_.open_file(path).status().message(); }

  const fs::path base_ = fs::path(testing::TempDir()) / fmt::format("foliot_job_folder_{}", ::getpid());
  const fs::path root_ = base_ / "root";
  const fs::path outside_ = base_ / "secret.npy";
  const JobFolder folder_ = JobFolder::open(root_).value();
};

TEST_F(JobFolderTest, OpensFilesBelowIt) {
  EXPECT_TRUE(folder_.open_file("in/rows.npy").ok());
  fs::create_symlink("in/rows.npy", root_ / "link.npy");
  EXPECT_TRUE(folder_.open_file("link.npy").ok()) << "a link that stays below";
  EXPECT_EQ(folder_.open_file("absent.npy").status().code(), StatusCode::kNotFound);
}

TEST_F(JobFolderTest, NothingLeadsOutOfIt) {
  fs::create_symlink(outside_, root_ / "absolute.npy");
  fs::create_symlink("../secret.npy", root_ / "relative.npy");
  fs::create_directory_symlink(base_, root_ / "up");
  for (const char* path : {"absolute.npy", "relative.npy", "up/secret.npy"}) {
    EXPECT_EQ(folder_.open_file(path).status().code(), StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(error(path), HasSubstr("leads out of the folder of jobs")) << path;
  }
  EXPECT_THAT(error("../secret.npy"), HasSubstr("begins with a dot"));
  EXPECT_THAT(error("in/../../secret.npy"), HasSubstr("begins with a dot"));
  EXPECT_THAT(error(outside_.string()), HasSubstr("must be relative"));
  EXPECT_THAT(error(".foliot/jobs.sqlite"), HasSubstr("begins with a dot"));
  EXPECT_THAT(folder_.make_folder("up/answers").message(), HasSubstr("leads out"));
  EXPECT_FALSE(fs::exists(base_ / "answers"));
}

TEST_F(JobFolderTest, WrongPathsAreNamed) {
  for (const std::string& path :
       {std::string(), std::string("a//b"), std::string("a/"), std::string("a\0b", 3), std::string(2000, 'x')}) {
    EXPECT_EQ(folder_.open_file(path).status().code(), StatusCode::kInvalidArgument) << path;
  }
  EXPECT_THAT(error("in"), HasSubstr("'in' is no file"));
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error("pipe"), HasSubstr("'pipe' is no file")) << "and it does not wait for a writer";
}

TEST_F(JobFolderTest, MakesFoldersOnce) {
  ASSERT_TRUE(folder_.make_folder("out/2026/answers").ok());
  EXPECT_TRUE(fs::is_directory(root_ / "out/2026/answers"));
  EXPECT_TRUE(folder_.open_folder("out/2026/answers").ok());
  EXPECT_EQ(folder_.make_folder("out/2026/answers").code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(folder_.make_folder("out/2026/others").ok());
  EXPECT_EQ(folder_.make_folder("in/rows.npy/answers").code(), StatusCode::kInvalidArgument);
  folder_.remove_folder("out/2026/others");
  EXPECT_FALSE(fs::exists(root_ / "out/2026/others"));
  std::ofstream(root_ / "out/2026/answers/y.npy") << "kept";
  folder_.remove_folder("out/2026/answers");
  EXPECT_TRUE(fs::exists(root_ / "out/2026/answers/y.npy"));
}

TEST_F(JobFolderTest, AFolderThatCannotBeUsedIsNamed) {
  EXPECT_THAT(JobFolder::open(outside_).status().message(), HasSubstr("--jobs"));
}

}  // namespace
}  // namespace foliot
