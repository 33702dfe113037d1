// What items are leaves with the last user that observed them: from memory, and from the files with the next snapshot;
// what a user that stays observed is never lost. Over a disk on which everything goes wrong.
//
// FOLIOT_PERSONAL_SEEDS is the number of seeds that are run, FOLIOT_PERSONAL_SEED the first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "answer/personal/items/item_input.h"
#include "answer/personal/service/personal_model.h"
#include "foundation/store/simulated_storage.h"
#include "foundation/store/test_storage.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kUsers = 4;
constexpr uint64_t kItems = 6;

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string text_of(uint64_t item, uint64_t variant) { return fmt::format("item-{:05}-{:05}", item, variant); }

ItemInput input_of(uint64_t item, uint64_t variant) {
  return std::make_shared<const std::string>(
      encode_inputs({{"x", "FP32", {1, 4}, text_of(item, variant)}}, 1).value().at(0));
}

// A model with a disk and features of one number.
class Films {
 public:
  explicit Films(SimulatedStorage& disk, const PersonalModel::Options& options = {}) : disk_(disk), options_(options) {}

  // As PersonalModels does.
  Status open() {
    computed_ = std::make_shared<ComputedItems>(1, 5);
    auto model = PersonalModel::open(std::make_unique<SharedStorage>(disk_),
                                     {.name = "1", .items = nullptr, .computed = computed_}, options_);
    if (!model.ok()) return model.status();
    model_ = std::move(model).value();
    for (const KnownItem& item : model_->begin_version()) computed_->add(item.item, std::vector<float>(width(), 0.5F));
    model_->end_version();
    return Status();
  }
  void close() { model_.reset(); }
  PersonalModel& model() { return *model_; }
  const ComputedItems& computed() const { return *computed_; }
  void serve(std::shared_ptr<ComputedItems> computed) { computed_ = std::move(computed); }

  using Answer = std::future<Status>;
  // A null input: of a known item.
  Answer observe(uint64_t user, uint64_t id, uint64_t item, const ItemInput& input) {
    auto answer = std::make_shared<std::promise<Status>>();
    const ComputedRows rows{
        .by = computed_, .items = {item}, .inputs = {input}, .values = std::vector<float>(width(), 0.5F)};
    const std::vector<UserObservation> one = {{id, item, 3}};
    const std::vector<size_t> places = {0};
    const Status status =
        model_->observe(user, one, rows, places, [answer](const Status& given) { answer->set_value(given); });
    if (!status.ok()) answer->set_value(status);
    return answer->get_future();
  }
  Answer forget(uint64_t user) {
    auto answer = std::make_shared<std::promise<Status>>();
    const Status status = model_->forget(user, [answer](const Status& given) { answer->set_value(given); });
    if (!status.ok()) answer->set_value(status);
    return answer->get_future();
  }
  void snapshot() {
    const uint64_t before = model_->snapshots();
    model_->request_snapshot();
    while (model_->snapshots() == before) std::this_thread::yield();
  }
  size_t width() const { return computed_->width(); }

 private:
  SimulatedStorage& disk_;
  const PersonalModel::Options options_;
  std::shared_ptr<ComputedItems> computed_;
  std::unique_ptr<PersonalModel> model_;
};

// REQUIRES: no model has the disk: its log uses it in a thread of its own.
bool is_on_disk(SimulatedStorage& disk, std::string_view text) {
  const std::vector<std::string> names = disk.list().value();
  return std::ranges::any_of(names, [&](const std::string& name) {
    const std::vector<std::byte> bytes = disk.read(name).value();
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return content.find(text) != std::string_view::npos;
  });
}

TEST(ForgottenItemsTest, TheNextSnapshotHasNoInputThatOnlyTheUserBrought) {
  SimulatedStorage disk;
  Films films(disk);
  ASSERT_TRUE(films.open().ok());
  ASSERT_TRUE(films.observe(7, 1, 11, input_of(11, 0)).get().ok());
  ASSERT_TRUE(films.observe(7, 2, 12, input_of(12, 0)).get().ok());
  ASSERT_TRUE(films.observe(8, 1, 12, nullptr).get().ok());
  films.snapshot();
  films.close();
  EXPECT_TRUE(is_on_disk(disk, text_of(11, 0)));
  ASSERT_TRUE(films.open().ok());
  ASSERT_TRUE(films.forget(7).get().ok());
  EXPECT_EQ(films.model().input_of(11), nullptr);
  EXPECT_FALSE(films.computed().features_of(11).has_value());
  films.snapshot();
  films.close();
  EXPECT_FALSE(is_on_disk(disk, text_of(11, 0)));
  EXPECT_TRUE(is_on_disk(disk, text_of(12, 0))) << "user 8 observed it, too";
  ASSERT_TRUE(films.open().ok());
  EXPECT_EQ(films.model().input_of(11), nullptr);
  EXPECT_EQ(*films.model().input_of(12), *input_of(12, 0));
  EXPECT_THAT(films.observe(8, 2, 11, nullptr).get().message(), HasSubstr("item 11 is unknown"));
  EXPECT_TRUE(films.observe(8, 2, 11, input_of(11, 1)).get().ok()) << "its number is free";
  ASSERT_TRUE(films.forget(8).get().ok());
  films.snapshot();
  films.close();
  EXPECT_FALSE(is_on_disk(disk, text_of(12, 0)));
  EXPECT_FALSE(is_on_disk(disk, text_of(11, 1)));
}

TEST(ForgottenItemsTest, AnItemWhoseNumberWasUsedAgainHasTheLaterInput) {
  SimulatedStorage disk;
  Films films(disk);
  ASSERT_TRUE(films.open().ok());
  ASSERT_TRUE(films.observe(7, 1, 11, input_of(11, 0)).get().ok());
  ASSERT_TRUE(films.forget(7).get().ok());
  ASSERT_TRUE(films.observe(8, 1, 11, input_of(11, 1)).get().ok());
  films.close();
  ASSERT_TRUE(films.open().ok());  // from records alone
  EXPECT_EQ(*films.model().input_of(11), *input_of(11, 1));
}

TEST(ForgottenItemsTest, WhatLeftWhileAVersionWasMadeIsNotInIt) {
  SimulatedStorage disk;
  Films films(disk);
  ASSERT_TRUE(films.open().ok());
  ASSERT_TRUE(films.observe(7, 1, 11, input_of(11, 0)).get().ok());
  ASSERT_TRUE(films.observe(8, 1, 12, input_of(12, 0)).get().ok());
  const auto next = std::make_shared<ComputedItems>(1, 6);
  for (const KnownItem& item : films.model().begin_version()) {
    next->add(item.item, std::vector<float>(films.width(), 0.25F));
  }
  ASSERT_TRUE(films.forget(7).get().ok());
  EXPECT_EQ(films.model().input_of(11), nullptr);
  EXPECT_THAT(films.observe(8, 2, 11, nullptr).get().message(), HasSubstr("item 11 is unknown"))
      << "its features are still there";
  ASSERT_TRUE(
      films.model().swap({.name = "2", .items = nullptr, .computed = next}, PersonalModel::PoolCheck::kNone).ok());
  films.serve(next);
  films.model().end_version();
  EXPECT_FALSE(next->features_of(11).has_value());
  EXPECT_TRUE(next->features_of(12).has_value());
}

// Users that come and go over several lives of the process.
class FaultyFilms {
 public:
  FaultyFilms(uint64_t seed, const SimulatedStorage::Faults& faults)
      : random_(seed), disk_(random_.next(), faults), films_(disk_, options(random_.next())) {}

  void run(int lives) {
    for (int life = 0; life < lives && !testing::Test::HasFailure(); ++life) {
      if (films_.open().ok()) {
        check();
        live();
      }
      films_.close();
      if (!disk_.crashed()) random_.below(2) == 0 ? disk_.crash() : disk_.end_process();
      disk_.restart();
    }
    disk_.set_faults({});
    ASSERT_TRUE(films_.open().ok());
    check();
    forget_all();
  }
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  struct Observed {
    uint64_t item = 0;
    uint64_t variant = 0;
  };
  static PersonalModel::Options options(uint64_t seed) {
    PersonalModel::Options options;
    options.observations_per_snapshot = 30;
    options.log.file_bytes_max = 2000;
    options.seed = seed;
    return options;
  }

  void live() {
    const uint64_t turns = random_.below(20);
    for (uint64_t turn = 0; turn < turns && !testing::Test::HasFailure(); ++turn) {
      struct Asked {
        uint64_t user;
        uint64_t id;  // 0: it is to be forgotten
        Observed observed;
        Films::Answer answer;
      };
      std::vector<Asked> asked;
      if (random_.below(8) == 0) films_.model().request_snapshot();
      for (uint64_t count = 1 + random_.below(6); count > 0; --count) {
        const uint64_t user = random_.below(kUsers);
        if (random_.below(5) == 0) {
          asked.push_back({user, 0, {}, films_.forget(user)});
          continue;
        }
        const Observed observed{.item = random_.below(kItems), .variant = random_.below(2)};
        const bool is_known = films_.computed().features_of(observed.item).has_value();
        const ItemInput input = is_known && random_.below(2) == 0 ? nullptr : input_of(observed.item, observed.variant);
        const ItemInput kept = films_.model().input_of(observed.item);
        Observed real = observed;
        if (input == nullptr && kept != nullptr) real.variant = *kept == *input_of(observed.item, 0) ? 0 : 1;
        asked.push_back({user, ++last_id_, real, films_.observe(user, last_id_, observed.item, input)});
      }
      for (Asked& one : asked) take(one.user, one.id, one.observed, one.answer.get());
    }
  }

  void take(uint64_t user, uint64_t id, const Observed& observed, const Status& status) {
    acknowledged_ += status.ok() ? 1 : 0;
    if (id == 0) {
      // One that was refused may be there after a restart: then nothing is known of what the user had.
      observed_.erase(user);
    } else if (status.ok()) {
      observed_[user][id] = observed;
    }
  }

  void check() {
    std::set<uint64_t> used;
    for (uint64_t user = 0; user < kUsers; ++user) {
      std::set<uint64_t> ids;
      for (const UserObservation& one : films_.model().observations(user)) {
        used.insert(one.item);
        ids.insert(one.id);
      }
      for (const auto& [id, observed] : observed_[user]) {
        EXPECT_TRUE(ids.contains(id)) << "user " << user << " lost observation " << id;
        const ItemInput input = films_.model().input_of(observed.item);
        ASSERT_NE(input, nullptr) << "item " << observed.item << " was observed by user " << user;
        EXPECT_EQ(*input, *input_of(observed.item, observed.variant));
      }
    }
    for (uint64_t item = 0; item < kItems; ++item) {
      const bool is_known = films_.model().input_of(item) != nullptr;
      EXPECT_TRUE(!is_known || used.contains(item)) << "item " << item << " is kept for none";
      EXPECT_EQ(is_known, films_.computed().features_of(item).has_value());
    }
  }

  void forget_all() {
    for (uint64_t user = 0; user < kUsers; ++user) ASSERT_TRUE(films_.forget(user).get().ok());
    films_.snapshot();
    films_.snapshot();  // the first one may have begun before
    for (uint64_t item = 0; item < kItems; ++item) {
      EXPECT_EQ(films_.model().input_of(item), nullptr);
      EXPECT_FALSE(films_.computed().features_of(item).has_value());
    }
    films_.close();
    for (uint64_t item = 0; item < kItems; ++item) {
      for (const uint64_t variant : {0, 1}) {
        EXPECT_FALSE(is_on_disk(disk_, text_of(item, variant))) << text_of(item, variant);
      }
    }
  }

  Random random_;
  SimulatedStorage disk_;
  Films films_;
  std::map<uint64_t, std::map<uint64_t, Observed>> observed_;  // by user and id: what must be there
  uint64_t last_id_ = 0;
  uint64_t acknowledged_ = 0;
};

void run_seeds(const SimulatedStorage::Faults& faults) {
  const uint64_t first = number_from_environment("FOLIOT_PERSONAL_SEED", 1);
  const uint64_t seeds = number_from_environment("FOLIOT_PERSONAL_SEEDS", 100);
  uint64_t acknowledged = 0;
  for (uint64_t seed = first; seed < first + seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("FOLIOT_PERSONAL_SEED={}", seed));
    FaultyFilms films(seed, faults);
    films.run(5);
    acknowledged += films.acknowledged();
  }
  EXPECT_GT(acknowledged, seeds);
}

TEST(ForgottenItemsTest, NothingIsLostOrLeftWithoutFaults) { run_seeds({}); }

TEST(ForgottenItemsTest, NothingIsLostOrLeftOnAFaultyDisk) {
  run_seeds({.crash = 0.005, .failed_append = 0.02, .failed_sync = 0.02, .failed_name = 0.02, .disk_full = 0.01});
}

}  // namespace
}  // namespace foliot
