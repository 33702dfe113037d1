#include "foundation/core/catalog.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

CatalogEntry entry(const std::string& name, ModelState state, bool wanted = true) {
  return {.name = name, .version = "1", .state = state, .reason = {}, .info = nullptr, .wanted = wanted};
}

// The server's start is over.
class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() { catalog_.set_ready(); }
  // Whether requests should come: by default, and strictly.
  std::pair<bool, bool> can_serve() const { return {catalog_.can_serve(false), catalog_.can_serve(true)}; }

  Catalog catalog_;
};

using Readiness = std::pair<bool, bool>;

TEST_F(CatalogTest, NothingIsServedBeforeTheStartIsOver) {
  catalog_.set_ready(false);
  EXPECT_EQ(can_serve(), Readiness(false, false));
  catalog_.put(entry("a", ModelState::kReady));
  EXPECT_EQ(can_serve(), Readiness(false, false));
  catalog_.set_ready();
  EXPECT_EQ(can_serve(), Readiness(true, true));
}

TEST_F(CatalogTest, WithoutModelsThereIsNothingThatCannotBeServed) { EXPECT_EQ(can_serve(), Readiness(true, true)); }

TEST_F(CatalogTest, OneServedModelIsEnoughUnlessAllAreAskedFor) {
  catalog_.put(entry("a", ModelState::kUnavailable));
  catalog_.put(entry("b", ModelState::kLoading));
  EXPECT_EQ(can_serve(), Readiness(false, false));
  catalog_.put(entry("b", ModelState::kReady));
  EXPECT_EQ(can_serve(), Readiness(true, false));
  catalog_.put(entry("a", ModelState::kReady));
  EXPECT_EQ(can_serve(), Readiness(true, true));
}

TEST_F(CatalogTest, WhatAClientUnloadedDoesNotCount) {
  catalog_.put(entry("a", ModelState::kReady));
  catalog_.put(entry("b", ModelState::kReady));
  catalog_.put(entry("a", ModelState::kUnloading, false));
  EXPECT_EQ(can_serve(), Readiness(true, true));
  catalog_.put(entry("a", ModelState::kUnavailable, false));
  catalog_.put(entry("b", ModelState::kUnavailable, false));
  EXPECT_EQ(can_serve(), Readiness(true, true));
  catalog_.put(entry("b", ModelState::kUnavailable));
  EXPECT_EQ(can_serve(), Readiness(false, false));
}

TEST_F(CatalogTest, WhatIsRemovedDoesNotCount) {
  catalog_.put(entry("a", ModelState::kReady));
  catalog_.put(entry("b", ModelState::kUnavailable));
  catalog_.remove("b");
  EXPECT_EQ(can_serve(), Readiness(true, true));
  catalog_.remove("b");
  catalog_.remove("a");
  EXPECT_EQ(can_serve(), Readiness(true, true));
  EXPECT_TRUE(catalog_.empty());
  catalog_.put(entry("c", ModelState::kUnavailable));
  EXPECT_EQ(can_serve(), Readiness(false, false));
}

TEST_F(CatalogTest, EntriesAreFoundByNameAndKeptByTheirReaders) {
  catalog_.put_all({entry("a", ModelState::kLoading), entry("b", ModelState::kLoading)});
  const Catalog::EntryPtr before = catalog_.find("a");
  const Catalog::Entries all = catalog_.snapshot();
  catalog_.put(entry("a", ModelState::kReady));
  catalog_.remove("b");
  EXPECT_EQ(before->state, ModelState::kLoading);
  EXPECT_EQ(all.size(), 2u);
  EXPECT_EQ(catalog_.find("a")->state, ModelState::kReady);
  EXPECT_EQ(catalog_.find("b"), nullptr);
}

TEST_F(CatalogTest, WhatClientsAskForIsTakenOnceInItsOrder) {
  catalog_.put_all({entry("a", ModelState::kLoading), entry("b", ModelState::kLoading)});
  catalog_.ask_for("b");
  catalog_.ask_for("a");
  catalog_.ask_for("b");
  catalog_.ask_for("no such model");
  EXPECT_EQ(catalog_.take_asked(), (std::vector<std::string>{"b", "a"}));
  EXPECT_TRUE(catalog_.take_asked().empty());
  catalog_.ask_for("b");
  EXPECT_EQ(catalog_.take_asked(), std::vector<std::string>{"b"});
}

TEST_F(CatalogTest, ChangesAreWatchedAndMayChangeOthers) {
  std::vector<std::string> changed;
  Catalog::Watch watch = catalog_.watch([&](const std::string& name, const Catalog::EntryPtr&) {
    changed.push_back(name);
    if (name == "a") catalog_.put(entry("of a", ModelState::kReady));
  });
  catalog_.put(entry("a", ModelState::kLoading));
  catalog_.remove("a");
  catalog_.remove("a");
  EXPECT_EQ(changed, (std::vector<std::string>{"a", "of a", "a", "of a"})) << "what was not there did not change";
  watch.reset();
  catalog_.put(entry("b", ModelState::kReady));
  EXPECT_EQ(changed.size(), 4u);
}

TEST_F(CatalogTest, SeveralWatchAndLearnWhatWasPut) {
  std::vector<std::string> changed;
  const auto watch = [&](const std::string& watcher) {
    return catalog_.watch([&changed, watcher](const std::string& name, const Catalog::EntryPtr& entry) {
      changed.push_back(watcher + ": " + name + " " + std::string(entry ? to_string(entry->state) : "removed"));
    });
  };
  Catalog::Watch first = watch("first");
  const Catalog::Watch second = watch("second");
  catalog_.put(entry("a", ModelState::kLoading));
  first.reset();
  const Catalog::Watch third = watch("third");
  catalog_.remove("a");
  EXPECT_EQ(changed, (std::vector<std::string>{"first: a LOADING", "second: a LOADING", "second: a removed",
                                               "third: a removed"}));
}

TEST_F(CatalogTest, AskingForWhatIsMadeOfModelsAsksForThese) {
  const auto made_of = [](const std::string& name, EntryRole role, std::vector<std::string> models) {
    CatalogEntry made = entry(name, ModelState::kLoading);
    made.role = role;
    made.models = std::move(models);
    return made;
  };
  catalog_.put_all({entry("a", ModelState::kLoading), entry("b", ModelState::kLoading),
                    entry("c", ModelState::kLoading),
                    made_of("pipeline", EntryRole::kPipeline, {"a", "none", "b", "pipeline"}),
                    made_of("application", EntryRole::kApplication, {"c", "pipeline"})});
  catalog_.ask_for("pipeline");
  EXPECT_EQ(catalog_.take_asked(), (std::vector<std::string>{"a", "b"}));
  catalog_.ask_for("application");
  EXPECT_EQ(catalog_.take_asked(), (std::vector<std::string>{"c", "a", "b"}));
}

}  // namespace
}  // namespace foliot
