#include "edge/requests/unknown_names.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "answer/model_calls/metrics.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class UnknownNamesTest : public ::testing::Test {
 protected:
  void note(NamePlace place, const std::string& name) {
    UnknownNamesOfRequest request;
    request.add(place, name);
    names_.note(request);
  }

  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  std::vector<std::string> log_;
  UnknownNames names_{
      [this](const std::string& line) { log_.push_back(line); },
      [this](std::string_view place, std::string_view name) { metrics_.count_unknown_name(place, name); }};
};

TEST_F(UnknownNamesTest, EachIsLoggedOnceAndCounted) {
  note(NamePlace::kParameter, "urgency");
  note(NamePlace::kParameter, "urgency");
  note(NamePlace::kBody, "urgency");
  EXPECT_THAT(log_, ElementsAre(HasSubstr("request parameter 'urgency'"), HasSubstr("request member 'urgency'")));
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("foliot_unknown_names_total{name=\"urgency\",place=\"request parameter\"} 2"));
  EXPECT_THAT(text, HasSubstr("foliot_unknown_names_total{name=\"urgency\",place=\"request member\"} 1"));
}

TEST_F(UnknownNamesTest, HostileNamesAreEscapedAndCut) {
  note(NamePlace::kParameter, "a\n\x1b[31m\"\\\xff" + std::string(100'000, 'x'));
  ASSERT_THAT(log_, SizeIs(1));
  EXPECT_THAT(log_[0], AllOf(HasSubstr("a\\x0a\\x1b[31m\"\\x5c\\xff"), HasSubstr("x..."), Not(HasSubstr("\n"))));
  EXPECT_LT(log_[0].size(), 400u);
  EXPECT_LT(metrics_.text().size(), 10'000u);
}

TEST_F(UnknownNamesTest, NamesBeyondTheFirstHundredAreOne) {
  for (int i = 0; i < 1000; ++i) note(NamePlace::kParameter, fmt::format("name{}", i));
  EXPECT_THAT(log_, SizeIs(UnknownNames::kNamesMax + 1));
  EXPECT_THAT(log_.back(), HasSubstr("(others)"));
  EXPECT_THAT(metrics_.text(),
              HasSubstr("foliot_unknown_names_total{name=\"(others)\",place=\"request parameter\"} 900"));
  note(NamePlace::kParameter, "name0");
  EXPECT_THAT(metrics_.text(), HasSubstr("foliot_unknown_names_total{name=\"name0\",place=\"request parameter\"} 2"));
}

}  // namespace
}  // namespace foliot
