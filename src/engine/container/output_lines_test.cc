#include "engine/container/output_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foliot {
namespace {

class OutputLinesTest : public testing::Test {
 protected:
  void print(std::string_view text, Duration at = {}) {
    lines_.add(OutputLines::kStandardOutput, text, TimePoint() + at);
  }

  std::vector<std::string> seen_;
  OutputLines lines_{[this](std::string_view line) { seen_.emplace_back(line); }};
};

TEST_F(OutputLinesTest, LinesBelongToTheirStream) {
  print("one\ntwo ");
  lines_.add(OutputLines::kStandardError, "oh", TimePoint());
  print("is longer\r\n\n");
  EXPECT_EQ(seen_, (std::vector<std::string>{"one", "two is longer", ""}));
  lines_.finish(TimePoint());
  EXPECT_EQ(seen_.back(), "oh");
}

TEST_F(OutputLinesTest, WhatATerminalMightObeyIsEscaped) {
  print("\x1b[2J\xff\n");
  EXPECT_EQ(seen_[0], "\\x1b[2J\\xff");
}

TEST_F(OutputLinesTest, LongLinesAreCut) {
  print(std::string(3000, 'x'));
  print(std::string(3000, 'x') + "\nnext\n");
  EXPECT_EQ(seen_[0], std::string(OutputLines::kLineBytesMax, 'x') + " ...");
  EXPECT_EQ(seen_[1], "next");
}

TEST_F(OutputLinesTest, LinesAboveTheLimitAreCounted) {
  for (uint32_t i = 0; i < OutputLines::kLinesPerSecond + 5; ++i) print("x\n", Duration::milliseconds(i));
  EXPECT_EQ(seen_.size(), OutputLines::kLinesPerSecond);
  lines_.tick(TimePoint() + Duration::milliseconds(999));
  EXPECT_EQ(seen_.size(), OutputLines::kLinesPerSecond);
  print("later\n", Duration::seconds(1));
  ASSERT_EQ(seen_.size(), OutputLines::kLinesPerSecond + 2);
  EXPECT_EQ(seen_[OutputLines::kLinesPerSecond], "(5 lines dropped: more than 20 a second)");
  EXPECT_EQ(seen_.back(), "later");
}

TEST_F(OutputLinesTest, DroppedLinesAreCountedAtTheEnd) {
  for (uint32_t i = 0; i < OutputLines::kLinesPerSecond + 1; ++i) print("x\n");
  lines_.finish(TimePoint());
  EXPECT_EQ(seen_.back(), "(1 lines dropped: more than 20 a second)");
}

}  // namespace
}  // namespace foliot
