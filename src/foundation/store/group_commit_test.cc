#include "foundation/store/group_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/store/log_frame.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> record(size_t size) { return std::vector<std::byte>(size); }

TEST(GroupCommitTest, WhatComesDuringABatchIsTheNextOne) {
  GroupCommit commit(10, {});
  EXPECT_EQ(*commit.append(record(1)), 11u);
  LogBatch first = commit.begin().value();
  EXPECT_EQ(*commit.append(record(2)), 12u);
  EXPECT_EQ(*commit.append(record(3)), 13u);
  EXPECT_FALSE(commit.begin().has_value());  // one at a time
  commit.succeed(std::move(first));
  EXPECT_EQ(commit.synced(), 11u);
  const LogBatch second = commit.begin().value();
  EXPECT_EQ(second.first, 12u);
  EXPECT_EQ(second.last(), 13u);
  EXPECT_EQ(second.synced, 11u);
  EXPECT_EQ(second.bytes.size(), 5u);
}

TEST(GroupCommitTest, AFileBeginsFirstAfterAFailureAndWhenOneIsFull) {
  GroupCommit commit(0, {.file_bytes_max = 2 * (kFrameHeaderBytes + 100)});
  const auto next = [&commit] {
    EXPECT_TRUE(commit.append(record(100)).ok());
    return commit.begin().value();
  };
  LogBatch batch = next();
  EXPECT_TRUE(batch.begins_file);
  commit.succeed(std::move(batch));
  batch = next();
  EXPECT_FALSE(batch.begins_file);
  commit.fail(std::move(batch));
  EXPECT_EQ(commit.synced(), 1u);
  batch = next();
  EXPECT_TRUE(batch.begins_file);
  EXPECT_EQ(batch.first, 3u);  // the refused number is not used again
  commit.succeed(std::move(batch));
  batch = next();
  EXPECT_FALSE(batch.begins_file);
  commit.succeed(std::move(batch));
  EXPECT_TRUE(next().begins_file);
}

TEST(GroupCommitTest, RefusesBeyondItsLimits) {
  GroupCommit commit(0, {.records_max = 2, .bytes_max = 10});
  EXPECT_TRUE(commit.append(record(6)).ok());
  EXPECT_EQ(commit.append(record(5)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(*commit.append(record(4)), 2u);
  EXPECT_THAT(commit.append(record(0)).status().message(), HasSubstr("2 records of 10 bytes wait"));
  EXPECT_EQ(commit.append(record(kRecordBytesMax + 1)).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
