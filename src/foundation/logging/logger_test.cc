#include "foundation/logging/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class LoggerTest : public ::testing::Test {
 protected:
  LoggerSink sink() {
    return [this](std::string_view line) { lines_.emplace_back(line); };
  }
  std::vector<std::string> lines_;
};

TEST_F(LoggerTest, WritesText) {
  Logger log({.part = "controller"}, sink());
  log.write(Severity::kWarning, "worker {} is gone");
  const std::string time = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z";
  EXPECT_THAT(lines_, ElementsAre(MatchesRegex(time + " warning controller: worker \\{\\} is gone\n")));
}

TEST_F(LoggerTest, WritesJson) {
  Logger log({.format = LoggerFormat::kJson, .part = "worker"}, sink());
  log.write(Severity::kError, "it said \"no\"\n\xff");
  ASSERT_EQ(lines_.size(), 1u);
  const auto line = nlohmann::json::parse(lines_.front());
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(line["part"], "worker");
  EXPECT_EQ(line["message"], "it said \"no\"\n\xef\xbf\xbd");
  EXPECT_EQ(line["time"].get<std::string>().size(), 24u);
}

TEST_F(LoggerTest, LeavesOutWhatIsLess) {
  Logger log({.level = Severity::kWarning, .part = "worker"}, sink());
  log.write(Severity::kDebug, "a");
  log.write(Severity::kInfo, "b");
  EXPECT_TRUE(lines_.empty());
  log.write(Severity::kWarning, "c");
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(LoggerTest, BytesFromOutsideBeginNoLine) {
  Logger log({.part = "frontend"}, sink());
  log.write(Severity::kInfo, "path /\r\n2026 error all is lost");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_.front(), testing::HasSubstr("/\\x0d\\x0a2026"));
}

TEST_F(LoggerTest, LeavesOutTheRestOfAFlood) {
  TimePoint now;
  Logger log({.part = "frontend", .lines_per_second_max = 3}, sink(), [&] { return now; });
  for (int i = 0; i < 10; ++i) log.write(Severity::kInfo, "flood");
  EXPECT_EQ(lines_.size(), 3u);
  now += Duration::seconds(1);
  log.write(Severity::kInfo, "after");
  ASSERT_EQ(lines_.size(), 5u);
  EXPECT_THAT(lines_[3], testing::HasSubstr("7 lines were left out here"));
}

}  // namespace
}  // namespace foliot
