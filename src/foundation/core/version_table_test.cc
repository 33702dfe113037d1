#include "foundation/core/version_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(VersionTable, NamesAreTakenApartAgain) {
  EXPECT_EQ(versioned_name("digits", "3"), "digits/3");
  EXPECT_EQ(client_name("digits/3"), "digits");
  EXPECT_EQ(client_name("digits"), "digits");
}

TEST(VersionTable, AVersionIsAWholeNumber) {
  EXPECT_EQ(parse_version("12"), 12);
  for (const char* text : {"", "0", "01", "-1", "1.0", "stable", "1 ", "99999999999999999999"}) {
    EXPECT_FALSE(parse_version(text)) << text;
  }
}

TEST(VersionTable, ChoosesVersions) {
  const std::vector<uint64_t> there{1, 3, 4};
  EXPECT_THAT(choose_versions({}, there), ElementsAre(4));
  EXPECT_THAT(choose_versions({.latest = 2}, there), ElementsAre(3, 4));
  EXPECT_THAT(choose_versions({.latest = 9}, there), ElementsAre(1, 3, 4));
  EXPECT_THAT(choose_versions({.all = true}, there), ElementsAre(1, 3, 4));
  EXPECT_THAT(choose_versions({.listed = {1, 2, 3, 5}}, there), ElementsAre(1, 3));
}

TEST(VersionTable, FindsNumbersAndLabelsAndNamesWhatThereIs) {
  const VersionTable table{.versions = {1, 3}, .rules = {.labels = {{"canary", 3}, {"stable", 1}}}};
  EXPECT_EQ(*table.find("m", "3"), 3);
  EXPECT_EQ(*table.find("m", "stable"), 1);
  EXPECT_EQ(table.find("m", "4").status().message(), "version 4 of model 'm' is not served; served are 1 and 3");
  EXPECT_THAT(table.find("m", "beta").status().message(),
              HasSubstr("model 'm' has no label 'beta'; it has 'canary', 'stable'; served are the versions 1 and 3"));
  EXPECT_EQ(table.find("m", "4").status().code(), StatusCode::kNotFound);
}

TEST(VersionTable, OfEachHundredRequestsAVersionGetsItsShare) {
  const VersionTable table{.versions = {1, 3}, .rules = {.split = {{3, 5}, {1, 95}}}};
  for (int round = 0; round < 3; ++round) {
    std::map<uint64_t, int> counts;
    for (int request = 0; request < 100; ++request) ++counts[*table.pick("")];
    EXPECT_EQ(counts[3], 5);
    EXPECT_EQ(counts[1], 95);
  }
}

TEST(VersionTable, RequestsOfOneVersionAreFarApart) {
  const VersionTable table{.versions = {1, 3}, .rules = {.split = {{3, 5}, {1, 95}}}};
  for (int hundred = 0; hundred < 5; ++hundred) {
    int before = -100;
    for (int request = 0; request < 100; ++request) {
      if (*table.pick("") != 3) continue;
      EXPECT_GE(request - before, 10);
      before = request;
    }
  }
}

// A client that asks for the same 20 or 100 rows over and over.
TEST(VersionTable, NoRowOfALoopIsAlwaysOfOneVersion) {
  for (const int rows : {20, 100}) {
    const VersionTable table{.versions = {1, 3}, .rules = {.split = {{3, 5}, {1, 95}}}};
    std::map<int, int> canaries;
    for (int request = 0; request < 200 * rows; ++request) canaries[request % rows] += *table.pick("") == 3 ? 1 : 0;
    for (int row = 0; row < rows; ++row) EXPECT_NEAR(canaries[row], 10, 14) << "row " << row << " of " << rows;
  }
}

TEST(VersionTable, AKeyKeepsItsVersionWhileAShareGrows) {
  const VersionTable small{.versions = {1, 3}, .rules = {.split = {{3, 5}, {1, 95}}}};
  const VersionTable large{.versions = {1, 3}, .rules = {.split = {{3, 20}, {1, 80}}}};
  int canaries = 0;
  for (int user = 0; user < 20'000; ++user) {
    const std::string key = "user " + std::to_string(user);
    EXPECT_EQ(small.pick(key), small.pick(key));
    if (*small.pick(key) != 3) continue;
    ++canaries;
    EXPECT_EQ(*large.pick(key), 3);
  }
  EXPECT_NEAR(canaries, 1000, 100);  // 5 +- 0.5 %
}

TEST(VersionTable, WithoutASplitNothingIsPicked) { EXPECT_FALSE(VersionTable{.versions = {1}}.pick("")); }

}  // namespace
}  // namespace foliot
