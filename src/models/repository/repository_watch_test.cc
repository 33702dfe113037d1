#include "models/repository/repository_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>

namespace foliot {
namespace {

using testing::IsEmpty;

class RepositoryWatchTest : public testing::Test {
 protected:
  RepositoryWatchTest() {
    std::string name = testing::TempDir() + "foliot_watch_XXXXXX";
    root_ = ::mkdtemp(name.data());
    file("old/1/model.onnx", "x");
    watch_.emplace(scan());
  }
  ~RepositoryWatchTest() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::vector<ModelFolder> scan() { return scan_repository(root_, ModelConfig()).value(); }
  void expect(const std::vector<std::string>& load, const std::vector<std::string>& unload) {
    const auto changes = watch_->look(scan());
    EXPECT_EQ(changes.load, load);
    EXPECT_EQ(changes.unload, unload);
  }
  std::filesystem::path root_;
  std::optional<RepositoryWatch> watch_;
};

TEST_F(RepositoryWatchTest, WhatIsKnownIsNoChange) {
  expect({}, {});
  expect({}, {});
}

TEST_F(RepositoryWatchTest, ANewModelIsReportedOnceWhenItIsStill) {
  file("new/model.onnx", "half");
  expect({}, {});
  file("new/model.onnx", "half and more");
  expect({}, {});
  expect({"new"}, {});
  expect({}, {});
}

TEST_F(RepositoryWatchTest, VersionsSettingsAndDataAreChanges) {
  for (const char* path : {"old/2/model.onnx", "old/model.toml", "old/2/weights.bin"}) {
    file(path, "");
    expect({}, {});
    expect({"old"}, {});
    expect({}, {});
  }
  std::filesystem::remove_all(root_ / "old/2");
  expect({}, {});
  expect({"old"}, {});
}

TEST_F(RepositoryWatchTest, AModelThatIsGoneIsReportedOnce) {
  std::filesystem::remove_all(root_ / "old");
  expect({}, {});
  expect({}, {"old"});
  expect({}, {});
}

TEST_F(RepositoryWatchTest, AModelThatComesAndGoesAtOnceIsNothing) {
  file("brief/model.onnx", "x");
  expect({}, {});
  std::filesystem::remove_all(root_ / "brief");
  expect({}, {});
  expect({}, {});
}

TEST_F(RepositoryWatchTest, ReportsAgainWhatHadNoEffect) {
  watch_->report_again("old");
  expect({"old"}, {});
  expect({}, {});
}

TEST_F(RepositoryWatchTest, ManyChangesComeInPieces) {
  for (size_t i = 0; i < RepositoryWatch::kChangesMax + 3; ++i) file(std::to_string(i) + "/model.onnx", "x");
  expect({}, {});
  EXPECT_EQ(watch_->look(scan()).load.size(), RepositoryWatch::kChangesMax);
  EXPECT_EQ(watch_->look(scan()).load.size(), 3u);
  EXPECT_THAT(watch_->look(scan()).load, IsEmpty());
}

}  // namespace
}  // namespace foliot
