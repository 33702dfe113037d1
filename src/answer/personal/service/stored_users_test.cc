// A model with memory for few of its users is the same as one that has all of them in memory.
//
// FOLIOT_PERSONAL_SEEDS is the number of seeds that are run, FOLIOT_PERSONAL_SEED the first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "answer/personal/items/test_items.h"
#include "answer/personal/service/personal_model.h"
#include "answer/personal/service/test_answers.h"
#include "answer/personal/service/test_movies.h"
#include "foundation/store/rocks_user_store.h"
#include "foundation/store/simulated_user_store.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoredUsersTest : public ::testing::Test {
 protected:
  static constexpr size_t kItems = 100;
  static PersonalModel::Options few(uint64_t bytes) {
    PersonalModel::Options options = greedy_options();
    options.users_bytes_max = bytes;
    return options;
  }
  PersonalVersion version(const std::string& name, size_t features, size_t count) {
    std::filesystem::create_directories(folder_.path / name);
    return {.name = name, .items = drawn_items(folder_.path / name, features, count)};
  }
  const TestFolder folder_{"stored_users"};
  const std::shared_ptr<const ItemTable> items_ = drawn_items(folder_.path, 8, kItems);
  const std::shared_ptr<SimulatedUserStore> store_ = std::make_shared<SimulatedUserStore>();
};

// Two models, to which the same happens.
class Twins {
 public:
  struct What {
    bool prior_is_mean = true;
    uint64_t users = 5000;
    uint64_t bytes_max = 60'000;  // some 100 users
    uint64_t steps = 20'000;
  };
  Twins(uint64_t seed, const What& what, std::shared_ptr<const ItemTable> items, std::vector<PersonalVersion> versions,
        std::shared_ptr<UserStore> store)
      : what_(what),
        random_(seed),
        versions_(std::move(versions)),
        all_(items, options(0), nullptr),
        few_(items, options(what.bytes_max), std::move(store)) {}

  void run() {
    ASSERT_TRUE(all_.open().ok());
    ASSERT_TRUE(few_.open().ok());
    for (uint64_t step = 0; step < what_.steps && !testing::Test::HasFailure(); ++step) {
      const uint64_t kind = random_.below(1000);
      if (kind < 550) {
        observe(drawn_user());
      } else if (kind < 570) {
        const uint64_t user = drawn_user();
        ASSERT_EQ(forget_and_wait(all_.model(), user).message(), forget_and_wait(few_.model(), user).message());
      } else if (kind < 970) {
        compare(drawn_user());
      } else if (kind < 990) {
        rank(drawn_user());
      } else if (kind < 994) {
        change();
      }
    }
    expect_bounded();
    for (uint64_t user = 0; user < what_.users && !testing::Test::HasFailure(); ++user) compare(user);
    EXPECT_EQ(all_.model().users(), few_.model().users());
    EXPECT_THAT(few_.lines.take(), IsEmpty());
  }
  uint64_t misses() { return few_.model().memory()->misses + misses_before_; }
  uint64_t changes() const { return changes_; }

 private:
  PersonalModel::Options options(uint64_t bytes_max) const {
    PersonalModel::Options options = greedy_options();
    options.table.prior_is_mean = what_.prior_is_mean;
    options.table.factors_max = 64;
    options.observations_per_user_max = 60;
    options.users_bytes_max = bytes_max;
    return options;
  }
  // Half of the calls are for few users.
  uint64_t drawn_user() { return random_.below(2) == 0 ? random_.below(50) : random_.below(what_.users); }
  void observe(uint64_t user) {
    std::vector<UserObservation> some;
    for (uint64_t count = 1 + random_.below(3); count > 0; --count) {
      const bool is_again = random_.below(10) == 0;
      const uint64_t id = is_again ? last_id_ - std::min(last_id_, random_.below(200)) : ++last_id_;
      some.push_back({id, 10 * random_.below(90), static_cast<float>(random_.normal())});
    }
    ASSERT_EQ(observe_and_wait(all_.model(), user, some).message(),
              observe_and_wait(few_.model(), user, some).message());
  }
  static void expect_near(float expected, float value) {
    ASSERT_NEAR(expected, value, 2e-6 * std::max(1.0F, std::abs(expected)));
  }
  void compare(uint64_t user) {
    const uint64_t item = 10 * random_.below(90);
    const auto expected = all_.model().predict(user, item);
    const auto prediction = few_.model().predict(user, item);
    ASSERT_TRUE(expected.ok() && prediction.ok()) << prediction.status().message();
    ASSERT_EQ(expected->observations, prediction->observations);
    expect_near(expected->value, prediction->value);
    ASSERT_EQ(all_.model().observations(user), few_.model().observations(user));
    const auto expected_loss = all_.model().loss(user);
    const auto loss = few_.model().loss(user);
    ASSERT_EQ(expected_loss.has_value(), loss.has_value());
    if (!loss) return;
    ASSERT_EQ(expected_loss->count(), loss->count());
  }
  // Places with nearly equal scores may change places.
  void rank(uint64_t user) {
    const TopK expected = all_.model().top_k(user, {}, 5).value();
    const TopK list = few_.model().top_k(user, {}, 5).value();
    for (size_t i = 0; i < 5; ++i) expect_near(expected.places[i].score, list.places[i].score);
    ASSERT_EQ(expected.version, list.version);
  }
  void change() {
    ++changes_;
    const uint64_t kind = random_.below(3);
    if (kind == 0) {
      const PersonalVersion& version = versions_[random_.below(versions_.size())];
      ASSERT_TRUE(all_.model().swap(version, PersonalModel::PoolCheck::kNone).ok());
      const Status status = few_.model().swap(version, PersonalModel::PoolCheck::kNone);
      ASSERT_TRUE(status.ok()) << status.message();
    } else if (kind == 1) {
      snapshot(all_.model());
      snapshot(few_.model());
    } else {
      misses_before_ += few_.model().memory()->misses;
      all_.restart();
      few_.restart();
    }
  }
  void expect_bounded() {
    const UserMemory::Statistics memory = few_.model().memory().value();
    EXPECT_LE(memory.bytes, what_.bytes_max);
    EXPECT_LT(memory.in_memory, what_.users / 20);
    EXPECT_GT(memory.in_store, what_.users / 4);
    EXPECT_EQ(memory.in_memory + memory.in_store, few_.model().users());
  }

  const What what_;
  Random random_;
  const std::vector<PersonalVersion> versions_;
  Movies all_;
  Movies few_;
  uint64_t last_id_ = 0;
  uint64_t misses_before_ = 0;
  uint64_t changes_ = 0;
};

TEST_F(StoredUsersTest, AModelWithFewUsersInMemoryIsThatWithAll) {
  const std::vector<PersonalVersion> versions = {{.items = items_}, version("2", 12, 95), version("3", 8, 90)};
  const uint64_t first = from_environment("FOLIOT_PERSONAL_SEED", 1);
  for (uint64_t seed = first; seed < first + from_environment("FOLIOT_PERSONAL_SEEDS", 2); ++seed) {
    SCOPED_TRACE(fmt::format("FOLIOT_PERSONAL_SEED={}", seed));
    Twins twins(seed, {}, items_, versions, std::make_shared<SimulatedUserStore>());
    twins.run();
    EXPECT_GT(twins.misses(), 5000u);
    EXPECT_GT(twins.changes(), 20u);
    if (HasFailure()) break;
  }
}

TEST_F(StoredUsersTest, UsersMayHaveThePriorZero) {
  Twins twins(7, {.prior_is_mean = false}, items_, {{.items = items_}}, store_);
  twins.run();
  EXPECT_GT(twins.misses(), 5000u);
}

TEST_F(StoredUsersTest, ARealStoreHoldsWhatTheFakeDoes) {
  const std::vector<PersonalVersion> versions = {{.items = items_}, version("2", 12, 95)};
  std::shared_ptr<UserStore> store = RocksUserStore::open(folder_.path / "users", RocksUserStore::kBytesMin).value();
  Twins twins(3, {.users = 3000, .steps = 8000}, items_, versions, store);
  twins.run();
  EXPECT_GT(twins.misses(), 1000u);
}

// Opens one model after the other over one log and one store.
class StoreReuseTest : public StoredUsersTest {
 protected:
  static constexpr uint64_t kUsers = 500;
  StoreReuseTest() : movies_(items_, few(60'000), store_) {}
  void fill() {
    ASSERT_TRUE(movies_.open().ok());
    std::vector<std::future<Status>> answers;
    for (uint64_t user = 0; user < kUsers; ++user) {
      answers.push_back(start_observing(movies_.model(), user, {{1, 10 * (user % kItems), 2}}));
    }
    for (uint64_t user = 0; user < kUsers; ++user) {
      if (answers[user].get().ok()) continue;
      observe_until_acknowledged(movies_.model(), user, {{1, 10 * (user % kItems), 2}});
    }
  }
  void expect_all() {
    EXPECT_EQ(movies_.model().users(), kUsers);
    for (uint64_t user = 0; user < kUsers; ++user) {
      ASSERT_THAT(movies_.model().observations(user), ElementsAre(UserObservation{1, 10 * (user % kItems), 2}));
    }
  }
  // The process is killed: the log has everything, the store what was written.
  void kill() {
    store_->set_faults({.failed_write = 1});
    movies_.close();
    movies_.lines.take();
    store_->set_faults({});
    store_->crash();
  }
  Movies movies_;
};

TEST_F(StoreReuseTest, AStoreThatWasClosedIsUsedAgain) {
  fill();
  snapshot(movies_.model());
  const float before = movies_.model().predict(7, 10)->value;
  const float of_nobody = movies_.model().predict(1'000'000, 10)->value;
  movies_.close();
  const size_t values = store_->values();
  EXPECT_EQ(values, kUsers);
  ASSERT_TRUE(movies_.open().ok());
  EXPECT_EQ(movies_.model().memory()->in_memory, 0u) << "nothing was read";
  EXPECT_NEAR(movies_.model().predict(7, 10)->value, before, 1e-6);
  EXPECT_NEAR(movies_.model().predict(1'000'000, 10)->value, of_nobody, 1e-6) << "the prior is kept";
  expect_all();
  EXPECT_THAT(movies_.lines.take(), IsEmpty());
}

TEST_F(StoreReuseTest, ItIsUsedAgainAfterACrashThatCameBeforeAnyWrite) {
  fill();
  movies_.close();
  ASSERT_TRUE(movies_.open().ok());
  kill();  // by chance the end of the note lasts or not
  ASSERT_TRUE(movies_.open().ok());
  expect_all();
}

TEST_F(StoreReuseTest, AStoreThatWasNotClosedIsFilledAnew) {
  fill();
  snapshot(movies_.model());
  while (movies_.model().memory()->in_store == 0) ::sched_yield();
  ASSERT_TRUE(store_->flush().ok());
  kill();
  ASSERT_TRUE(movies_.open().ok());
  EXPECT_THAT(movies_.lines.take(), ElementsAre(HasSubstr("filled anew from the log: it was not closed")));
  expect_all();
}

TEST_F(StoreReuseTest, AStoreOfAnotherLogIsFilledAnew) {
  fill();
  movies_.close();
  Movies other(items_, few(60'000), store_);
  ASSERT_TRUE(other.open().ok());
  EXPECT_THAT(other.lines.take(), ElementsAre(HasSubstr("it is of another log")));
  EXPECT_EQ(other.model().users(), 0u);
  other.close();
  ASSERT_TRUE(movies_.open().ok());
  EXPECT_THAT(movies_.lines.take(), ElementsAre(HasSubstr("it is of another log")));
  expect_all();
}

// As after a time in which all users were in memory.
TEST_F(StoreReuseTest, AStoreThatIsBehindTheSnapshotIsFilledAnew) {
  fill();
  movies_.close();
  auto model =
      PersonalModel::open(std::make_unique<SharedStorage>(movies_.disk), {.items = items_}, greedy_options()).value();
  ASSERT_TRUE(observe_and_wait(*model, 7, {{2, 10, 1}}).ok());
  snapshot(*model);
  model.reset();
  ASSERT_TRUE(movies_.open().ok());
  EXPECT_THAT(movies_.lines.take(), ElementsAre(HasSubstr("filled anew")));
  EXPECT_EQ(movies_.model().observations(7).size(), 2u);
  EXPECT_EQ(movies_.model().users(), kUsers);
}

// Where the machine stopped before the snapshot's old files were removed.
TEST_F(StoreReuseTest, ANoteThatIsBehindTheSnapshotIsNotTaken) {
  fill();
  movies_.close();
  const UserNote note = decode_note(**store_->note()).value();
  EXPECT_EQ(note.users, kUsers);
  Mutex mutex;
  ObservationTable users;
  Lines lines;
  UserMemory memory({.bytes_max = 1, .on_failure = lines.writer()}, store_, mutex, users);
  EXPECT_FALSE(memory.begin({.snapshot_number = note.number + 1, .salts = {note.salt}}).value().has_value());
  EXPECT_THAT(lines.take(), ElementsAre(HasSubstr("it ends at record")));
  EXPECT_EQ(store_->values(), 0u);
}

// Records that came while all users were in memory follow those of the store.
TEST_F(StoreReuseTest, RecordsThatTheStoreDoesNotHaveAreReadFromTheLog) {
  fill();
  movies_.close();
  auto model =
      PersonalModel::open(std::make_unique<SharedStorage>(movies_.disk), {.items = items_}, greedy_options()).value();
  ASSERT_TRUE(observe_and_wait(*model, 7, {{2, 10, 1}}).ok());
  ASSERT_TRUE(forget_and_wait(*model, 8).ok());
  model.reset();
  ASSERT_TRUE(movies_.open().ok());
  EXPECT_THAT(movies_.lines.take(), IsEmpty());
  EXPECT_EQ(movies_.model().observations(7).size(), 2u);
  EXPECT_THAT(movies_.model().observations(8), IsEmpty());
  EXPECT_EQ(movies_.model().users(), kUsers - 1);
}

TEST_F(StoreReuseTest, AStoreThatIsAheadOfTheLogIsFilledAnew) {
  fill();
  movies_.close();
  const std::vector<std::string> names = movies_.disk.list().value();
  const std::string& last = names.back();
  movies_.disk.truncate(last, movies_.disk.read(last)->size() - 10);  // the last record
  ASSERT_TRUE(movies_.open().ok());
  EXPECT_THAT(movies_.lines.take(), ElementsAre(HasSubstr("and the log ends at")));
  EXPECT_EQ(movies_.model().users(), kUsers - 1);
}

}  // namespace
}  // namespace foliot
