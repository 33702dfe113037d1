// A model with memory for few of its users, whose disk or store fails, or whose process is killed: what was
// acknowledged is there, once.
//
// FOLIOT_PERSONAL_SEEDS is the number of seeds that are run, FOLIOT_PERSONAL_SEED the first, FOLIOT_PERSONAL_KILLS how
// often a process is killed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <latch>
#include <map>
#include <set>
#include <thread>

#include "answer/personal/items/test_items.h"
#include "answer/personal/service/personal_model.h"
#include "answer/personal/service/test_answers.h"
#include "answer/personal/service/test_movies.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/rocks_user_store.h"
#include "foundation/store/simulated_user_store.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreFaultsTest : public ::testing::Test {
 protected:
  static PersonalModel::Options few(uint64_t bytes = 20'000) {
    PersonalModel::Options options = greedy_options();
    options.users_bytes_max = bytes;
    return options;
  }
  // Observations of many users, of which few fit into memory.
  static void fill(PersonalModel& model, uint64_t users) {
    for (uint64_t user = 0; user < users; ++user) {
      ASSERT_TRUE(observe_and_wait(model, user, {{1, 10 * (user % 90), 2}}).ok());
    }
  }
  // Until users that may leave have left.
  static void settle(PersonalModel& model) {
    while (model.memory()->in_store == 0) ::sched_yield();
  }
  // One that is in the store alone.
  static uint64_t stored_user(PersonalModel& model, const SimulatedUserStore& store) {
    const uint64_t misses = model.memory()->misses;
    for (uint64_t user = 0;; ++user) {
      if (!store.has(user)) continue;
      model.observations(user);
      if (model.memory()->misses > misses) return user;
    }
  }
  const TestFolder folder_{"stored_users_faults"};
  const std::shared_ptr<const ItemTable> items_ = drawn_items(folder_.path, 8, 100);
  const std::shared_ptr<SimulatedUserStore> store_ = std::make_shared<SimulatedUserStore>();
};

TEST_F(StoreFaultsTest, AUserThatCannotBeReadIsRefusedAndTheStoreFilledAnew) {
  Movies movies(items_, few(), store_);
  ASSERT_TRUE(movies.open().ok());
  fill(movies.model(), 300);
  settle(movies.model());
  store_->set_faults({.failed_read = 1});
  uint64_t refused = 0;
  for (uint64_t user = 0; user < 300; ++user) {
    const auto prediction = movies.model().predict(user, 10);
    if (prediction.ok()) continue;
    ++refused;
    ASSERT_EQ(prediction.status().code(), StatusCode::kUnavailable);
    ASSERT_THAT(prediction.status().message(), HasSubstr("cannot be read: the simulated store cannot read"));
    ASSERT_EQ(movies.model().top_k(user, {}, 1).status().code(), StatusCode::kUnavailable);
    ASSERT_EQ(observe_and_wait(movies.model(), user, {{2, 10, 1}}).code(), StatusCode::kUnavailable);
    ASSERT_EQ(forget_and_wait(movies.model(), user).code(), StatusCode::kUnavailable);
  }
  EXPECT_GT(refused, 200u);
  EXPECT_LT(refused, 300u) << "users in memory are served";
  store_->set_faults({});
  ASSERT_TRUE(observe_and_wait(movies.model(), 299, {{2, 10, 1}}).ok()) << "serving goes on";
  movies.close();
  ASSERT_TRUE(movies.open().ok());
  EXPECT_THAT(movies.lines.take(), ElementsAre(HasSubstr("filled anew after a restart: a value could not be read")));
  for (uint64_t user = 0; user < 299; ++user) ASSERT_EQ(movies.model().observations(user).size(), 1u) << user;
  EXPECT_EQ(movies.model().observations(299).size(), 2u);
}

TEST_F(StoreFaultsTest, WhileUsersCannotBeWrittenMemoryStaysBounded) {
  Movies movies(items_, few(), store_);
  ASSERT_TRUE(movies.open().ok());
  store_->set_faults({.disk_full = 1});
  std::set<uint64_t> acknowledged;
  Status refused;
  for (uint64_t user = 0; user < 1000; ++user) {
    const Status status = observe_and_wait(movies.model(), user, {{1, 10, 2}});
    if (status.ok()) acknowledged.insert(user);
    if (!status.ok()) refused = status;
  }
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("limit 20000"), HasSubstr("the disk of the simulated store is full")));
  EXPECT_LE(movies.model().memory()->bytes, 20'000u);
  EXPECT_GT(acknowledged.size(), 20u);
  EXPECT_LT(acknowledged.size(), 100u);
  EXPECT_TRUE(movies.model().predict(*acknowledged.begin(), 10).ok()) << "users in memory are served";
  EXPECT_THAT(movies.lines.take(), ElementsAre(HasSubstr("since they cannot be written")));
  store_->set_faults({});
  while (!observe_and_wait(movies.model(), 1000, {{1, 10, 2}}).ok()) ::sched_yield();
  acknowledged.insert(1000);
  EXPECT_EQ(movies.model().users(), acknowledged.size());
  for (const uint64_t user : acknowledged) EXPECT_EQ(movies.model().observations(user).size(), 1u);
}

// Writes nothing until it is released.
class HeldUserStore : public SimulatedUserStore {
 public:
  Status write(std::span<const Write> writes) override {
    released_.wait();
    return SimulatedUserStore::write(writes);
  }
  void release() { released_.count_down(); }

 private:
  std::latch released_{1};
};

// Of observations that may wait.
class Answers {
 public:
  void observe(PersonalModel& model, uint64_t user, const std::vector<UserObservation>& observations) {
    const Status status = model.observe(user, observations, [this](const Status& answer) {
      recorded_ += answer.ok() ? 1 : 0;
      ++answered_;
    });
    accepted_ += status.ok() ? 1 : 0;
  }
  bool are_due() const { return answered_ < accepted_; }
  uint64_t recorded() const { return recorded_; }

 private:
  uint64_t accepted_ = 0;
  std::atomic<uint64_t> answered_ = 0;
  std::atomic<uint64_t> recorded_ = 0;
};

// All at once, of many times the users that fit into memory.
TEST_F(StoreFaultsTest, ObservationsWaitWhileMemoryIsFull) {
  constexpr uint64_t kManyUsers = 2000;
  const auto store = std::make_shared<HeldUserStore>();
  Movies movies(items_, few(), store);
  ASSERT_TRUE(movies.open().ok());
  Answers answers;
  uint64_t most = 0;
  const auto look = [&] { most = std::max(most, movies.model().memory()->bytes); };
  for (const uint64_t id : {1, 2, 3}) {
    if (id == 3) store->release();
    for (uint64_t user = 0; user < kManyUsers; ++user) {
      answers.observe(movies.model(), user, {{id, 10, 2}});
      look();
    }
  }
  while (answers.are_due()) look();
  EXPECT_LT(most, 30'000u) << "the limit, and the observations that waited for the log";
  EXPECT_EQ(answers.recorded(), 3 * kManyUsers);
  EXPECT_EQ(movies.model().users(), kManyUsers);
  for (uint64_t user = 0; user < kManyUsers; ++user) {
    const std::vector<UserObservation> all = movies.model().observations(user);
    ASSERT_EQ(all.size(), 3u);
    for (uint64_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].id, i + 1) << "in their order";
  }
}

// Observations take memory, too.
TEST_F(StoreFaultsTest, ObservationsOfUsersInMemoryWaitAsWell) {
  constexpr uint64_t kFewUsers = 10;
  constexpr uint64_t kBatches = 20;
  constexpr int kLooks = 2000;  // in which a disk in memory takes what need not wait
  const auto store = std::make_shared<HeldUserStore>();
  Movies movies(items_, few(), store);
  ASSERT_TRUE(movies.open().ok());
  fill(movies.model(), kFewUsers);  // with one observation, of id 1
  Answers answers;
  uint64_t most = 0;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    for (uint64_t user = 0; user < kFewUsers; ++user) {
      std::vector<UserObservation> some;
      for (uint64_t id = 0; id < 100; ++id) some.push_back({2 + 100 * batch + id, 10, 2});
      answers.observe(movies.model(), user, some);
      for (int i = 0; i < kLooks && answers.are_due(); ++i) most = std::max(most, movies.model().memory()->bytes);
    }
  }
  EXPECT_TRUE(answers.are_due());
  EXPECT_LT(most, 40'000u);
  store->release();
  while (answers.are_due()) ::sched_yield();
  EXPECT_EQ(answers.recorded(), kBatches * kFewUsers);
  for (uint64_t user = 0; user < kFewUsers; ++user) {
    const std::vector<UserObservation> all = movies.model().observations(user);
    ASSERT_EQ(all.size(), 1 + 100 * kBatches);
    for (uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i].id, i + 1) << "in their order";
  }
}

TEST_F(StoreFaultsTest, AForgottenUserIsInNoFileOfTheStoreAfterASnapshot) {
  Movies movies(items_, few(), store_);
  ASSERT_TRUE(movies.open().ok());
  fill(movies.model(), 300);
  settle(movies.model());
  const uint64_t user = stored_user(movies.model(), *store_);
  ASSERT_TRUE(forget_and_wait(movies.model(), user).ok());
  EXPECT_THAT(movies.model().observations(user), IsEmpty());
  EXPECT_EQ(movies.model().users(), 299u);
  EXPECT_TRUE(store_->is_in_files(user));
  // Also if the process ends before.
  movies.restart();
  EXPECT_FALSE(store_->has(user));
  EXPECT_TRUE(store_->is_in_files(user));
  snapshot(movies.model());
  while (movies.model().memory()->purges == 0) ::sched_yield();
  EXPECT_FALSE(store_->is_in_files(user));
  EXPECT_EQ(movies.model().users(), 299u);
  // It may come again.
  ASSERT_TRUE(observe_and_wait(movies.model(), user, {{1, 20, 5}}).ok());
  EXPECT_EQ(movies.model().observations(user).size(), 1u);
}

TEST_F(StoreFaultsTest, AForgottenUserIsInNoSnapshot) {
  Movies movies(items_, few(), store_);
  ASSERT_TRUE(movies.open().ok());
  fill(movies.model(), 300);
  settle(movies.model());
  const uint64_t user = stored_user(movies.model(), *store_);
  ASSERT_TRUE(forget_and_wait(movies.model(), user).ok());
  snapshot(movies.model());  // the value may still be in the store
  movies.close();
  auto all = PersonalModel::open(std::make_unique<SharedStorage>(movies.disk), {.items = items_}, greedy_options());
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)->users(), 299u);
  EXPECT_THAT((*all)->observations(user), IsEmpty());
}

TEST_F(StoreFaultsTest, ASnapshotThatCannotReadTheStoreIsGivenUp) {
  Movies movies(items_, few(), store_);
  ASSERT_TRUE(movies.open().ok());
  fill(movies.model(), 300);
  settle(movies.model());
  store_->set_faults({.failed_read = 1});
  movies.model().request_snapshot();
  ASSERT_TRUE(observe_and_wait(movies.model(), 299, {{2, 10, 2}}).ok());
  movies.close();
  store_->set_faults({});
  const std::vector<std::string> names = movies.disk.list().value();
  for (const std::string& name : names) EXPECT_THAT(name, ::testing::StartsWith("log."));
}

// Copies that front ends exchange.
TEST_F(StoreFaultsTest, DigestsHaveAllUsersAndForgottenOnesLeaveNothing) {
  PersonalModel::Options options = few();
  options.is_shared = true;
  Movies movies(items_, options, store_);
  ASSERT_TRUE(movies.open().ok());
  fill(movies.model(), 300);
  settle(movies.model());
  const auto users = [&] {
    std::multiset<uint64_t> found;
    PersonalModel::UserPass place;
    for (auto some = movies.model().digests(place, 10); some.ok() && !some->empty();
         some = movies.model().digests(place, 10)) {
      EXPECT_LE(some->size(), 10u);
      for (const UserDigest& digest : *some) {
        found.insert(digest.user);
        EXPECT_EQ(digest.observations, 1u);
      }
      movies.model().observations(*found.begin() + 7);  // users come and go meanwhile
    }
    return found;
  };
  const std::multiset<uint64_t> all = users();
  EXPECT_GE(all.size(), 300u);
  EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), 300u);
  const uint64_t user = stored_user(movies.model(), *store_);
  EXPECT_EQ(movies.model().copy(user)->size(), encode_copy(user, 0, std::vector<UserObservation>(1)).size());
  ASSERT_TRUE(forget_and_wait(movies.model(), user).ok());
  EXPECT_EQ(movies.model().digest(user)->generation, 1u);
  snapshot(movies.model());
  while (movies.model().memory()->purges == 0) ::sched_yield();
  EXPECT_FALSE(store_->is_in_files(user)) << "its generation alone stays, in memory";
  movies.restart();
  EXPECT_EQ(movies.model().digest(user)->generation, 1u);
  EXPECT_THAT(movies.model().observations(user), IsEmpty());
  ASSERT_TRUE(start_change([&](auto done) {
                movies.model().drop(movies.model().digest(5).value(), done);
                return Status();
              })
                  .get()
                  .ok());
  EXPECT_EQ(movies.model().users(), 299u);
  store_->set_faults({.failed_read = 1});
  PersonalModel::UserPass place;
  Status status;
  while (status.ok()) status = movies.model().digests(place, 10).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << "not the end of all users";
}

// What waits for its user when the model is closed is refused; and limits hold for users in the store.
TEST_F(StoreFaultsTest, LimitsHoldForUsersInTheStore) {
  PersonalModel::Options options = few();
  options.observations_per_user_max = 2;
  options.users_max = 300;
  Movies movies(items_, options, store_);
  ASSERT_TRUE(movies.open().ok());
  fill(movies.model(), 300);
  settle(movies.model());
  EXPECT_THAT(observe_and_wait(movies.model(), 1'000'000, {{1, 10, 2}}).message(), HasSubstr("limit of 300 users"));
  const uint64_t user = stored_user(movies.model(), *store_);
  EXPECT_TRUE(observe_and_wait(movies.model(), user, {{1, 10, 2}}).ok()) << "it has this one";
  EXPECT_EQ(movies.model().observations(user).size(), 1u);
  for (uint64_t other = 0; other < 300; ++other) {
    ASSERT_THAT(observe_and_wait(movies.model(), other, {{2, 10, 2}, {3, 10, 2}}).message(),
                HasSubstr("1 observations, and 2 more are over the limit of 2"));
  }
}

// Threads read and observe all users, while versions are swapped and snapshots made.
TEST_F(StoreFaultsTest, UsersComeAndGoUnderLoad) {
  constexpr uint64_t kUsersEach = 400;
  constexpr uint64_t kObservers = 2;
  PersonalModel::Options options = few(60'000);
  Movies movies(items_, options, store_);
  ASSERT_TRUE(movies.open().ok());
  PersonalModel& model = movies.model();
  std::atomic<uint64_t> running = kObservers;
  std::vector<std::map<uint64_t, size_t>> counts(kObservers);
  std::vector<std::thread> threads;
  for (uint64_t observer = 0; observer < kObservers; ++observer) {
    threads.emplace_back([&, observer] {
      Random random(observer);
      for (uint64_t id = 1; id <= 3000; ++id) {
        const uint64_t user = random.below(kUsersEach) * kObservers + observer;
        const std::vector<UserObservation> one = {{id, 10 * random.below(90), 1}};
        while (!observe_and_wait(model, user, one).ok()) ::sched_yield();
        ++counts[observer][user];
        if (id % 3 == 0) {
          EXPECT_TRUE(model.predict(random.below(kUsersEach * kObservers), 10).ok());
        }
        EXPECT_EQ(model.observations(user).size(), counts[observer][user]);
      }
      --running;
    });
  }
  for (uint64_t round = 0; running > 0; ++round) {
    if (round % 2 == 0) {
      EXPECT_TRUE(model.swap({.name = std::to_string(round), .items = items_}, PersonalModel::PoolCheck::kNone).ok());
    } else {
      snapshot(model);
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(model.memory()->misses, 1000u);
  movies.restart();
  for (const auto& of_observer : counts) {
    for (const auto& [user, count] : of_observer) EXPECT_EQ(movies.model().observations(user).size(), count);
  }
}

// Several lives of a process over a disk and a store that fail.
class FaultyMovies {
 public:
  FaultyMovies(uint64_t seed, std::shared_ptr<const ItemTable> items, const SimulatedStorage::Faults& disk,
               const SimulatedUserStore::Faults& faults)
      : random_(seed),
        faults_(faults),
        store_(std::make_shared<SimulatedUserStore>(random_.next(), faults)),
        movies_(std::move(items), options(random_.next()), store_) {
    movies_.disk.set_faults(disk);
  }
  void run() {
    for (int life = 0; life < 6 && !testing::Test::HasFailure(); ++life) {
      store_->set_faults(random_.below(2) == 0 ? faults_ : SimulatedUserStore::Faults());
      if (movies_.open().ok()) {
        check();
        live();
      }
      end();
    }
    movies_.disk.set_faults({});
    store_->set_faults({});
    ASSERT_TRUE(movies_.open().ok());
    check();
  }
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  static constexpr uint64_t kUsers = 60;  // some 15 fit into memory
  static PersonalModel::Options options(uint64_t seed) {
    PersonalModel::Options options = greedy_options();
    options.observations_per_snapshot = 60;
    options.log.file_bytes_max = 2000;
    options.seed = seed;
    options.users_bytes_max = 9'000;
    return options;
  }
  // The process closes, or ends, or the machine does.
  void end() {
    const uint64_t kind = random_.below(3);
    if (kind > 0) store_->set_faults({.failed_write = 1});
    if (kind == 2) movies_.disk.end_process();
    movies_.close();
    if (!movies_.disk.crashed()) movies_.disk.end_process();
    if (kind == 2) movies_.disk.crash();
    if (kind > 0) store_->crash();
    movies_.disk.restart();
  }
  void live() {
    store_->set_faults(faults_);
    for (uint64_t turn = random_.below(30); turn > 0 && !testing::Test::HasFailure(); --turn) {
      struct Asked {
        uint64_t user;
        uint64_t id;  // 0: it is to be forgotten
        std::future<Status> answer;
      };
      std::vector<Asked> asked;
      if (random_.below(8) == 0) movies_.model().request_snapshot();
      for (uint64_t count = 1 + random_.below(10); count > 0; --count) {
        const uint64_t user = random_.below(kUsers);
        if (random_.below(12) == 0) {
          asked.push_back({user, 0, start_change([&](auto done) { return movies_.model().forget(user, done); })});
        } else {
          const bool is_again = last_id_ > 0 && random_.below(4) == 0;
          const uint64_t id = is_again ? 1 + random_.below(last_id_) : ++last_id_;
          asked.push_back({user, id, start_observing(movies_.model(), user, {{id, 10 * random_.below(90), 1}})});
        }
        if (random_.below(3) == 0) static_cast<void>(movies_.model().predict(random_.below(kUsers), 10));
      }
      for (Asked& one : asked) take(one.user, one.id, one.answer.get());
    }
  }
  void take(uint64_t user, uint64_t id, const Status& status) {
    acknowledged_ += status.ok() ? 1 : 0;
    if (id == 0) {
      // One that was refused may be there after a restart: then nothing is known of what the user had.
      if (status.ok()) forgotten_.insert(user);
      observed_.erase(user);
    } else if (status.ok()) {
      observed_[user].insert(id);
    }
    if (id != 0) forgotten_.erase(user);
  }
  void check() {
    store_->set_faults({});
    uint64_t users = 0;
    for (uint64_t user = 0; user < kUsers; ++user) {
      std::set<uint64_t> ids;
      const std::vector<UserObservation> all = movies_.model().observations(user);
      for (const UserObservation& one : all) ids.insert(one.id);
      ASSERT_EQ(ids.size(), all.size()) << "user " << user << " has an observation twice";
      for (const uint64_t id : observed_[user]) ASSERT_TRUE(ids.contains(id)) << "user " << user << " lost " << id;
      if (forgotten_.contains(user)) {
        ASSERT_THAT(all, IsEmpty()) << "user " << user << " was forgotten";
      }
      users += all.empty() ? 0 : 1;
    }
    ASSERT_EQ(movies_.model().users(), users);
  }

  Random random_;
  const SimulatedUserStore::Faults faults_;
  const std::shared_ptr<SimulatedUserStore> store_;
  Movies movies_;
  std::map<uint64_t, std::set<uint64_t>> observed_;  // what must be there
  std::set<uint64_t> forgotten_;                     // users that must not be
  uint64_t last_id_ = 0;
  uint64_t acknowledged_ = 0;
};

void run_lives(const std::shared_ptr<const ItemTable>& items, const SimulatedStorage::Faults& disk,
               const SimulatedUserStore::Faults& store) {
  const uint64_t first = from_environment("FOLIOT_PERSONAL_SEED", 1);
  const uint64_t seeds = from_environment("FOLIOT_PERSONAL_SEEDS", 30);
  uint64_t acknowledged = 0;
  for (uint64_t seed = first; seed < first + seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("FOLIOT_PERSONAL_SEED={}", seed));
    FaultyMovies movies(seed, items, disk, store);
    movies.run();
    acknowledged += movies.acknowledged();
  }
  EXPECT_GT(acknowledged, 20 * seeds);
}

constexpr SimulatedStorage::Faults kFaultyDisk{
    .crash = 0.003, .failed_append = 0.01, .failed_sync = 0.01, .failed_name = 0.01, .disk_full = 0.005};
constexpr SimulatedUserStore::Faults kFaultyStore{.failed_read = 0.02, .failed_write = 0.05, .disk_full = 0.02};

TEST_F(StoreFaultsTest, NothingIsLostWithoutFaults) { run_lives(items_, {}, {}); }
TEST_F(StoreFaultsTest, NothingIsLostByAFaultyStore) { run_lives(items_, {}, kFaultyStore); }
TEST_F(StoreFaultsTest, NothingIsLostByAFaultyDisk) { run_lives(items_, kFaultyDisk, {}); }
TEST_F(StoreFaultsTest, NothingIsLostByBoth) { run_lives(items_, kFaultyDisk, kFaultyStore); }

// Over RocksDB.
class RealStoreTest : public StoreFaultsTest {
 protected:
  static constexpr uint64_t kUsers = 2000;
  std::unique_ptr<PersonalModel> open(std::function<void(const std::string&)> on_failure = [](const std::string&) {}) {
    auto store = RocksUserStore::open(folder_.path / "users", RocksUserStore::kBytesMin);
    EXPECT_TRUE(store.ok()) << store.status().message();
    PersonalModel::Options options = few(100'000);
    options.observations_per_snapshot = 2000;
    options.log.records_max = 500;
    options.on_failure = std::move(on_failure);
    auto model = PersonalModel::open(DiskStorage::open(folder_.path / "state").value(), {.items = items_}, options,
                                     std::move(store).value());
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }
  // Observes until it is killed, and writes what was acknowledged to a pipe. Returns that.
  std::vector<uint64_t> observe_until_killed(uint64_t first_id, size_t count) {
    int ends[2] = {-1, -1};
    FOLIOT_CHECK(::pipe(ends) == 0);
    const pid_t process = ::fork();
    FOLIOT_CHECK(process >= 0);
    if (process == 0) {
      const auto model = open();
      for (uint64_t id = first_id;; ++id) {
        const Status status = model->observe(id * 7919 % kUsers, std::vector<UserObservation>{{id, 10 * (id % 90), 1}},
                                             [pipe = ends[1], id](const Status& written) {
                                               if (written.ok() && ::write(pipe, &id, sizeof id) != sizeof id)
                                                 ::_exit(1);
                                             });
        if (!status.ok()) ::sched_yield();
      }
    }
    ::close(ends[1]);
    std::vector<uint64_t> ids;
    uint64_t id = 0;
    while (::read(ends[0], &id, sizeof id) == sizeof id) {
      ids.push_back(id);
      if (ids.size() == count) ::kill(process, SIGKILL);
    }
    ::close(ends[0]);
    int status = 0;
    FOLIOT_CHECK(::waitpid(process, &status, 0) == process);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    return ids;
  }
  // RocksDB has threads from when it is first opened, and those of a process that forks are not in the next one.
  void check_in_another_process(const std::set<uint64_t>& acknowledged) {
    const pid_t process = ::fork();
    FOLIOT_CHECK(process >= 0);
    if (process == 0) {
      check(*open([](const std::string&) {}), acknowledged);
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    FOLIOT_CHECK(::waitpid(process, &status, 0) == process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  static void check(PersonalModel& model, const std::set<uint64_t>& acknowledged) {
    size_t found = 0;
    size_t observations = 0;
    std::set<uint64_t> ids;
    for (uint64_t user = 0; user < kUsers; ++user) {
      for (const UserObservation& one : model.observations(user)) {
        ids.insert(one.id);
        found += acknowledged.contains(one.id) ? 1 : 0;
        ++observations;
      }
    }
    ASSERT_EQ(found, acknowledged.size());  // each is there
    ASSERT_EQ(ids.size(), observations);    // once
  }
};

TEST_F(RealStoreTest, WhatAKilledProcessAcknowledgedIsThereOnce) {
  const uint64_t kills = from_environment("FOLIOT_PERSONAL_KILLS", 3);
  Random random(11);
  std::set<uint64_t> acknowledged;
  uint64_t next_id = 1;
  for (uint64_t kill = 0; kill < kills && !HasFailure(); ++kill) {
    for (const uint64_t id : observe_until_killed(next_id, 500 + random.below(6000))) {
      EXPECT_TRUE(acknowledged.insert(id).second) << id;
      next_id = std::max(next_id, id + 1);
    }
    next_id += 100'000;  // more than were under way
    check_in_another_process(acknowledged);
  }
}

TEST_F(RealStoreTest, ADamagedFileIsFoundAndTheStoreFilledAnew) {
  Lines lines;
  std::set<uint64_t> acknowledged;
  {
    const auto model = open(lines.writer());
    const auto one = [](uint64_t id) { return std::vector<UserObservation>{{id, 10 * (id % 90), 1}}; };
    std::vector<std::future<Status>> answers;
    for (uint64_t id = 1; id <= 2 * kUsers; ++id) {
      acknowledged.insert(id);
      answers.push_back(start_observing(*model, id * 7919 % kUsers, one(id)));
    }
    for (uint64_t id = 1; id <= 2 * kUsers; ++id) {
      if (!answers[id - 1].get().ok()) observe_until_acknowledged(*model, id * 7919 % kUsers, one(id));
    }
  }
  EXPECT_THAT(lines.take(), IsEmpty());
  size_t damaged = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path / "users")) {
    if (file.path().extension() != ".sst") continue;
    std::fstream bytes(file.path(), std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file.path()) / 3));
    bytes.write("damaged", 7);
    ++damaged;
  }
  ASSERT_GT(damaged, 0u);
  uint64_t refused = 0;
  {
    const auto model = open(lines.writer());
    EXPECT_THAT(lines.take(), IsEmpty()) << "no value was read yet";
    for (uint64_t user = 0; user < kUsers; ++user) {
      const auto prediction = model->predict(user, 10);
      if (prediction.ok()) continue;
      ++refused;
      ASSERT_EQ(prediction.status().code(), StatusCode::kUnavailable);
      ASSERT_THAT(prediction.status().message(), HasSubstr("Corruption"));
    }
    EXPECT_GT(refused, 0u);
    EXPECT_LT(refused, kUsers / 2) << "others are served";
  }
  const auto model = open(lines.writer());
  EXPECT_THAT(lines.take(), Contains(HasSubstr("filled anew after a restart: a value could not be read")));
  check(*model, acknowledged);
}

}  // namespace
}  // namespace foliot
