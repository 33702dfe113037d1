#include "foundation/base/folder_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

namespace foliot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FolderListingTest : public ::testing::Test {
 protected:
  FolderListingTest() {
    std::string name = ::testing::TempDir() + "listingXXXXXX";
    root_ = mkdtemp(name.data());
    fs::create_directories(root_ / "folder");
    std::ofstream(root_ / "file") << "x";
    fs::create_symlink("itself", root_ / "itself");
    fs::create_symlink("nowhere", root_ / "to_nothing");
    fs::create_symlink("folder", root_ / "to_folder");
    fs::create_symlink("file", root_ / "to_file");
    mkfifo((root_ / "fifo").c_str(), 0600);
  }
  ~FolderListingTest() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(FolderListingTest, ListsEntriesThatLeadNowhere) {
  const auto entries = list_folder(root_);
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  EXPECT_THAT(*entries, ElementsAre(root_ / "fifo", root_ / "file", root_ / "folder", root_ / "itself",
                                    root_ / "to_file", root_ / "to_folder", root_ / "to_nothing"));
}

TEST_F(FolderListingTest, NamesAFolderThatCannotBeListed) {
  const auto none = list_folder(root_ / "none");
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), HasSubstr("none: No such file or directory"));
  const auto loop = list_folder(root_ / "itself");
  EXPECT_EQ(loop.status().code(), StatusCode::kInternal);
  EXPECT_THAT(loop.status().message(), HasSubstr("itself: Too many levels of symbolic links"));
}

TEST_F(FolderListingTest, DistinguishesFoldersAndFilesFromTheRest) {
  EXPECT_TRUE(*leads_to_folder(root_ / "folder"));
  EXPECT_TRUE(*leads_to_folder(root_ / "to_folder"));
  EXPECT_TRUE(*leads_to_file(root_ / "to_file"));
  for (const char* other : {"file", "fifo", "none"}) EXPECT_FALSE(*leads_to_folder(root_ / other)) << other;
  for (const char* other : {"folder", "fifo", "none", "to_nothing"})
    EXPECT_FALSE(*leads_to_file(root_ / other)) << other;
}

TEST_F(FolderListingTest, SaysWhyAnEntryCannotBeLookedAt) {
  EXPECT_THAT(leads_to_folder(root_ / "itself").status().message(), HasSubstr("itself: Too many levels"));
  EXPECT_THAT(leads_to_folder(root_ / "to_nothing").status().message(), HasSubstr("is a link that leads to nothing"));
  EXPECT_THAT(leads_to_file(root_ / "itself/model.onnx").status().message(), HasSubstr("Too many levels"));
  EXPECT_THAT(leads_to_file(root_ / "itself").status().message(), HasSubstr("itself: Too many levels"));
}

}  // namespace
}  // namespace foliot
