#include "foundation/store/disk_storage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "foundation/store/test_records.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DiskStorageTest : public testing::Test {
 protected:
  ~DiskStorageTest() override { std::filesystem::remove_all(folder_); }
  // Processes of tests run at the same time.
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("foliot_storage_{}", ::getpid());
};

TEST_F(DiskStorageTest, KeepsFiles) {
  {
    const auto storage = DiskStorage::open(folder_).value();
    const auto file = storage->create("b").value();
    ASSERT_TRUE(file->append(bytes_of("one")).ok());
    ASSERT_TRUE(file->append(bytes_of("two")).ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(storage->create("a").ok());
    ASSERT_TRUE(storage->create("c").ok());
  }
  const auto storage = DiskStorage::open(folder_).value();
  EXPECT_THAT(*storage->list(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(text_of(*storage->read("b")), "onetwo");
  ASSERT_TRUE(storage->sync("b").ok());
  ASSERT_TRUE(storage->rename("b", "a").ok());
  ASSERT_TRUE(storage->remove("c").ok());
  EXPECT_THAT(*storage->list(), ElementsAre("a"));
  EXPECT_EQ(text_of(*storage->read("a")), "onetwo");
}

TEST_F(DiskStorageTest, ErrorsNameTheFile) {
  const auto storage = DiskStorage::open(folder_).value();
  EXPECT_EQ(storage->read("none").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(storage->read("none").status().message(), HasSubstr((folder_ / "none").string()));
  EXPECT_THAT(DiskStorage::open("/proc/none").status().message(), HasSubstr("/proc/none"));
}

TEST_F(DiskStorageTest, OneProcessUsesAFolder) {
  const auto storage = DiskStorage::open(folder_);
  EXPECT_EQ(DiskStorage::open(folder_).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(DiskStorageTest, AFullDiskIsNamed) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const auto storage = DiskStorage::open(folder_).value();
  std::filesystem::create_symlink("/dev/full", folder_ / "full");
  const auto file = storage->create("full").value();
  const Status status = file->append(bytes_of("x"));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("free space"));
}

}  // namespace
}  // namespace foliot
