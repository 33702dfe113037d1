#include "foundation/store/log_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/store/simulated_storage.h"
#include "foundation/store/test_records.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogFilesTest : public testing::Test {
 protected:
  Result<LogFiles> open() {
    reader_ = TextReader();
    return LogFiles::open(storage_, 7, reader_);
  }
  // A batch of records "first" to "last", in a new file.
  static LogBatch batch(uint64_t synced, uint64_t first, uint64_t last, bool begins_file = true) {
    LogBatch batch{.first = first, .synced = synced, .begins_file = begins_file};
    for (uint64_t number = first; number <= last; ++number) {
      const std::string text = std::to_string(number);
      batch.lengths.push_back(static_cast<uint32_t>(text.size()));
      for (const char c : text) batch.bytes.push_back(static_cast<std::byte>(c));
    }
    return batch;
  }
  std::string last_file() { return storage_.list().value().back(); }

  SimulatedStorage storage_;
  TextReader reader_;
};

TEST_F(LogFilesTest, ReadsWhatWasWritten) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 2)).ok());
  ASSERT_TRUE(files.write(batch(2, 3, 3, false)).ok());
  ASSERT_TRUE(files.write(batch(3, 4, 4)).ok());
  EXPECT_EQ(open()->last(), 4u);
  EXPECT_THAT(reader_.records, ElementsAre("1", "2", "3", "4"));
}

TEST_F(LogFilesTest, CutsOffATornTail) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 3)).ok());
  storage_.truncate(last_file(), storage_.read(last_file())->size() - 1);
  LogFiles again = open().value();
  EXPECT_THAT(reader_.records, ElementsAre("1", "2"));
  EXPECT_EQ(again.torn_bytes(), kFrameHeaderBytes);
  // What comes next has the number of the one that was cut off.
  ASSERT_TRUE(again.write(batch(2, 3, 3)).ok());
  EXPECT_EQ(open()->torn_bytes(), 0u);
  EXPECT_THAT(reader_.records, ElementsAre("1", "2", "3"));
}

TEST_F(LogFilesTest, DamageInFrontOfWhatLastedIsAnErrorThatNamesFileAndOffset) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 2)).ok());
  ASSERT_TRUE(files.write(batch(2, 3, 3, false)).ok());
  storage_.flip(last_file(), kLogHeaderBytes + kFrameHeaderBytes + 1 + 3, 0);  // in record 2
  EXPECT_THAT(open().status().message(), HasSubstr(last_file() + ": damaged at offset 73: record 2 is invalid"));
  EXPECT_THAT(reader_.records, ElementsAre("1"));  // what is before it is kept
}

TEST_F(LogFilesTest, AMissingFileIsAnError) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 2)).ok());
  const std::string first = last_file();
  ASSERT_TRUE(files.write(batch(2, 3, 3)).ok());
  ASSERT_TRUE(storage_.remove(first).ok());
  EXPECT_THAT(open().status().message(), HasSubstr("records 1 to 2 before it are missing"));
}

TEST_F(LogFilesTest, RecordsOfARefusedBatchDoNotComeBackBetweenLaterOnes) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 1)).ok());
  storage_.set_faults({.failed_sync = 1});
  EXPECT_FALSE(files.write(batch(1, 2, 2, false)).ok());
  storage_.set_faults({});
  ASSERT_TRUE(files.write(batch(1, 3, 3)).ok());
  ASSERT_TRUE(open().ok());
  EXPECT_THAT(reader_.records, ElementsAre("1", "3"));
}

TEST_F(LogFilesTest, ASnapshotReplacesTheFilesBeforeIt) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 2)).ok());
  const std::string first = last_file();
  ASSERT_TRUE(files.write(batch(2, 3, 3)).ok());
  ASSERT_TRUE(files.begin_snapshot(3).ok());
  ASSERT_TRUE(files.add_to_snapshot(bytes_of("1+2+3")).ok());
  ASSERT_TRUE(files.finish_snapshot().ok());
  EXPECT_THAT(*storage_.list(), testing::Not(testing::Contains(first)));
  ASSERT_TRUE(files.write(batch(3, 4, 4, false)).ok());
  EXPECT_EQ(open()->last(), 4u);
  EXPECT_THAT(reader_.pieces, ElementsAre("1+2+3"));
  EXPECT_THAT(reader_.records, ElementsAre("4"));
}

TEST_F(LogFilesTest, WhatWasWrittenDuringASnapshotIsKept) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 2)).ok());
  ASSERT_TRUE(files.begin_snapshot(2).ok());
  ASSERT_TRUE(files.write(batch(2, 3, 3)).ok());
  ASSERT_TRUE(files.write(batch(3, 4, 4)).ok());
  ASSERT_TRUE(files.add_to_snapshot(bytes_of("1+2")).ok());
  ASSERT_TRUE(files.finish_snapshot().ok());
  ASSERT_TRUE(open().ok());
  EXPECT_THAT(reader_.pieces, ElementsAre("1+2"));
  EXPECT_THAT(reader_.records, ElementsAre("3", "4"));
}

TEST_F(LogFilesTest, ASnapshotOfEverythingReplacesAllFiles) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 2)).ok());
  ASSERT_TRUE(files.begin_snapshot(2).ok());
  ASSERT_TRUE(files.add_to_snapshot(bytes_of("1+2")).ok());
  ASSERT_TRUE(files.finish_snapshot().ok());
  EXPECT_EQ(storage_.list()->size(), 1u);
  ASSERT_TRUE(files.write(batch(2, 3, 3, false)).ok());
  EXPECT_EQ(open()->last(), 3u);
  EXPECT_THAT(reader_.pieces, ElementsAre("1+2"));
  EXPECT_THAT(reader_.records, ElementsAre("3"));
}

// What is written last may not be synced yet: only what a later record says lasts is read beside the writer.
TEST_F(LogFilesTest, ReadsWhatLastsBesideTheWriter) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.write(batch(0, 1, 2)).ok());
  ASSERT_TRUE(files.write(batch(2, 3, 4)).ok());
  ASSERT_TRUE(files.write(batch(4, 5, 5, false)).ok());
  const std::vector<std::string> names = *storage_.list();
  reader_ = TextReader();
  EXPECT_EQ(*LogFiles::read_lasting(storage_, reader_), 4u);
  EXPECT_THAT(reader_.records, ElementsAre("1", "2", "3", "4"));
  EXPECT_EQ(*storage_.list(), names);
  ASSERT_TRUE(files.write(batch(5, 6, 6, false)).ok());  // it goes on
  reader_ = TextReader();
  EXPECT_EQ(*LogFiles::read_lasting(storage_, reader_), 5u);
}

TEST_F(LogFilesTest, ADamagedSnapshotIsAnError) {
  LogFiles files = open().value();
  ASSERT_TRUE(files.begin_snapshot(0).ok());
  ASSERT_TRUE(files.add_to_snapshot(bytes_of("state")).ok());
  ASSERT_TRUE(files.finish_snapshot().ok());
  storage_.flip(last_file(), kLogHeaderBytes + kFrameHeaderBytes, 3);
  EXPECT_THAT(open().status().message(), HasSubstr(last_file() + ": damaged at offset 48"));
}

}  // namespace
}  // namespace foliot
