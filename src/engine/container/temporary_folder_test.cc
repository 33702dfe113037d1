#include "engine/container/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace foliot {
namespace {

namespace fs = std::filesystem;

class TemporaryFolderTest : public testing::Test {
 protected:
  TemporaryFolderTest() {
    std::string name = testing::TempDir() + "foliot_temporary_XXXXXX";
    parent_ = ::mkdtemp(name.data());
    const char* before = std::getenv("TMPDIR");
    before_ = before == nullptr ? "" : before;
    ::setenv("TMPDIR", parent_.c_str(), 1);
  }
  ~TemporaryFolderTest() override {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(parent_);
  }
  // By a process that ends without removing it.
  void abandon_one() {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto folder = TemporaryFolder::make();
      if (folder.ok()) std::ofstream(folder->path() / "file") << "x";
      ::_exit(folder.ok() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  size_t folders() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(parent_), fs::directory_iterator()));
  }

  fs::path parent_;
  std::string before_;
};

TEST_F(TemporaryFolderTest, IsRemovedWithAllThatIsInIt) {
  {
    const auto folder = TemporaryFolder::make();
    ASSERT_TRUE(folder.ok());
    std::ofstream(folder->path() / "file") << "x";
    EXPECT_EQ(folders(), 1u);
  }
  EXPECT_EQ(folders(), 0u);
}

TEST_F(TemporaryFolderTest, ThoseOfKilledServersAreRemovedAndThoseInUseAreNot) {
  abandon_one();
  abandon_one();
  const auto in_use = TemporaryFolder::make();
  ASSERT_TRUE(in_use.ok());
  fs::create_directory(parent_ / "other");
  fs::create_directory_symlink(parent_ / "other", parent_ / "foliot-container-link");
  EXPECT_EQ(TemporaryFolder::remove_abandoned(), 2u);
  EXPECT_TRUE(fs::exists(in_use->path()));
  EXPECT_TRUE(fs::exists(parent_ / "other"));
  EXPECT_EQ(folders(), 3u);
  EXPECT_EQ(TemporaryFolder::remove_abandoned(), 0u);
}

TEST_F(TemporaryFolderTest, CountsItsFilesUntilThereAreEnough) {
  const auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->bytes(1 << 20), 0u);
  fs::create_directory(folder->path() / "below");
  std::ofstream(folder->path() / "below/small") << "x";
  std::ofstream(folder->path() / "large") << std::string(10'000, 'x');
  fs::create_symlink("/usr", folder->path() / "link");
  EXPECT_EQ(folder->bytes(1 << 20), 3u * 4096 + 10'000);
  EXPECT_GT(folder->bytes(0), 0u);
  EXPECT_LT(folder->bytes(0), 3u * 4096 + 10'000);
}

}  // namespace
}  // namespace foliot
