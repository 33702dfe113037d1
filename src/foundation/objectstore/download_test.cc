#include "foundation/objectstore/download.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "foundation/objectstore/test_object_store.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

std::string long_content() {
  std::string content;
  for (int i = 0; content.size() < 100'000; ++i) content += std::to_string(i) + ",";
  return content;
}

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() { objects_.put("a/model.onnx", content_); }

  StoredObject object() { return store_.find("a/model.onnx").value(); }
  std::string text() const {
    std::string text(static_cast<size_t>(::lseek(file_.number(), 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(file_.number(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

  const std::string content_ = long_content();
  TestObjects objects_;
  TestObjectStore store_{objects_};
  const Descriptor file_{::memfd_create("download", MFD_CLOEXEC)};
};

TEST_F(DownloadTest, GoesOnAfterEachCut) {
  objects_.cut_after = content_.size() / 60;
  objects_.cuts = 50;
  const auto verified = download(store_, object(), file_.number());
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  EXPECT_TRUE(verified.value());
  EXPECT_EQ(text(), content_);
  EXPECT_EQ(objects_.cuts, 0);
  EXPECT_EQ(objects_.bytes_read, content_.size()) << "nothing is read twice";
}

TEST_F(DownloadTest, GoesOnFromWhatAnEarlierOneLeft) {
  objects_.cut_after = 0;
  objects_.cuts = kFruitlessMax;
  ASSERT_EQ(::pwrite(file_.number(), content_.data(), 60'000, 0), 60'000);
  const auto failed = download(store_, object(), file_.number());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(text().size(), 60'000u);
  ASSERT_TRUE(download(store_, object(), file_.number()).ok());
  EXPECT_EQ(text(), content_);
  EXPECT_EQ(objects_.bytes_read, content_.size() - 60'000);
}

TEST_F(DownloadTest, LoadsAnewWhatIsDamaged) {
  objects_.damaged_reads = kDamagedMax - 1;
  auto verified = download(store_, object(), file_.number());
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  EXPECT_EQ(text(), content_);
  EXPECT_EQ(objects_.reads.size(), static_cast<size_t>(kDamagedMax));

  objects_.damaged_reads = kDamagedMax;
  objects_.reads.clear();
  ASSERT_EQ(::ftruncate(file_.number(), 0), 0);
  verified = download(store_, object(), file_.number());
  ASSERT_FALSE(verified.ok());
  EXPECT_NE(verified.status().message().find("a/model.onnx"), std::string::npos) << verified.status().message();
  EXPECT_EQ(text(), "") << "what is damaged is not gone on from";
}

TEST_F(DownloadTest, ABeginningOfSomethingElseIsFound) {
  ASSERT_EQ(::pwrite(file_.number(), "something else", 14, 0), 14);
  ASSERT_TRUE(download(store_, object(), file_.number()).ok());
  EXPECT_EQ(text(), content_);
  const std::string longer = content_ + "more";
  ASSERT_EQ(::pwrite(file_.number(), longer.data(), longer.size(), 0), static_cast<ssize_t>(longer.size()));
  ASSERT_TRUE(download(store_, object(), file_.number()).ok());
  EXPECT_EQ(text(), content_);
}

TEST_F(DownloadTest, AnObjectThatChangesMeanwhileIsAFailure) {
  const StoredObject before = object();
  objects_.cut_after = 1000;
  objects_.cuts = 1;
  objects_.on_read = [&, reads = 0](const std::string& key) mutable {
    if (++reads == 2) objects_.put(key, "another version");
  };
  const auto verified = download(store_, before, file_.number());
  ASSERT_FALSE(verified.ok());
  EXPECT_EQ(verified.status().code(), StatusCode::kNotFound);
}

TEST_F(DownloadTest, SaysWhatIsNotVerified) {
  objects_.has_etags_of_content = false;
  objects_.damaged_reads = 1;
  const auto verified = download(store_, object(), file_.number());
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  EXPECT_FALSE(verified.value());
}

TEST_F(DownloadTest, AnObjectOfNothingIsAnEmptyFile) {
  objects_.put("a/model.onnx", "");
  ASSERT_EQ(::pwrite(file_.number(), "x", 1, 0), 1);
  ASSERT_TRUE(download(store_, object(), file_.number()).ok());
  EXPECT_EQ(text(), "");
}

TEST_F(DownloadTest, AFullDiskIsNamed) {
  const Descriptor full(::open("/dev/full", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  const auto verified = download(store_, object(), full.number());
  ASSERT_FALSE(verified.ok());
  EXPECT_EQ(verified.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(verified.status().message().find("make room"), std::string::npos) << verified.status().message();
}

}  // namespace
}  // namespace foliot
