#include "models/mirror/repository_mirror.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "foundation/objectstore/test_object_store.h"

namespace foliot {
namespace {

class RepositoryMirrorTest : public testing::Test {
 protected:
  RepositoryMirrorTest() {
    static std::atomic<int> folders = 0;
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("foliot_mirror_" + std::to_string(::getpid()) + "_" + std::to_string(++folders));
  }
  ~RepositoryMirrorTest() override {
    mirror_.reset();
    std::filesystem::remove_all(folder_);
  }

  Result<std::unique_ptr<RepositoryMirror>> try_open() {
    return RepositoryMirror::open(
        {.folder = folder_,
         .bytes_max = bytes_max_,
         .name = "one",
         .connect = [this](const auto&) { return std::make_unique<TestObjectStore>(objects_); },
         .log =
             [this](Severity, const std::string& line) {
               const std::lock_guard lock(mutex_);
               log_ += line + "\n";
             }});
  }
  RepositoryMirror& open() {
    mirror_.reset();
    auto mirror = try_open();
    EXPECT_TRUE(mirror.ok()) << mirror.status().message();
    mirror_ = std::move(mirror).value();
    return *mirror_;
  }
  void look() {
    const Status status = mirror_->look();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  std::string text(const std::string& path) const {
    std::ifstream file(folder_ / "models" / path);
    return file ? std::string(std::istreambuf_iterator<char>(file), {}) : "(none)";
  }
  size_t count(const char* name) const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_ / name), std::filesystem::directory_iterator()));
  }

  std::filesystem::path folder_;
  uint64_t bytes_max_ = 1'000'000;
  TestObjects objects_;
  std::mutex mutex_;
  std::string log_;
  std::unique_ptr<RepositoryMirror> mirror_;
};

TEST_F(RepositoryMirrorTest, BringsWhatIsThereAndReadsNothingTwice) {
  for (int i = 0; i < 50; ++i) {
    const std::string name = "model" + std::to_string(i);
    objects_.put(name + "/1/model.onnx", "graph of " + name);
    objects_.put(name + "/model.toml", "");
  }
  open();
  look();
  EXPECT_EQ(text("model17/1/model.onnx"), "graph of model17");
  EXPECT_EQ(text("model17/model.toml"), "");
  const size_t reads = objects_.reads.size();
  EXPECT_EQ(reads, 50u) << "those of nothing need none";
  look();
  open();
  look();
  EXPECT_EQ(objects_.reads.size(), reads);
  EXPECT_EQ(objects_.lists, 3u);
  EXPECT_EQ(count("partial"), 0u);
}

TEST_F(RepositoryMirrorTest, ReplacesAFolderWholeAndOnlyReadsWhatChanged) {
  objects_.put("a/1/model.onnx", "first");
  objects_.put("a/1/weights.bin", "weights");
  objects_.put("b/model.onnx", "other");
  open();
  look();
  const auto kept = std::filesystem::last_write_time(folder_ / "models/a/1/weights.bin");
  objects_.put("a/2/model.onnx", "second");
  objects_.objects.erase("a/1/model.onnx");
  objects_.reads.clear();
  look();
  EXPECT_EQ(objects_.reads, std::vector<std::string>{"a/2/model.onnx"});
  EXPECT_EQ(text("a/2/model.onnx"), "second");
  EXPECT_EQ(text("a/1/model.onnx"), "(none)");
  EXPECT_EQ(text("a/1/weights.bin"), "weights");
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "models/a/1/weights.bin"), kept)
      << "by which a watch would think it changed";
}

TEST_F(RepositoryMirrorTest, RemovesWhatHasNoObjectsAnyMore) {
  objects_.put("a/model.onnx", "a");
  objects_.put("b/model.onnx", "b");
  open();
  look();
  objects_.objects.erase("a/model.onnx");
  look();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "models/a"));
  EXPECT_EQ(text("b/model.onnx"), "b");
  objects_.put("a/model.onnx", "a");
  look();
  EXPECT_EQ(text("a/model.onnx"), "a");
}

TEST_F(RepositoryMirrorTest, AFolderStaysAsItIsWhereALoadFails) {
  objects_.put("a/1/model.onnx", "first");
  objects_.put("a/1/weights.bin", "weights");
  objects_.put("b/model.onnx", "b");
  open();
  look();
  objects_.put("a/1/model.onnx", "second");
  objects_.put("a/1/weights.bin", "other weights");
  objects_.put("b/model.onnx", "b2");
  objects_.failures["a/1/weights.bin"] = Status::invalid_argument("a/1/weights.bin: 403");
  look();
  EXPECT_EQ(text("a/1/model.onnx"), "first") << "no half of a version";
  EXPECT_EQ(text("a/1/weights.bin"), "weights");
  EXPECT_EQ(text("b/model.onnx"), "b2");
  EXPECT_NE(log_.find("'a' stays as it is here: a/1/weights.bin: 403"), std::string::npos) << log_;
  log_.clear();
  objects_.reads.clear();
  look();
  EXPECT_EQ(log_, "") << "it is said once";
  EXPECT_EQ(objects_.reads, std::vector<std::string>{"a/1/weights.bin"}) << "what was loaded is kept";
  objects_.failures.clear();
  look();
  EXPECT_EQ(text("a/1/model.onnx"), "second");
  EXPECT_EQ(text("a/1/weights.bin"), "other weights");
  EXPECT_EQ(count("partial"), 0u);
}

TEST_F(RepositoryMirrorTest, AModelAloneHasThePrefixsName) {
  objects_.put("model.onnx", "graph");
  objects_.put("data/weights.bin", "weights");
  open();
  look();
  EXPECT_EQ(text("one/model.onnx"), "graph");
  EXPECT_EQ(text("one/data/weights.bin"), "weights");
}

TEST_F(RepositoryMirrorTest, KeysThatLeaveTheFolderWriteNothing) {
  objects_.put("a/model.onnx", "a");
  objects_.put("a/../../../escaped", "x");
  objects_.put("../escaped", "x");
  open();
  look();
  EXPECT_EQ(count("models"), 0u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "escaped"));
  EXPECT_FALSE(std::filesystem::exists(folder_.parent_path() / "escaped"));
  EXPECT_NE(log_.find("a/../../../escaped"), std::string::npos) << log_;
  EXPECT_TRUE(objects_.reads.empty());
}

TEST_F(RepositoryMirrorTest, HoldsNoMoreThanItsLimit) {
  bytes_max_ = 1000;
  objects_.put("a/model.onnx", std::string(600, 'a'));
  objects_.put("b/model.onnx", std::string(600, 'b'));
  open();
  look();
  EXPECT_EQ(count("models"), 1u);
  EXPECT_NE(log_.find("at most 1000 B; raise --mirror-limit"), std::string::npos) << log_;
  // A version beside the one that it replaces would be too much, too.
  const std::string served = text("a/model.onnx");
  objects_.objects.erase("b/model.onnx");
  objects_.put("a/model.onnx", std::string(500, 'c'));
  look();
  EXPECT_NE(text("a/model.onnx"), std::string(500, 'c'));
  bytes_max_ = 1200;
  open();
  look();
  EXPECT_EQ(text("a/model.onnx"), std::string(500, 'c'));
}

TEST_F(RepositoryMirrorTest, LoadsAgainWhatWasChangedHere) {
  objects_.put("a/model.onnx", "right");
  open();
  look();
  std::ofstream(folder_ / "models/a/model.onnx") << "wrong";
  std::filesystem::create_directory(folder_ / "models/unlisted");
  open();
  look();
  EXPECT_EQ(text("a/model.onnx"), "right");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "models/unlisted"));
}

TEST_F(RepositoryMirrorTest, TakesOnlyAFolderOfItsOwn) {
  open();
  auto second = try_open();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable) << second.status().message();
  mirror_->look().ok();
  mirror_.reset();
  objects_.put("a/model.onnx", "a");
  open();
  look();
  mirror_.reset();
  objects_.place = "s3://test/others";
  second = try_open();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("mirrors s3://test/models"), std::string::npos) << second.status().message();
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory(folder_);
  std::ofstream(folder_ / "thesis.txt") << "important";
  second = try_open();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("is not empty"), std::string::npos) << second.status().message();
}

TEST_F(RepositoryMirrorTest, StartsWithWhatIsHereWhileTheStoreIsGone) {
  objects_.list_failure = Status::unavailable("the store is gone");
  Status status = open().start(Duration::seconds(1000), [] { return false; });
  EXPECT_EQ(status.message(), "the store is gone");
  objects_.list_failure = Status();
  status = open().start(Duration::seconds(1000), [] { return false; });
  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status.message();
  objects_.put("a/model.onnx", "a");
  status = open().start(Duration::seconds(1000), [] { return false; });
  EXPECT_TRUE(status.ok()) << status.message();
  mirror_->stop();
  objects_.list_failure = Status::unavailable("the store is gone");
  status = open().start(Duration::seconds(1000), [] { return false; });
  EXPECT_TRUE(status.ok()) << status.message();
  mirror_->stop();
  EXPECT_EQ(text("a/model.onnx"), "a");
  EXPECT_NE(log_.find("the mirror stays as it is here: listing: the store is gone"), std::string::npos) << log_;
}

}  // namespace
}  // namespace foliot
