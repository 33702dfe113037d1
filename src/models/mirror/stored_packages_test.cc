#include "models/mirror/stored_packages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "foundation/objectstore/test_object_store.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

class StoredPackagesTest : public testing::Test {
 protected:
  StoredPackagesTest() {
    auto packages =
        StoredPackages::start({.connect = [this](const auto&) { return std::make_unique<TestObjectStore>(objects_); },
                               .log =
                                   [this](Severity, const std::string& line) {
                                     {
                                       const std::lock_guard lock(mutex_);
                                       log_ += line + "\n";
                                     }
                                     logged_.notify_all();
                                   },
                               .now = [this] { return now_; }});
    EXPECT_TRUE(packages.ok()) << packages.status().message();
    packages_ = std::move(packages).value();
  }

  bool fetch(const std::string& key) {
    const Descriptor file(::memfd_create("package", MFD_CLOEXEC));
    const bool found = packages_->fetch(key, file.number());
    fetched_.resize(static_cast<size_t>(::lseek(file.number(), 0, SEEK_END)));
    EXPECT_EQ(::pread(file.number(), fetched_.data(), fetched_.size(), 0), static_cast<ssize_t>(fetched_.size()));
    return found;
  }
  std::string await_log() {
    std::unique_lock lock(mutex_);
    logged_.wait(lock, [this] { return !log_.empty(); });
    return log_;
  }

  TestObjects objects_;
  TimePoint now_;
  std::mutex mutex_;
  std::condition_variable logged_;
  std::string log_;
  std::string fetched_;
  std::unique_ptr<StoredPackages> packages_;
};

TEST_F(StoredPackagesTest, FetchesWhatIsThere) {
  objects_.put("key.foliot", "a package");
  EXPECT_TRUE(fetch("key"));
  EXPECT_EQ(fetched_, "a package");
  EXPECT_FALSE(fetch("other"));
  EXPECT_EQ(log_, "") << "that there is none is usual";
}

TEST_F(StoredPackagesTest, AsksAgainAfterAPause) {
  objects_.put("key.foliot", "a package");
  objects_.failures["key.foliot"] = Status::unavailable("the store is gone");
  EXPECT_FALSE(fetch("key"));
  EXPECT_EQ(log_, "the store is gone\n");
  objects_.failures.clear();
  now_ = now_ + StoredPackages::kPause - Duration::nanoseconds(1);
  EXPECT_FALSE(fetch("key"));
  now_ = now_ + Duration::nanoseconds(1);
  EXPECT_TRUE(fetch("key"));
}

TEST_F(StoredPackagesTest, OffersWhatWasCompiled) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / ("foliot_offer_" + std::to_string(::getpid()));
  std::ofstream(file) << "compiled";
  objects_.failures["refused.foliot"] = Status::invalid_argument("refused");
  packages_->offer("key", file);
  packages_->offer("refused", file);  // in its turn, so the first is there once this one has failed
  EXPECT_NE(await_log().find("a package is not shared: refused"), std::string::npos);
  objects_.failures.clear();
  now_ = now_ + StoredPackages::kPause;
  EXPECT_TRUE(fetch("key"));
  EXPECT_EQ(fetched_, "compiled");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace foliot
