#include "node/files/definition_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace foliot {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class DefinitionFilesTest : public testing::Test {
 protected:
  DefinitionFilesTest() { write("one"); }
  ~DefinitionFilesTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text = "a = 1") {
    fs::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "application.toml") << text;
  }
  // A change counts once it is over.
  void look_twice(FileWatch& watch) {
    watch.look();
    watch.look();
  }
  FileWatch watch() {
    return FileWatch({definition_files(
        folder_, "application.toml",
        [this] {
          ++taken_;
          return result_;
        },
        [this](const std::string& failure) { failures_.push_back(failure); })});
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("foliot_definitions_" + std::to_string(getpid()));
  Result<std::vector<std::string>> result_ = std::vector<std::string>();
  int taken_ = 0;
  std::vector<std::string> failures_;
};

TEST_F(DefinitionFilesTest, AFileThatComesChangesOrGoesIsTaken) {
  FileWatch watch = this->watch();
  look_twice(watch);
  EXPECT_EQ(taken_, 0) << "it is known";
  write("two");
  look_twice(watch);
  EXPECT_EQ(taken_, 1);
  write("one", "a = 200");
  look_twice(watch);
  EXPECT_EQ(taken_, 2);
  fs::remove_all(folder_ / "two");
  look_twice(watch);
  EXPECT_EQ(taken_, 3);
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(DefinitionFilesTest, OtherFilesDoNotCount) {
  FileWatch watch = this->watch();
  write(".hidden");
  std::ofstream(folder_ / "one" / "other.toml") << "a";
  fs::create_directories(folder_ / "three");
  look_twice(watch);
  EXPECT_EQ(taken_, 0);
}

TEST_F(DefinitionFilesTest, ARepositoryThatIsGoneForNowHasLostNothing) {
  FileWatch watch = this->watch();
  const fs::path elsewhere = folder_.string() + "_moved";
  fs::rename(folder_, elsewhere);
  look_twice(watch);
  fs::rename(elsewhere, folder_);
  look_twice(watch);
  EXPECT_EQ(taken_, 0);
}

TEST_F(DefinitionFilesTest, WhatIsNotServedIsReported) {
  FileWatch watch = this->watch();
  result_ = std::vector<std::string>{"one", "two"};
  write("one", "a = 200");
  look_twice(watch);
  result_ = Status::internal("cannot be read");
  write("one", "a = 3000");
  look_twice(watch);
  EXPECT_THAT(failures_, ElementsAre("one", "two", "cannot be read"));
}

}  // namespace
}  // namespace foliot
