#include "node/files/file_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace foliot {
namespace {

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    write(one_, "a");
    write(two_, "b");
  }
  static void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

  const std::filesystem::path folder_ = ::testing::TempDir();
  const std::string test_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::filesystem::path one_ = folder_ / ("foliot_watch_" + test_ + "_one");
  const std::filesystem::path two_ = folder_ / ("foliot_watch_" + test_ + "_two");
  int changes_ = 0;
};

TEST_F(FileWatchTest, ReportsAChangeOnceItIsOver) {
  FileWatch watch({{.files = {one_, two_}, .on_change = [this] { ++changes_; }}});
  watch.look();
  EXPECT_EQ(changes_, 0);
  write(one_, "longer");
  watch.look();
  EXPECT_EQ(changes_, 0) << "it may go on";
  write(two_, "longer");
  watch.look();
  EXPECT_EQ(changes_, 0);
  watch.look();
  EXPECT_EQ(changes_, 1);
  watch.look();
  EXPECT_EQ(changes_, 1);
}

TEST_F(FileWatchTest, AFileThatComesAndGoesIsAChange) {
  FileWatch watch({{.files = {one_, two_}, .on_change = [this] { ++changes_; }}});
  std::filesystem::remove(one_);
  watch.look();
  watch.look();
  EXPECT_EQ(changes_, 1);
  write(one_, "a");
  watch.look();
  watch.look();
  EXPECT_EQ(changes_, 2);
}

TEST_F(FileWatchTest, LooksByItself) {
  std::mutex mutex;
  std::condition_variable changed;
  FileWatch watch({{.files = {one_}, .on_change = [&] {
                      std::lock_guard lock(mutex);
                      ++changes_;
                      changed.notify_all();
                    }}});
  ASSERT_TRUE(watch.start(Duration::milliseconds(1)).ok());
  write(one_, "longer");
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return changes_ > 0; });
}

TEST_F(FileWatchTest, FilesMayBeListedAtEachLook) {
  std::optional<std::vector<std::filesystem::path>> files{{one_}};
  FileWatch watch({{.files = {}, .on_change = [this] { ++changes_; }, .list = [&] { return files; }}});
  const auto look_twice = [&] {
    watch.look();
    watch.look();
    return changes_;
  };
  EXPECT_EQ(look_twice(), 0);
  files = {{one_, two_}};
  EXPECT_EQ(look_twice(), 1) << "one came";
  write(two_, "longer");
  EXPECT_EQ(look_twice(), 2);
  files.reset();
  EXPECT_EQ(look_twice(), 2) << "they cannot be listed now";
  files = {{two_}};
  EXPECT_EQ(look_twice(), 3) << "one went";
}

}  // namespace
}  // namespace foliot
