#include "answer/versions/served_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/inference/served_names.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServedVersionsTest : public testing::Test {
 protected:
  static std::shared_ptr<const ModelInfo> info(const std::string& name, const std::string& version) {
    auto made = std::make_shared<ModelInfo>();
    made->name = name;
    made->version = version;
    return made;
  }
  void ready(const std::string& version) {
    const std::string name = versioned_name("m", version);
    catalog_.put({name, version, ModelState::kReady, {}, info(name, version)});
  }
  void set(const std::string& version, ModelState state, const std::string& reason = {}, bool wanted = true) {
    catalog_.put({versioned_name("m", version), version, state, reason, nullptr, wanted});
  }
  std::string answers(const std::string& version = {}, const std::string& key = {}) {
    const auto chosen = names_.choose_version("m", version, key);
    if (!chosen.ok()) return chosen.status().message();
    const auto found = names_.find(chosen->entry == nullptr ? "m" : chosen->entry->name, "");
    return found.ok() ? (*found)->name : found.status().message();
  }

  Catalog catalog_;
  ServedVersions versions_{catalog_};
  ServedNames names_{catalog_};
};

TEST_F(ServedVersionsTest, TheHighestThatIsReadyAnswers) {
  set("1", ModelState::kLoading);
  EXPECT_THAT(answers(), HasSubstr("model 'm' is not ready: LOADING"));
  ready("1");
  set("3", ModelState::kLoading);
  EXPECT_EQ(answers(), "m/1");
  ready("3");
  EXPECT_EQ(answers(), "m/3");
  EXPECT_EQ(answers("1"), "m/1");
  EXPECT_EQ(answers("4"), "version 4 of model 'm' is not served; served are 1 and 3");
  const auto all = names_.find_all("m");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 2);
}

TEST_F(ServedVersionsTest, AVersionThatLeavesIsNotAsked) {
  ready("1");
  ready("3");
  set("3", ModelState::kUnloading, {}, false);
  EXPECT_EQ(answers(), "m/1");
  EXPECT_EQ(answers("3"), "version 3 of model 'm' is not served; served is 1");
  catalog_.remove("m/3");
  catalog_.remove("m/1");
  EXPECT_EQ(catalog_.find("m"), nullptr);
}

TEST_F(ServedVersionsTest, ALabelThatMovesWaitsForItsVersion) {
  ready("1");
  versions_.set_rules("m", {.labels = {{"stable", 1}}});
  EXPECT_EQ(answers("stable"), "m/1");
  set("3", ModelState::kLoading);
  versions_.set_rules("m", {.labels = {{"stable", 3}}});
  EXPECT_EQ(answers("stable"), "m/1");
  ready("3");
  EXPECT_EQ(answers("stable"), "m/3");
}

TEST_F(ServedVersionsTest, ASplitIsGoneAroundWhereAVersionIsNotReady) {
  ready("1");
  set("3", ModelState::kLoading);
  versions_.set_rules("m", {.split = {{3, 100}}});
  EXPECT_EQ(answers(), "m/1");
  ready("3");
  EXPECT_EQ(answers(), "m/3");
  EXPECT_EQ(answers("1"), "m/1");
}

TEST_F(ServedVersionsTest, TheCountOfASplitGoesOnWhenRulesChange) {
  ready("1");
  ready("3");
  versions_.set_rules("m", {.split = {{3, 5}, {1, 95}}});
  int canaries = 0;
  for (int i = 0; i < 40; ++i) canaries += answers() == "m/3" ? 1 : 0;
  versions_.set_rules("m", {.labels = {{"canary", 3}}, .split = {{3, 5}, {1, 95}}});
  for (int i = 40; i < 100; ++i) canaries += answers() == "m/3" ? 1 : 0;
  EXPECT_EQ(canaries, 5);
}

TEST_F(ServedVersionsTest, OneVersionAloneAndSeveralTakeTheNameFromEachOther) {
  catalog_.put({"m", "3", ModelState::kReady, {}, info("m", "3")});
  ready("1");
  EXPECT_EQ(answers(), "m");  // it is higher
  ready("3");
  EXPECT_EQ(answers(), "m/3");
  catalog_.put({"m", "3", ModelState::kReady, {}, info("m", "3")});
  EXPECT_EQ(answers(), "m");
  set("1", ModelState::kUnloading, {}, false);
  EXPECT_EQ(answers(), "m");
  catalog_.remove("m/1");
  catalog_.remove("m/3");
  EXPECT_EQ(answers(), "m");
}

TEST_F(ServedVersionsTest, WhatIsTakenOutOfTheSplitStaysOutUntilTheRulesChange) {
  ready("1");
  ready("3");
  const VersionRules rules{.labels = {{"canary", 3}}, .split = {{1, 95}, {3, 5}}};
  versions_.set_rules("m", rules);
  versions_.take_out("m", 3, "it fails");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(answers(), "m/1");
  EXPECT_EQ(answers("canary"), "m/3");
  EXPECT_THAT(catalog_.find("m")->reason, HasSubstr("version 3: taken out of the split: it fails"));
  EXPECT_EQ(catalog_.find("m/3")->reason, "taken out of the split: it fails");
  ready("3");
  EXPECT_EQ(catalog_.find("m/3")->reason, "taken out of the split: it fails") << "it was loaded again";
  versions_.set_rules("m", rules);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(answers(), "m/1");
  versions_.set_rules("m", {.labels = {{"canary", 3}}, .split = {{1, 90}, {3, 10}}});
  int canaries = 0;
  for (int i = 0; i < 100; ++i) canaries += answers() == "m/3" ? 1 : 0;
  EXPECT_EQ(canaries, 10);
  EXPECT_EQ(catalog_.find("m/3")->reason, "");
}

TEST_F(ServedVersionsTest, WhatIsTakenOutGetsNothingOfAVersionThatIsNotReady) {
  for (const char* version : {"1", "2", "3"}) ready(version);
  versions_.set_rules("m", {.split = {{1, 50}, {2, 45}, {3, 5}}});
  versions_.take_out("m", 3, "it fails");
  set("1", ModelState::kUnavailable);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(answers(), "m/2");
  set("2", ModelState::kUnavailable);
  EXPECT_EQ(answers(), "m/3") << "there is no other";
}

TEST_F(ServedVersionsTest, AnotherRoleKeepsItsName) {
  catalog_.put({.name = "m", .version = "1", .reason = {}, .info = {}, .role = EntryRole::kApplication});
  ready("1");
  EXPECT_EQ(catalog_.find("m")->role, EntryRole::kApplication);
}

TEST_F(ServedVersionsTest, WhoAsksForTheNameAsksForItsVersions) {
  set("1", ModelState::kLoading);
  set("3", ModelState::kLoading);
  catalog_.take_asked();
  catalog_.ask_for("m");
  EXPECT_THAT(catalog_.take_asked(), ElementsAre("m/1", "m/3"));
}

}  // namespace
}  // namespace foliot
