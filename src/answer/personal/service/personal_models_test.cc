#include "answer/personal/service/personal_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <limits>
#include <thread>

#include "answer/personal/items/test_items.h"
#include "answer/personal/service/personal_metrics.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Items 0, 10, 20 ... 490 of 8 features.
class PersonalModelsTest : public ::testing::Test {
 protected:
  void write_model(const std::string& text = "[exploration]\nname = \"greedy\"\npool = 0\n") {
    std::filesystem::create_directories(repository() / "movies" / "1");
    std::ofstream(repository() / "movies" / "personal.toml") << text;
    drawn_items(repository() / "movies" / "1", 8, 50);
    std::filesystem::rename(repository() / "movies/1/items", repository() / "movies/1/items.features");
  }
  // A version with a table of fewer items.
  void write_version(const std::string& name, size_t items) {
    const std::filesystem::path version = repository() / "movies" / name;
    std::filesystem::create_directories(version);
    drawn_items(version, 8, items);
    std::filesystem::rename(version / "items", version / "items.features");
  }
  Status open() {
    models_ = std::make_unique<PersonalModels>(
        PersonalModels::Options{.now = monotonic_now,
                                .on_failure = [this](const std::string& line) { failure_ = line; }},
        catalog_);
    return models_->open(scan_personal(repository()).value(), folder_.path / "observations");
  }
  std::filesystem::path repository() const { return folder_.path / "repository"; }

  PersonalCall call() const { return {.model = "movies", .arrival = monotonic_now()}; }
  // Waits for the answer.
  PersonalResult result_of(const std::function<void(PersonalDone)>& start) {
    auto result = std::make_shared<std::promise<PersonalResult>>();
    start([result](PersonalResult given) { result->set_value(std::move(given)); });
    return result->get_future().get();
  }
  PersonalResult predict(const PersonalCall& given, std::vector<UserItem> pairs) {
    return result_of([&](PersonalDone done) { models_->predict(given, std::move(pairs), std::move(done)); });
  }
  PersonalResult observe(const PersonalCall& given, std::vector<ItemObservation> observations) {
    return result_of([&](PersonalDone done) { models_->observe(given, std::move(observations), std::move(done)); });
  }
  PersonalResult top_k(const PersonalCall& given, TopKQuery query) {
    return result_of([&](PersonalDone done) { models_->top_k(given, std::move(query), std::move(done)); });
  }
  float prediction(uint64_t user, uint64_t item) {
    return std::get<PersonalAnswer>(predict(call(), {{user, item}})).predictions.at(0);
  }

  TestFolder folder_{"personal_models"};
  Catalog catalog_;
  std::string failure_;
  std::unique_ptr<PersonalModels> models_;
};

TEST_F(PersonalModelsTest, LearnsFromTheNextRequestOn) {
  write_model();
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kReady);
  EXPECT_EQ(catalog_.find("movies")->version, "1");
  EXPECT_EQ(prediction(7, 20), 0);
  const auto answer = std::get<PersonalAnswer>(observe(call(), {{7, 20, 3, 1}, {8, 20, -3, 1}, {7, 20, 3, 2}}));
  EXPECT_EQ(answer.version, "1");
  EXPECT_GT(prediction(7, 20), 0);
  EXPECT_LT(prediction(8, 20), 0);
  const auto lists = std::get<PersonalAnswer>(top_k(call(), {.users = {7, 8}, .k = 3})).lists;
  ASSERT_EQ(lists.size(), 2U);
  ASSERT_EQ(lists[0].slots.size(), 3U);
  EXPECT_NE(lists[0].slots[0].item, lists[1].slots[0].item);
  const auto statistics = models_->statistics();
  ASSERT_EQ(statistics.size(), 1U);
  EXPECT_EQ(statistics[0].counters->observations, 3U);
  EXPECT_EQ(statistics[0].counters->top_ks, 1U);
  EXPECT_EQ(statistics[0].counters->waiting, 0U);
  models_->drain();
  EXPECT_TRUE(models_->wait_until_answered(Duration::seconds(60)));
}

TEST_F(PersonalModelsTest, ARetryCountsOnceAndARestartKeepsAll) {
  write_model();
  ASSERT_TRUE(open().ok());
  observe(call(), {{7, 20, 3, 1}});
  const float once = prediction(7, 20);
  observe(call(), {{7, 20, 3, 1}});
  EXPECT_EQ(prediction(7, 20), once);
  models_.reset();
  ASSERT_TRUE(open().ok());
  EXPECT_FLOAT_EQ(prediction(7, 20), once);
  result_of([&](PersonalDone done) { models_->forget(call(), {7}, std::move(done)); });
  EXPECT_EQ(prediction(7, 20), 0);
}

TEST_F(PersonalModelsTest, ErrorsAreThoseOfTheModel) {
  write_model("[limits]\nobservations_per_user = 2\n");
  ASSERT_TRUE(open().ok());
  const auto error = [](const PersonalResult& result) { return std::get<CallError>(result); };
  EXPECT_EQ(error(predict(call(), {{7, 21}})).http_status, 404U);
  EXPECT_EQ(error(top_k(call(), {.users = {7}, .k = 0})).http_status, 400U);
  EXPECT_EQ(error(top_k(call(), {.users = {7}, .items = {10, 10}, .k = 1})).http_status, 400U);
  EXPECT_EQ(error(observe(call(), {{7, 21, 3, 1}})).http_status, 404U);
  EXPECT_EQ(error(observe(call(), {{7, 20, std::numeric_limits<double>::infinity(), 1}})).http_status, 400U);
  EXPECT_EQ(error(observe(call(), {{7, 20, 1, 1}, {7, 20, 1, 2}, {7, 20, 1, 3}})).http_status, 507U);
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(observe(call(), {{7, 20, 1e300, 1}}))) << "it is clipped";
  PersonalCall other = call();
  other.model = "books";
  EXPECT_EQ(error(predict(other, {{7, 20}})).http_status, 404U);
  models_->drain();
  EXPECT_TRUE(models_->wait_until_answered(Duration::seconds(60)));
}

TEST_F(PersonalModelsTest, ADeadlineThatHasPassedIsRefused) {
  write_model();
  ASSERT_TRUE(open().ok());
  PersonalCall late = call();
  late.deadline = late.arrival - Duration::milliseconds(1);
  EXPECT_EQ(std::get<CallError>(predict(late, {{7, 20}})).reason, "unmeetable");
  EXPECT_EQ(std::get<CallError>(observe(late, {{7, 20, 3, 1}})).reason, "unmeetable");
  EXPECT_EQ(prediction(7, 20), 0) << "it was not recorded";
  models_->drain();
  EXPECT_EQ(std::get<CallError>(predict(call(), {{7, 20}})).reason, "draining");
}

TEST_F(PersonalModelsTest, TheLimitsOfAKeyHold) {
  write_model();
  ASSERT_TRUE(open().ok());
  PersonalCall limited = call();
  limited.tenant = std::make_shared<Tenant>("app", KeyLimits{.requests_per_second = 1, .requests_in_flight = {}});
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(observe(limited, {{7, 20, 3, 1}, {7, 20, 3, 2}})));
  EXPECT_EQ(std::get<CallError>(observe(limited, {{7, 20, 3, 3}})).http_status, 429U);
  EXPECT_EQ(limited.tenant->statistics().in_flight, 0U);
}

TEST_F(PersonalModelsTest, TakesTheNewestVersionAndKeepsTheOneBefore) {
  write_model();
  ASSERT_TRUE(open().ok());
  write_version("2", 40);
  EXPECT_TRUE(models_->load("movies").ok());
  EXPECT_EQ(catalog_.find("movies")->version, "2");
  EXPECT_EQ(std::get<PersonalAnswer>(predict(call(), {{7, 20}})).version, "2");
  std::filesystem::create_directories(repository() / "movies/3");
  std::ofstream(repository() / "movies/3/items.features") << "nothing";
  EXPECT_THAT(models_->load("movies").message(), HasSubstr("version 3 is not taken"));
  EXPECT_EQ(catalog_.find("movies")->version, "2");
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kReady);
  EXPECT_THAT(catalog_.find("movies")->reason, HasSubstr("version 3 is not taken"));
  EXPECT_EQ(models_->load("books").code(), StatusCode::kNotFound);
  models_.reset();
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(catalog_.find("movies")->version, "2");
  EXPECT_THAT(failure_, HasSubstr("version 3 is not taken"));
}

TEST_F(PersonalModelsTest, AVersionThatWasKeptAsideIsNotServedAfterARestart) {
  write_model();
  ASSERT_TRUE(open().ok());
  observe(call(), {{7, 20, 3, 1}});
  write_version("2", 40);
  std::ofstream(repository() / "movies/2/training.json") << R"({"log_number": 1, "lambda": 1, "withholds": true})";
  EXPECT_THAT(models_->load("movies").message(), HasSubstr("version 2 is kept aside"));
  for (int restart = 0; restart < 2; ++restart) {
    models_.reset();
    failure_.clear();
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(catalog_.find("movies")->version, "1");
    EXPECT_THAT(catalog_.find("movies")->reason, HasSubstr("version 2 is kept aside"));
    EXPECT_THAT(failure_, HasSubstr("version 2 is kept aside"));
  }
}

// What operators ask for.
class PersonalVersionsTest : public PersonalModelsTest {
 protected:
  PersonalVersionsTest() {
    write_model();
    EXPECT_TRUE(open().ok());
  }
  void write_trained(const std::string& name) {
    write_version(name, 40);
    std::ofstream(repository() / "movies" / name / "training.json")
        << R"({"log_number": 1, "lambda": 1, "withholds": true})";
  }
  void restart() {
    models_.reset();
    failure_.clear();
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(failure_, "");
  }
  std::string served() { return catalog_.find("movies")->version; }
  VersionList list() { return models_->versions("movies").value(); }
  std::string error(const VersionRequest& request) { return std::string(models_->load("movies", request).message()); }
};

TEST_F(PersonalVersionsTest, WhatAnOperatorTakesIsServedUntilThereIsANewerOne) {
  write_version("2", 40);
  ASSERT_TRUE(models_->load("movies").ok());
  EXPECT_EQ(list().before, "1");
  EXPECT_FALSE(list().is_chosen);
  ASSERT_EQ(error({.version = "1"}), "");
  EXPECT_EQ(served(), "1");
  EXPECT_EQ(list().before, "2");
  EXPECT_TRUE(list().is_chosen);
  EXPECT_THAT(models_->load("movies").message(), HasSubstr("version 2 is not taken: an operator took version 1"));
  restart();
  EXPECT_EQ(served(), "1");
  EXPECT_EQ(list().before, "2");
  write_version("3", 40);
  EXPECT_FALSE(list().is_chosen);
  ASSERT_TRUE(models_->load("movies").ok());
  EXPECT_EQ(served(), "3");
  ASSERT_EQ(error({.version = "3"}), "") << "it is served already, and stays";
  EXPECT_TRUE(list().is_chosen);
  EXPECT_EQ(list().before, "1");
}

TEST_F(PersonalVersionsTest, ARollbackIsNotUndone) {
  EXPECT_THAT(error({.roll_back = true}),
              HasSubstr("there is no version to go back to: none was served before version 1"));
  write_version("2", 40);
  ASSERT_TRUE(models_->load("movies").ok());
  restart();  // the version before is known afterwards
  ASSERT_EQ(error({.roll_back = true}), "");
  EXPECT_EQ(served(), "1");
  EXPECT_EQ(list().versions.at(1).reason, "it was rolled back to version 1");
  EXPECT_THAT(error({.roll_back = true}), HasSubstr("there is no version to go back to"));
  restart();
  EXPECT_EQ(served(), "1");
  EXPECT_THAT(error({.roll_back = true}), HasSubstr("there is no version to go back to"));
  ASSERT_TRUE(models_->watch(Duration::milliseconds(1)).ok());
  write_version("new", 40);
  std::filesystem::rename(repository() / "movies/new", repository() / "movies/3");
  while (served() != "3") std::this_thread::yield();  // a newer one is taken
}

TEST_F(PersonalVersionsTest, AVersionIsComparedAloneOrTakenWithoutComparison) {
  observe(call(), {{7, 20, 3, 1}});
  write_trained("2");
  EXPECT_THAT(error({.version = "2"}), HasSubstr("version 2 is not taken: version 2 is kept aside"));
  EXPECT_EQ(error({.version = "2", .take = false}), "") << "it is compared";
  VersionEntry second = list().versions.at(1);
  EXPECT_EQ(second.name, "2");
  EXPECT_THAT(second.reason, HasSubstr("is kept aside"));
  ASSERT_TRUE(second.comparison.has_value());
  EXPECT_EQ(second.comparison->with, "1");
  EXPECT_EQ(second.comparison->observations, 0u);
  EXPECT_EQ(served(), "1");
  EXPECT_FALSE(list().is_chosen);
  ASSERT_EQ(error({.version = "2", .compare = false}), "");
  EXPECT_EQ(served(), "2");
  EXPECT_EQ(list().versions.at(1).reason, "");
  EXPECT_THAT(error({.version = "2", .take = false}), HasSubstr("version 2 is served"));
}

TEST_F(PersonalVersionsTest, WhatCannotBeAskedForIsNamed) {
  write_version("2", 40);
  EXPECT_THAT(error({.version = "9"}), HasSubstr("has no version '9'; it has: 1, 2"));
  EXPECT_THAT(error({.version = ".."}), HasSubstr("has no version '..'"));
  EXPECT_THAT(error({.version = "2", .roll_back = true}), HasSubstr("'roll_back' goes alone"));
  EXPECT_THAT(error({.compare = false, .take = false}), HasSubstr("'take' and 'compare' are both false"));
  EXPECT_THAT(error({.unknown = "rollback"}),
              HasSubstr("'rollback' is unknown: a load of a personal model has 'version', 'compare', 'take' and"));
  EXPECT_EQ(served(), "1");
  EXPECT_EQ(models_->versions("books").status().code(), StatusCode::kNotFound);
  std::filesystem::remove_all(repository() / "movies/2");
  std::filesystem::create_directories(repository() / "movies/2");
  EXPECT_THAT(error({.version = "2"}), HasSubstr("version 2 is not taken"));
  EXPECT_NE(list().versions.at(1).reason, "");
}

// Each has a folder of its own for observations, and both the models'.
TEST_F(PersonalVersionsTest, FrontEndsThatShareUsersFollowWhatOneWasAskedToTake) {
  models_.reset();
  write_version("2", 40);
  Catalog catalogs[2];
  std::unique_ptr<PersonalModels> both[2];
  const auto start = [&](size_t i) {
    both[i] = std::make_unique<PersonalModels>(
        PersonalModels::Options{
            .seed = i, .is_shared = true, .now = monotonic_now, .choices_interval = Duration::milliseconds(1)},
        catalogs[i]);
    ASSERT_TRUE(both[i]->open(scan_personal(repository()).value(), folder_.path / std::to_string(i)).ok());
  };
  const auto version = [&](size_t i) { return catalogs[i].find("movies")->version; };
  const auto before = [&](size_t i) { return both[i]->versions("movies")->before; };
  start(0);
  start(1);
  EXPECT_EQ(version(0) + version(1), "22");
  ASSERT_TRUE(both[0]->load("movies", {.version = "1"}).ok());
  while (version(1) != "1" || before(1) != "2") std::this_thread::yield();
  ASSERT_TRUE(both[1]->load("movies", {.roll_back = true}).ok());
  while (version(0) != "2" || !before(0).empty()) std::this_thread::yield();
  both[0].reset();
  ASSERT_TRUE(both[1]->load("movies", {.version = "1"}).ok());
  start(0);
  EXPECT_EQ(version(0), "1") << "it was away";
  write_version("3", 40);
  ASSERT_TRUE(both[0]->load("movies").ok());
  EXPECT_EQ(version(0) + version(1), "31") << "each takes newer versions by its own load call";
}

TEST_F(PersonalModelsTest, ABrokenModelIsShownAsUnavailable) {
  write_model("lambda = 0\n");
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kUnavailable);
  EXPECT_THAT(catalog_.find("movies")->reason, HasSubstr("personal.toml:1"));
  EXPECT_THAT(failure_, HasSubstr("personal model 'movies' cannot be served"));
  EXPECT_EQ(std::get<CallError>(predict(call(), {{7, 20}})).http_status, 503U);
}

// As on a disk that was full and has room again.
TEST_F(PersonalModelsTest, WhatCouldNotBeOpenedIsTriedAgain) {
  write_model();
  const std::filesystem::path in_the_way = folder_.path / "observations/movies/lock";
  std::filesystem::create_directories(in_the_way);
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kUnavailable);
  EXPECT_THAT(failure_, HasSubstr("it is tried again"));
  EXPECT_EQ(models_->load("movies").code(), StatusCode::kInternal);
  std::filesystem::remove(in_the_way);
  ASSERT_TRUE(models_->load("movies").ok());
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kReady);
  observe(call(), {{7, 20, 3, 1}});
  EXPECT_GT(prediction(7, 20), 0);
}

TEST_F(PersonalModelsTest, WhatCouldNotBeOpenedIsTriedAgainByItself) {
  write_model();
  const std::filesystem::path in_the_way = folder_.path / "observations/movies/lock";
  std::filesystem::create_directories(in_the_way);
  models_ = std::make_unique<PersonalModels>(
      PersonalModels::Options{.now = monotonic_now, .retry_interval = Duration::milliseconds(1)}, catalog_);
  ASSERT_TRUE(models_->open(scan_personal(repository()).value(), folder_.path / "observations").ok());
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kUnavailable);
  std::filesystem::remove(in_the_way);
  while (catalog_.find("movies")->state != ModelState::kReady) std::this_thread::yield();
  EXPECT_EQ(prediction(7, 20), 0);
}

TEST_F(PersonalModelsTest, UsersMayBeInAStore) {
  const std::string greedy = "[exploration]\nname = \"greedy\"\npool = 0\n";
  const std::filesystem::path store = folder_.path / "observations/movies/users";
  write_model(greedy + "[limits]\nusers_memory = \"32MiB\"\n");
  ASSERT_TRUE(open().ok());
  EXPECT_TRUE(std::filesystem::exists(store / "CURRENT"));
  ASSERT_TRUE(std::holds_alternative<PersonalAnswer>(observe(call(), {{7, 20, 3, 1}})));
  const float once = prediction(7, 20);
  models_.reset();
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(models_->statistics().at(0).memory->in_store, 1u);
  EXPECT_EQ(prediction(7, 20), once);
  EXPECT_EQ(models_->statistics().at(0).memory->misses, 1u);
  EXPECT_THAT(PersonalMetrics(*models_).text(),
              AllOf(HasSubstr("foliot_personal_users_in_memory{model=\"movies\"} 1"),
                    HasSubstr("foliot_personal_users_in_store{model=\"movies\"} 0"),
                    HasSubstr("foliot_personal_user_misses_total{model=\"movies\"} 1")));
  EXPECT_EQ(failure_, "");
  models_.reset();
  std::ofstream(store / "CURRENT") << "no manifest";
  ASSERT_TRUE(open().ok());
  EXPECT_THAT(failure_, HasSubstr("personal model 'movies': the store of users is filled anew from the log"));
  EXPECT_FLOAT_EQ(prediction(7, 20), once);
  models_.reset();
  write_model(greedy);
  ASSERT_TRUE(open().ok());
  EXPECT_FALSE(std::filesystem::exists(store)) << "it may have users that will be forgotten";
  EXPECT_FLOAT_EQ(prediction(7, 20), once);
  EXPECT_FALSE(models_->statistics().at(0).memory.has_value());
}

TEST_F(PersonalModelsTest, AFolderThatCannotBeMadeIsAnError) {
  write_model();
  std::ofstream(folder_.path / "observations") << "a file";
  EXPECT_THAT(open().message(), HasSubstr("--observations"));
}

}  // namespace
}  // namespace foliot
