#include "answer/personal/service/personal_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <latch>
#include <limits>
#include <set>
#include <thread>

#include "answer/personal/items/test_items.h"
#include "answer/personal/weights/cholesky.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/simulated_storage.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

// The answer of a call, once it is there.
class Written {
 public:
  PersonalModel::Done done() {
    return [this](const Status& status) {
      const std::lock_guard lock(mutex_);
      status_ = status;
      changed_.notify_all();
    };
  }
  Status wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return status_.has_value(); });
    return *status_;
  }
  bool is_there() {
    const std::lock_guard lock(mutex_);
    return status_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Status> status_;
};

class PersonalModelTest : public testing::Test {
 protected:
  Result<std::unique_ptr<PersonalModel>> try_open() {
    FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, DiskStorage::open(folder_.path / "state"));
    return PersonalModel::open(std::move(storage), {.items = items_}, options_);
  }
  std::unique_ptr<PersonalModel> open() {
    auto model = try_open();
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }
  static Status observe(PersonalModel& model, uint64_t user, std::vector<UserObservation> observations) {
    Written answer;
    FOLIOT_RETURN_IF_ERROR(model.observe(user, observations, answer.done()));
    return answer.wait();
  }
  static void wait_for_snapshots(PersonalModel& model, uint64_t count) {
    while (model.snapshots() < count) ::sched_yield();
  }

  const TestFolder folder_{"personal_model"};
  const std::shared_ptr<const ItemTable> items_ = drawn_items(folder_.path, 8, 100);
  PersonalModel::Options options_{.exploration = {.kind = ExplorationKind::kGreedy, .pool = 0}};
};

TEST_F(PersonalModelTest, LearnsFromTheNextRequestOn) {
  const auto model = open();
  EXPECT_EQ(model->predict(1, 10)->value, 0);
  std::vector<UserObservation> many;
  for (uint64_t id = 0; id < 200; ++id) many.push_back({id, 10, 2.5});
  ASSERT_TRUE(observe(*model, 1, many).ok());
  EXPECT_NEAR(model->predict(1, 10)->value, 2.5, 0.05);
  EXPECT_EQ(model->top_k(1, {}, 3)->places.size(), 3u);
  const std::vector<uint64_t> candidates = {20, 10};
  EXPECT_EQ(model->top_k(1, candidates, 1)->places.front().item, 10u);
}

TEST_F(PersonalModelTest, ListsAreKeptUntilTheUserChanges) {
  for (const ExplorationKind kind : {ExplorationKind::kGreedy, ExplorationKind::kLinucb, ExplorationKind::kThompson}) {
    options_.exploration.kind = kind;
    const auto model = open();
    const uint64_t user = 1 + static_cast<uint64_t>(kind);  // the log is that of the one before
    const auto items_shown = [&](size_t k) {
      std::vector<uint64_t> items;
      const TopK shown = model->top_k(user, {}, k).value();
      for (const ScoredItem& place : shown.places) items.push_back(place.item);
      return items;
    };
    const auto kept = [&] { return model->statistics().cached_lists; };
    ASSERT_TRUE(observe(*model, user, {{1, 10, 5}}).ok());
    const std::vector<uint64_t> first = items_shown(5);
    EXPECT_EQ(kept(), 0U);
    if (kind == ExplorationKind::kThompson) {
      items_shown(5);
      EXPECT_EQ(kept(), 0U) << "drawn anew";
      continue;
    }
    EXPECT_EQ(items_shown(5), first);
    EXPECT_EQ(kept(), 1U);
    EXPECT_EQ(items_shown(3).size(), 3U);
    EXPECT_EQ(model->top_k(user, std::vector<uint64_t>{10, 20}, 5)->places.size(), 2U);
    EXPECT_EQ(kept(), 1U) << "another list";
    ASSERT_TRUE(observe(*model, user, {{2, first[0], -50}}).ok());
    EXPECT_NE(items_shown(5), first) << "what is kept is of before";
    EXPECT_EQ(kept(), 1U);
  }
}

TEST_F(PersonalModelTest, StateOutlivesTheProcess) {
  float before = 0;
  {
    const auto model = open();
    ASSERT_TRUE(observe(*model, 1, {{1, 10, 1}, {2, 20, -1}}).ok());
    model->request_snapshot();
    wait_for_snapshots(*model, 1);
    ASSERT_TRUE(observe(*model, 1, {{3, 30, 2}}).ok());
    ASSERT_TRUE(observe(*model, 2, {{1, 10, 5}}).ok());
    before = model->predict(1, 40)->value;
  }
  const auto model = open();
  EXPECT_EQ(model->users(), 2u);
  EXPECT_EQ(model->observations(1).size(), 3u);
  EXPECT_NEAR(model->predict(1, 40)->value, before, 1e-6);
}

// Whichever users were read before, and in any order: known users, and one that is new.
TEST_F(PersonalModelTest, PredictionsAreTheSameAfterARestart) {
  constexpr uint64_t kPeople = 60;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::filesystem::path state = folder_.path / fmt::format("state_{}", seed);
    const auto open_again = [&] {
      return PersonalModel::open(DiskStorage::open(state).value(), {.items = items_}, options_).value();
    };
    auto model = open_again();
    uint64_t id = 0;
    for (int turn = 0; turn < 5; ++turn) {
      for (int i = 0; i < 150; ++i) {
        const uint64_t user = random.below(kPeople);
        ASSERT_TRUE(
            observe(*model, user, {{++id, 10 * random.below(100), static_cast<float>(3 + random.normal())}}).ok());
        if (random.below(2) == 0) model->predict(random.below(kPeople), 10).value();
        if (random.below(30) > 0) continue;
        Written forgotten;
        ASSERT_TRUE(model->forget(random.below(kPeople), forgotten.done()).ok());
        ASSERT_TRUE(forgotten.wait().ok());
      }
      if (turn % 2 == 0) {
        const uint64_t before = model->snapshots();
        model->request_snapshot();
        wait_for_snapshots(*model, before + 1);
      }
      std::vector<float> before;
      for (uint64_t user = 0; user <= kPeople; ++user) before.push_back(model->predict(user, 10 * user)->value);
      model.reset();
      model = open_again();
      for (uint64_t user = kPeople + 1; user-- > 0;) {
        ASSERT_NEAR(model->predict(user, 10 * user)->value, before[user], 1e-6 * std::max(1.0F, before[user])) << user;
      }
    }
    EXPECT_GT(std::abs(model->predict(kPeople, 10)->value), 0.1);
  }
}

TEST_F(PersonalModelTest, WhoIsForgottenIsInNoFileAfterASnapshot) {
  const uint64_t user = 0x1122334455667788;
  const auto is_in_files = [&] {
    std::string bytes;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path / "state")) {
      std::ifstream in(file.path(), std::ios::binary);
      bytes.append(std::istreambuf_iterator<char>(in), {});
    }
    return bytes.find(std::string("\x88\x77\x66\x55\x44\x33\x22\x11")) != std::string::npos;
  };
  const auto model = open();
  ASSERT_TRUE(observe(*model, user, {{1, 10, 1}}).ok());
  ASSERT_TRUE(observe(*model, 2, {{1, 10, 1}}).ok());
  Written answer;
  ASSERT_TRUE(model->forget(user, answer.done()).ok());
  ASSERT_TRUE(answer.wait().ok());
  EXPECT_TRUE(is_in_files());
  model->request_snapshot();
  wait_for_snapshots(*model, 1);
  EXPECT_FALSE(is_in_files());
  EXPECT_EQ(model->users(), 1u);
}

TEST_F(PersonalModelTest, RetriesAreHarmless) {
  auto model = open();
  ASSERT_TRUE(observe(*model, 1, {{7, 10, 1}, {8, 10, 1}}).ok());
  ASSERT_TRUE(observe(*model, 1, {{7, 10, 1}, {8, 10, 1}}).ok());
  ASSERT_TRUE(observe(*model, 1, {{8, 10, 1}, {9, 10, 1}}).ok());
  ASSERT_TRUE(observe(*model, 2, {{7, 10, 1}}).ok());  // ids are those of a user
  EXPECT_EQ(model->observations(1).size(), 3u);
  EXPECT_EQ(model->observations(2).size(), 1u);
  model.reset();
  EXPECT_EQ(open()->observations(1).size(), 3u);
}

TEST_F(PersonalModelTest, AForgottenUserIsGoneFromStateAndFiles) {
  options_.log.file_bytes_max = 1;  // each batch has a file of its own
  auto model = open();
  ASSERT_TRUE(observe(*model, 0x1234567890abcdef, {{7, 10, 1}}).ok());
  Written answer;
  ASSERT_TRUE(model->forget(0x1234567890abcdef, answer.done()).ok());
  ASSERT_TRUE(answer.wait().ok());
  EXPECT_EQ(model->users(), 0u);
  ASSERT_TRUE(observe(*model, 2, {{7, 10, 1}}).ok());
  model->request_snapshot();
  wait_for_snapshots(*model, 1);
  model.reset();
  const auto storage = DiskStorage::open(folder_.path / "state").value();
  const std::vector<std::string> names = storage->list().value();
  for (const std::string& name : names) {
    const std::vector<std::byte> bytes = storage->read(name).value();
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(text.find("\xef\xcd\xab\x90\x78\x56\x34\x12"), std::string::npos) << name;
  }
}

TEST_F(PersonalModelTest, BadInputIsRefusedByName) {
  options_.observations_per_user_max = 3;
  options_.value_max = 5;
  const auto model = open();
  const auto message = [&](std::vector<UserObservation> observations) {
    return observe(*model, 1, std::move(observations)).message();
  };
  EXPECT_THAT(message({{1, 11, 1}}), HasSubstr("item 11 is unknown"));
  EXPECT_THAT(message({{1, 10, std::numeric_limits<float>::quiet_NaN()}}), HasSubstr("value of item 10 is nan"));
  EXPECT_THAT(message({}), HasSubstr("0 observations in a call"));
  EXPECT_THAT(message(std::vector<UserObservation>(1001)), HasSubstr("1001 observations in a call: must be 1 to 1000"));
  EXPECT_THAT(message({{1, 10, 1}, {2, 10, 1}, {3, 10, 1}, {4, 10, 1}}), HasSubstr("over the limit of 3"));
  EXPECT_EQ(model->users(), 0u);
  EXPECT_EQ(message({{1, 10, 1e9F}, {2, 10, 5}}), "");  // clipped to 5
  EXPECT_LE(model->predict(1, 10)->value, 5);
  EXPECT_THAT(model->predict(1, 11).status().message(), HasSubstr("item 11 is unknown"));
  EXPECT_THAT(model->top_k(1, {}, 0).status().message(), HasSubstr("k = 0"));
  const std::vector<uint64_t> twice = {20, 10, 20};
  EXPECT_THAT(model->top_k(1, twice, 1).status().message(), HasSubstr("item 20 is named twice"));
  const std::vector<uint64_t> unknown = {20, 11};
  EXPECT_THAT(model->top_k(1, unknown, 1).status().message(), HasSubstr("item 11 is unknown"));
}

TEST_F(PersonalModelTest, WhatWaitsForTheDiskCountsForLimits) {
  options_.observations_per_user_max = 4;
  options_.users_max = 2;
  const auto model = open();
  std::latch is_held(1);
  std::latch may_go(1);
  const auto hold = [&](const Status&) {  // the log's thread
    is_held.count_down();
    may_go.wait();
  };
  ASSERT_TRUE(model->observe(1, std::vector<UserObservation>{{1, 10, 1}}, hold).ok());
  is_held.wait();
  Written last;
  const auto message = [&](uint64_t user, std::vector<UserObservation> observations, PersonalModel::Done done) {
    return model->observe(user, observations, std::move(done)).message();
  };
  const auto ignore = [](const Status&) {};
  EXPECT_EQ(message(2, {{1, 10, 1}, {2, 10, 1}, {3, 10, 1}}, ignore), "");
  EXPECT_EQ(message(2, {{4, 10, 1}, {5, 10, 1}}, ignore),
            "the user has 3 observations, and 2 more are over the limit of 4");
  EXPECT_EQ(message(3, {{1, 10, 1}}, ignore), "limit of 2 users reached; forget some");
  const std::string retried = message(2, {{1, 10, 1}, {2, 10, 1}, {3, 10, 1}, {4, 10, 1}}, last.done());
  may_go.count_down();
  ASSERT_EQ(retried, "") << "a retry counts once";
  EXPECT_TRUE(last.wait().ok());
  EXPECT_EQ(model->observations(2).size(), 4u);
  EXPECT_EQ(model->users(), 2u);
  Written forgotten;
  ASSERT_TRUE(model->forget(2, forgotten.done()).ok());
  ASSERT_TRUE(forgotten.wait().ok());
  EXPECT_EQ(observe(*model, 3, {{1, 10, 1}}).message(), "");
}

TEST_F(PersonalModelTest, BadOptionsAreRefusedByName) {
  for (const float lambda : {0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    options_.table.lambda = lambda;
    EXPECT_THAT(try_open().status().message(), HasSubstr("lambda = "));
  }
  options_.table.lambda = 1;
  options_.observations_per_user_max = 20'001;
  EXPECT_EQ(try_open().status().message(), "observations_per_user_max = 20001: must be at most 20000");
}

TEST_F(PersonalModelTest, AFullDiskIsAnErrorOfTheCall) {
  auto storage = std::make_unique<SimulatedStorage>();
  SimulatedStorage& disk = *storage;
  const auto model = PersonalModel::open(std::move(storage), {.items = items_}, options_).value();
  ASSERT_TRUE(observe(*model, 1, {{1, 10, 1}}).ok());
  disk.set_faults({.disk_full = 1});
  EXPECT_EQ(observe(*model, 1, {{2, 10, 1}}).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(model->observations(1).size(), 1u);
  EXPECT_TRUE(model->predict(1, 10).ok());
}

TEST_F(PersonalModelTest, AsynchronousCallsAreAnsweredAtOnce) {
  options_.durability_is_async = true;
  auto storage = std::make_unique<SimulatedStorage>(1, SimulatedStorage::Faults{.disk_full = 1});
  const auto model = PersonalModel::open(std::move(storage), {.items = items_}, options_).value();
  Written answer;
  const std::vector<UserObservation> one = {{1, 10, 1}};
  ASSERT_TRUE(model->observe(1, one, answer.done()).ok());
  EXPECT_TRUE(answer.is_there());
  EXPECT_TRUE(answer.wait().ok());
}

// Weights from scratch, over the observations of items that the table has.
std::vector<float> expected_weights(const ItemTable& items, float lambda, std::span<const UserObservation> all) {
  std::vector<float> rows;
  std::vector<float> values;
  for (const UserObservation& observation : all) {
    const std::optional<size_t> place = items.find(observation.item);
    if (!place) continue;
    rows.insert(rows.end(), items.row(*place).begin(), items.row(*place).end());
    values.push_back(observation.value);
  }
  std::vector<float> weights(items.width());
  const std::vector<float> zero(items.width());
  solve_in_double(items.features(), lambda, rows, values, zero, weights);
  return weights;
}

class PersonalModelSwapTest : public PersonalModelTest {
 protected:
  PersonalModelSwapTest() { options_.table.prior_is_mean = false; }
  // A version of `features` features and `count` items, of a folder of its own.
  PersonalVersion version(const std::string& name, size_t features, size_t count) {
    std::filesystem::create_directories(folder_.path / name);
    return {.name = name, .items = drawn_items(folder_.path / name, features, count)};
  }
  std::vector<UserObservation> drawn(size_t count) {
    std::vector<UserObservation> all;
    for (size_t i = 0; i < count; ++i) {
      all.push_back({++id_, 10 * random_.below(90), static_cast<float>(random_.normal())});
    }
    return all;
  }
  // Predictions of the model are those of weights from scratch.
  static void expect_all_counted(PersonalModel& model, uint64_t user, const PersonalVersion& version,
                                 std::span<const UserObservation> all) {
    const std::vector<float> weights = expected_weights(*version.items, 1, all);
    for (size_t i = 0; i < 5; ++i) {
      float expected = 0;
      for (size_t j = 0; j < weights.size(); ++j) expected += weights[j] * version.items->row(i)[j];
      EXPECT_NEAR(model.predict(user, version.items->items()[i])->value, expected, 1e-3);
    }
  }
  Random random_{5};
  uint64_t id_ = 0;
};

TEST_F(PersonalModelSwapTest, EachObservationCountsOnceInEachVersion) {
  const auto model = open();
  ASSERT_TRUE(observe(*model, 7, drawn(1)).ok());
  std::vector<UserObservation> all = drawn(30);
  ASSERT_TRUE(observe(*model, 1, all).ok());
  Written forgotten;
  ASSERT_TRUE(model->forget(7, forgotten.done()).ok());
  ASSERT_TRUE(forgotten.wait().ok());                  // the first place is empty
  const PersonalVersion other = version("2", 12, 90);  // another d, and without the last items
  ASSERT_TRUE(model->swap(other).ok());
  EXPECT_EQ(model->version(), "2");
  EXPECT_EQ(model->predict(1, 10)->version, "2");
  EXPECT_EQ(model->predict(1, 10)->observations, 30u);
  EXPECT_EQ(model->top_k(1, {}, 1)->version, "2");
  expect_all_counted(*model, 1, other, all);
  EXPECT_THAT(model->predict(1, 950).status().message(), HasSubstr("item 950 is unknown"));
  const std::vector<UserObservation> more = drawn(5);
  ASSERT_TRUE(observe(*model, 1, more).ok());
  all.insert(all.end(), more.begin(), more.end());
  expect_all_counted(*model, 1, other, all);
  ASSERT_TRUE(model->swap({.items = items_}).ok());
  EXPECT_EQ(model->version(), "1");
  expect_all_counted(*model, 1, {.items = items_}, all);
}

TEST_F(PersonalModelSwapTest, TrainedWeightsStandForWhatTheyWereTrainedOn) {
  const auto model = open();
  std::vector<UserObservation> all = drawn(20);
  ASSERT_TRUE(observe(*model, 1, all).ok());
  ASSERT_TRUE(observe(*model, 2, drawn(3)).ok());
  PersonalVersion other = version("2", 12, 90);
  std::vector<float> weights = expected_weights(*other.items, 1, all);
  weights.resize(12);
  weights.resize(24, 0.25F);  // of user 2, as no ridge would give them
  const uint64_t number = model->statistics().log_number;
  const std::vector<uint64_t> keys = {1, number, 20, 2, number, 3};
  ASSERT_TRUE(TrainedWeights::write(folder_.path / "weights", 12, keys, weights).ok());
  other.trained = TrainedWeights::open(folder_.path / "weights").value();
  other.log_number = number;
  const std::vector<UserObservation> after = drawn(7);
  ASSERT_TRUE(observe(*model, 1, after).ok());
  all.insert(all.end(), after.begin(), after.end());
  ASSERT_TRUE(model->swap(other, PersonalModel::PoolCheck::kNone).ok());
  expect_all_counted(*model, 1, other, all);
  float sum = 0;
  for (const float feature : other.items->row(3)) sum += 0.25F * feature;
  EXPECT_NEAR(model->predict(2, 30)->value, sum, 1e-5);

  // A user that was forgotten is not known to the trainer.
  Written answer;
  ASSERT_TRUE(model->forget(1, answer.done()).ok());
  ASSERT_TRUE(answer.wait().ok());
  const std::vector<UserObservation> again = drawn(20);
  ASSERT_TRUE(observe(*model, 1, again).ok());
  expect_all_counted(*model, 1, other, again);

  other.log_number = 1'000'000;
  EXPECT_THAT(model->swap(other).message(), HasSubstr("trained on records up to 1000000"));
  other = version("3", 5, 90);
  other.trained = TrainedWeights::open(folder_.path / "weights").value();
  EXPECT_THAT(model->swap(other).message(), HasSubstr("12 weights, items 5 features"));
}

TEST_F(PersonalModelSwapTest, StateOutlivesTheProcessWithAnotherVersion) {
  const std::vector<UserObservation> all = drawn(20);
  {
    const auto model = open();
    ASSERT_TRUE(observe(*model, 1, all).ok());
    model->request_snapshot();
    wait_for_snapshots(*model, 1);
  }
  PersonalVersion other = version("2", 12, 90);
  other.log_number = 1;
  auto storage = DiskStorage::open(folder_.path / "state").value();
  const auto model = PersonalModel::open(std::move(storage), other, options_).value();
  expect_all_counted(*model, 1, other, all);
  EXPECT_EQ(model->statistics().log_number, 1u);
  EXPECT_TRUE(model->swap(other, PersonalModel::PoolCheck::kNone).ok());
}

// Answers whose every place is drawn, and the observations that follow from them, of values that fit `items`.
class PersonalModelPoolTest : public PersonalModelSwapTest {
 protected:
  PersonalModelPoolTest() {
    options_.exploration.pool = 1;
    options_.seed = 9;
  }
  void fill_pool(PersonalModel& model, const ItemTable& items, uint64_t users) {
    for (uint64_t user = 1; user <= users; ++user) {
      for (int turn = 0; turn < 20; ++turn) {
        const TopK shown = model.top_k(user, {}, 1).value();
        float value = 0;
        for (const float feature : items.row(*items.find(shown.places[0].item))) value += feature;
        const std::vector<UserObservation> one = {{++id_, shown.places[0].item, value}};
        Written answer;
        FOLIOT_CHECK(model.observe(user, one, answer.done(), shown.query).ok());
        FOLIOT_CHECK(answer.wait().ok());
      }
    }
  }
};

TEST_F(PersonalModelPoolTest, ObservationsThatNameTheirQueryAreOfThePool) {
  const auto model = open();
  const TopK shown = model->top_k(1, {}, 2).value();
  ASSERT_TRUE(shown.places[0].is_drawn);
  const uint64_t item = shown.places[0].item;
  Written answers[4];
  const auto one = [item](uint64_t id) { return std::vector<UserObservation>{{id, item, 1}}; };
  EXPECT_LT(shown.query, uint64_t{1} << 53);
  ASSERT_TRUE(model->observe(1, one(1), answers[0].done(), shown.query + 2).ok());  // another query
  ASSERT_TRUE(model->observe(2, one(2), answers[1].done(), shown.query).ok());      // of another user
  ASSERT_TRUE(model->observe(1, one(3), answers[2].done(), shown.query).ok());
  ASSERT_TRUE(model->observe(1, one(4), answers[3].done(), shown.query).ok());  // once only
  for (Written& answer : answers) ASSERT_TRUE(answer.wait().ok());
  const std::vector<UserObservation> all = model->observations(1);
  EXPECT_EQ(all[0].probability, 0);
  EXPECT_NEAR(all[1].probability, 0.01, 1e-6);
  EXPECT_EQ(all[2].probability, 0);
  EXPECT_EQ(model->observations(2)[0].probability, 0);
  EXPECT_EQ(model->statistics().pool.count(), 1u);
  EXPECT_EQ(model->statistics().overall.count(), 4u);
}

TEST_F(PersonalModelPoolTest, AVersionThatIsWorseOnThePoolIsNotTaken) {
  auto model = open();
  fill_pool(*model, *items_, 5);
  const PersonalVersion other = version("2", 8, 120);
  std::optional<VersionComparison> compared;
  EXPECT_TRUE(model->swap({.name = "3", .items = items_}, PersonalModel::PoolCheck::kOnly, &compared).ok());
  EXPECT_EQ(model->version(), "1") << "it was compared alone";
  EXPECT_EQ(compared->with, "1");
  EXPECT_EQ(compared->observations, 100u);
  EXPECT_EQ(compared->users, 5u);
  EXPECT_EQ(compared->loss, compared->loss_with);
  const Status refused = model->swap(other, PersonalModel::PoolCheck::kNotWorse, &compared);
  EXPECT_GT(compared->loss, compared->loss_with);
  EXPECT_THAT(refused.message(),
              HasSubstr("version 2 is not better on what is withheld from trainers and was not taken: its loss on 100 "
                        "observations of 5 users is"));
  EXPECT_EQ(model->version(), "1");
  EXPECT_TRUE(model->swap({.name = "3", .items = items_}).ok());  // as good
  EXPECT_TRUE(model->swap(other, PersonalModel::PoolCheck::kNone).ok());
  EXPECT_EQ(model->version(), "2");
  EXPECT_TRUE(model->swap({.name = "4", .items = items_}).ok());  // better
  // The pool outlives the process.
  model.reset();
  model = open();
  EXPECT_FALSE(model->swap(other).ok());
}

TEST_F(PersonalModelSwapTest, ATrainedVersionMustBeBetterOnEnoughThatNoTrainerSaw) {
  const auto model = open();
  PersonalVersion better = version("2", 8, 120);
  better.log_number = 1;
  const auto rate = [&](size_t count) {
    for (uint64_t user = 1; user <= 5; ++user) {
      std::vector<UserObservation> all;
      for (size_t i = 0; i < count; ++i) {
        const uint64_t item = 10 * random_.below(90);
        float value = 0;
        for (const float feature : better.items->row(*better.items->find(item))) value += feature;
        all.push_back({++id_, item, value});
      }
      ASSERT_TRUE(observe(*model, user, all).ok());
    }
  };
  rate(20);
  EXPECT_THAT(model->swap(better).message(), HasSubstr("version 2 is kept aside: "));
  EXPECT_EQ(model->swap(better).code(), StatusCode::kUnavailable);
  EXPECT_EQ(model->version(), "1");
  rate(400);
  // The version before is all that is good by this one.
  std::vector<UserObservation> hostile;
  for (size_t i = 0; i < 1000; ++i) hostile.push_back({++id_, 10, -1e9F});
  ASSERT_TRUE(observe(*model, 99, hostile).ok());
  const Status taken = model->swap(better);
  ASSERT_TRUE(taken.ok()) << taken.message();
  EXPECT_THAT(model->swap({.name = "3", .items = items_, .log_number = 1}).message(),
              HasSubstr("version 3 is not better on what is withheld from trainers"));
  EXPECT_THAT(model->swap({.name = "4", .items = better.items, .log_number = 1}).message(),
              HasSubstr("version 4 is not better"));
  EXPECT_TRUE(model->swap({.name = "5", .items = better.items}).ok()) << "not trained, and as good";
  EXPECT_EQ(model->version(), "5");
}

TEST_F(PersonalModelSwapTest, WhatATrainerDidNotSeeIsLearnedBesideItsWeights) {
  options_.table.prior_is_mean = false;
  const auto model = open();
  const std::vector<UserObservation> all = drawn(40);
  ASSERT_TRUE(observe(*model, 1, all).ok());
  PersonalVersion other = version("2", 8, 90);
  const std::vector<float> trained(8, 0.5F);
  const uint64_t number = model->statistics().log_number;
  const std::vector<uint64_t> keys = {1, number, 40};
  ASSERT_TRUE(TrainedWeights::write(folder_.path / "weights", 8, keys, trained).ok());
  other.trained = TrainedWeights::open(folder_.path / "weights").value();
  other.withholds = true;
  ASSERT_TRUE(model->swap(other, PersonalModel::PoolCheck::kNone).ok());
  // Those that it saw are taken to be what its weights predict.
  std::vector<float> rows;
  std::vector<float> values;
  size_t withheld = 0;
  for (const UserObservation& one : all) {
    const std::span<const float> row = other.items->row(*other.items->find(one.item));
    rows.insert(rows.end(), row.begin(), row.end());
    withheld += one.is_withheld() ? 1 : 0;
    values.push_back(one.is_withheld() ? one.value : product(row, trained));
  }
  EXPECT_GT(withheld, 0u);
  std::vector<float> expected(8);
  solve_in_double(8, 1, rows, values, trained, expected);
  EXPECT_NEAR(model->predict(1, 30)->value, product(other.items->row(3), expected), 1e-5);
}

TEST_F(PersonalModelSwapTest, LossesAreThoseBeforeTheUpdate) {
  options_.retrain = {.loss_max = 3, .observations_min = 1};
  const auto model = open();
  ASSERT_TRUE(observe(*model, 1, {{1, 10, 2}}).ok());
  EXPECT_NEAR(model->statistics().overall.mean(), 4, 1e-6);
  EXPECT_THAT(model->statistics().retrain, HasSubstr("the loss before updates is 4, limit 3"));
  const double error = model->predict(1, 10)->value - 2.0;
  ASSERT_TRUE(observe(*model, 1, {{2, 10, 2}}).ok());
  EXPECT_NEAR(model->statistics().overall.mean(), (4 + error * error) / 2, 1e-5);
  EXPECT_EQ(model->loss(1)->count(), 2u);
  EXPECT_FALSE(model->loss(2).has_value());
  for (uint64_t id = 3; id < 103; ++id) {
    ASSERT_TRUE(observe(*model, 1, {{id, 10, 2}}).ok());
    model->predict(1, 10).value();
  }
  EXPECT_EQ(model->statistics().retrain, "");
  EXPECT_NEAR(static_cast<double>(model->statistics().held_out.count()), 10, 6);
  EXPECT_LT(model->statistics().held_out.recent(), 0.5);
}

// Reads and observations go on while versions are swapped.
TEST_F(PersonalModelSwapTest, TwentySwapsUnderLoadLoseNothing) {
  constexpr uint64_t kReaders = 2;
  constexpr uint64_t kUsersEach = 20;
  options_.exploration.kind = ExplorationKind::kThompson;
  const auto model = open();
  const PersonalVersion versions[2] = {version("2", 12, 90), version("3", 6, 95)};
  std::atomic<bool> stops = false;
  std::atomic<uint64_t> acknowledged = 0;
  std::vector<std::vector<UserObservation>> sent(kReaders * kUsersEach);
  std::vector<std::thread> threads;
  for (uint64_t reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&, reader] {
      Random random(reader);
      for (uint64_t id = 1; id < (stops ? 2000 : 10'000); ++id) {  // no user reaches its limit
        const uint64_t user = reader * kUsersEach + random.below(kUsersEach);
        const std::vector<UserObservation> one = {{id, 10 * random.below(90), static_cast<float>(random.normal())}};
        while (!model->observe(user, one, [&](const Status& status) { acknowledged += status.ok() ? 1 : 0; }).ok()) {
          ::sched_yield();
        }
        sent[user].push_back(one[0]);
        EXPECT_TRUE(model->predict(user, 10 * random.below(90)).ok());
        if (id % 10 == 0) {
          EXPECT_TRUE(model->top_k(user, {}, 5).ok());
        }
      }
    });
  }
  for (int swap = 0; swap < 20; ++swap) {
    const Status status = model->swap(versions[swap % 2], PersonalModel::PoolCheck::kNone);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  stops = true;
  for (std::thread& thread : threads) thread.join();
  size_t all = 0;
  for (const auto& one : sent) all += one.size();
  while (acknowledged < all) ::sched_yield();
  EXPECT_EQ(model->version(), "3");
  for (uint64_t user = 0; user < sent.size(); ++user) {
    ASSERT_EQ(model->observations(user).size(), sent[user].size());
    expect_all_counted(*model, user, versions[1], sent[user]);
  }
}

constexpr uint64_t kKilledUsers = 50;

// A process that observes until it is killed, and writes what was acknowledged to a pipe.
class KilledProcess {
 public:
  KilledProcess(const std::filesystem::path& state, std::shared_ptr<const ItemTable> items, uint64_t first_id) {
    FOLIOT_CHECK(::pipe(pipe_) == 0);
    process_ = ::fork();
    FOLIOT_CHECK(process_ >= 0);
    if (process_ != 0) {
      ::close(pipe_[1]);
      return;
    }
    PersonalModel::Options options;
    options.observations_per_snapshot = 200;
    options.log.file_bytes_max = 4000;
    options.log.records_max = 500;
    auto model = PersonalModel::open(DiskStorage::open(state).value(), {.items = std::move(items)}, options).value();
    for (uint64_t id = first_id;; ++id) {
      const std::vector<UserObservation> one = {{id, 10 * (id % 100), 1}};
      const int pipe = pipe_[1];
      const Status status = model->observe(id % kKilledUsers, one, [pipe, id](const Status& written) {
        if (written.ok() && ::write(pipe, &id, sizeof id) != sizeof id) ::_exit(1);
      });
      if (!status.ok()) ::sched_yield();
    }
  }
  KilledProcess(const KilledProcess&) = delete;
  KilledProcess& operator=(const KilledProcess&) = delete;

  // Once it has acknowledged so many. Returns all that were acknowledged.
  std::vector<uint64_t> kill_after(size_t count) {
    std::vector<uint64_t> ids;
    uint64_t id = 0;
    while (::read(pipe_[0], &id, sizeof id) == sizeof id) {
      ids.push_back(id);
      if (ids.size() == count) ::kill(process_, SIGKILL);
    }
    ::close(pipe_[0]);
    int status = 0;
    FOLIOT_CHECK(::waitpid(process_, &status, 0) == process_);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    return ids;
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t process_ = -1;
};

TEST_F(PersonalModelTest, WhatAKilledProcessAcknowledgedIsThereOnce) {
  const char* const named = std::getenv("FOLIOT_PERSONAL_KILLS");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const uint64_t kills = named == nullptr ? 5 : std::strtoull(named, nullptr, 10);
  Random random(11);
  std::set<uint64_t> acknowledged;
  uint64_t next_id = 1;
  for (uint64_t kill = 0; kill < kills; ++kill) {
    KilledProcess process(folder_.path / "state", items_, next_id);
    for (const uint64_t id : process.kill_after(1 + random.below(500))) {
      EXPECT_TRUE(acknowledged.insert(id).second) << id;
      next_id = std::max(next_id, id + 1);
    }
    next_id += 100'000;  // more than were under way
    const auto model = open();
    size_t found = 0;
    std::set<uint64_t> ids;
    size_t observations = 0;
    for (uint64_t user = 0; user < kKilledUsers; ++user) {
      for (const UserObservation& observation : model->observations(user)) {
        ids.insert(observation.id);
        found += acknowledged.contains(observation.id) ? 1 : 0;
        ++observations;
      }
    }
    ASSERT_EQ(found, acknowledged.size());  // each is there
    ASSERT_EQ(ids.size(), observations);    // once
  }
}

}  // namespace
}  // namespace foliot
