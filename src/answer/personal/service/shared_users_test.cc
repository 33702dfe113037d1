// Copies of users, which several front ends keep: they merge in any order, a user that was forgotten does not come back
// with an older one, and all this survives restarts.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "answer/personal/items/test_items.h"
#include "answer/personal/service/personal_model.h"
#include "foundation/store/disk_storage.h"

namespace foliot {
namespace {

class SharedUsersTest : public testing::Test {
 protected:
  std::unique_ptr<PersonalModel> open(const std::string& name) {
    auto storage = DiskStorage::open(folder_.path / name);
    EXPECT_TRUE(storage.ok());
    auto model = PersonalModel::open(std::move(storage).value(), {.items = items_}, options_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }
  // Waits for the answer of a change.
  template <typename Change>
  static Status wait_for(const Change& change) {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Status> answer;
    const Status status = change([&](const Status& written) {
      const std::lock_guard lock(mutex);
      answer = written;
      changed.notify_all();
    });
    if (!status.ok()) return status;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return answer.has_value(); });
    return *answer;
  }
  static void observe(PersonalModel& model, uint64_t user, const std::vector<UserObservation>& observations) {
    ASSERT_TRUE(wait_for([&](auto done) { return model.observe(user, observations, done); }).ok());
  }
  static void merge(PersonalModel& model, const std::vector<std::byte>& copy) {
    ASSERT_TRUE(wait_for([&](auto done) { return model.merge(copy, done); }).ok());
  }
  static void forget(PersonalModel& model, uint64_t user) {
    ASSERT_TRUE(wait_for([&](auto done) { return model.forget(user, done); }).ok());
  }
  static void wait_for_snapshot(PersonalModel& model) {
    const uint64_t before = model.snapshots();
    model.request_snapshot();
    while (model.snapshots() == before) ::sched_yield();
  }

  const TestFolder folder_{"shared_users"};
  const std::shared_ptr<const ItemTable> items_ = drawn_items(folder_.path, 8, 100);
  PersonalModel::Options options_{.exploration = {.kind = ExplorationKind::kGreedy, .pool = 0}, .is_shared = true};
};

TEST_F(SharedUsersTest, CopiesMergeInAnyOrderAndAnyNumberOfTimes) {
  const auto a = open("a");
  const auto b = open("b");
  observe(*a, 1, {{1, 10, 2}, {2, 20, 3}});
  observe(*b, 1, {{3, 30, 4}, {2, 20, 3}});
  EXPECT_NE(a->digest(1).value(), b->digest(1).value());
  const std::vector<std::byte> of_a = a->copy(1).value();
  merge(*a, b->copy(1).value());
  merge(*b, of_a);
  merge(*b, of_a);
  EXPECT_EQ(a->observations(1).size(), 3u);
  EXPECT_EQ(b->observations(1).size(), 3u);
  EXPECT_EQ(a->digest(1).value(), b->digest(1).value());
  EXPECT_NEAR(a->predict(1, 10)->value, b->predict(1, 10)->value, 1e-5) << "weights follow from the same observations";
  EXPECT_EQ(b->statistics().observations, 2u) << "losses are those of the front end where it was observed";
}

TEST_F(SharedUsersTest, ACopyOfSomeObservationsHasNoOthers) {
  const auto a = open("a");
  const auto b = open("b");
  observe(*a, 1, {{1, 10, 2}, {2, 20, 3}});
  merge(*b, a->copy(1, {2}).value());
  ASSERT_EQ(b->observations(1).size(), 1u);
  EXPECT_EQ(b->observations(1).front().id, 2u);
  EXPECT_TRUE(a->copy(9).value().empty());
  EXPECT_TRUE(a->copy(9, {2}).value().empty());
}

TEST_F(SharedUsersTest, AForgottenUserDoesNotComeBackWithAnOldCopy) {
  for (const bool has_snapshot : {false, true}) {
    const uint64_t user = has_snapshot ? 1 : 2;
    std::vector<std::byte> old;
    UserDigest forgotten;
    {
      const auto a = open("a");
      observe(*a, user, {{1, 10, 2}});
      old = a->copy(user).value();
      EXPECT_NE(a->predict(user, 10)->value, 0);
      forget(*a, user);
      EXPECT_TRUE(a->observations(user).empty());
      EXPECT_EQ(a->predict(user, 10)->value, a->predict(999, 10)->value) << "its weights are gone";
      forgotten = a->digest(user).value();
      EXPECT_EQ(forgotten.generation, 1u);
      merge(*a, old);
      EXPECT_EQ(a->digest(user).value(), forgotten);
      if (has_snapshot) wait_for_snapshot(*a);
    }
    const auto a = open("a");
    EXPECT_EQ(a->digest(user).value(), forgotten) << "after a restart";
    merge(*a, old);
    EXPECT_EQ(a->digest(user).value(), forgotten);
    observe(*a, user, {{5, 10, 2}});
    EXPECT_EQ(a->observations(user).size(), 1u) << "it may come again";
  }
}

TEST_F(SharedUsersTest, ALaterGenerationReplacesWhatIsThere) {
  const auto a = open("a");
  const auto b = open("b");
  observe(*a, 1, {{1, 10, 2}});
  merge(*b, a->copy(1).value());
  forget(*b, 1);
  observe(*b, 1, {{7, 20, 1}});
  merge(*a, b->copy(1).value());
  ASSERT_EQ(a->observations(1).size(), 1u);
  EXPECT_EQ(a->observations(1).front().id, 7u);
  EXPECT_EQ(a->digest(1).value(), b->digest(1).value());
  EXPECT_NEAR(a->predict(1, 20)->value, b->predict(1, 20)->value, 1e-5);
}

TEST_F(SharedUsersTest, AUserIsDroppedUnlessItHasChanged) {
  const auto a = open("a");
  observe(*a, 1, {{1, 10, 2}});
  const UserDigest before = a->digest(1).value();
  observe(*a, 1, {{2, 10, 2}});
  a->drop(before, [](const Status&) {});
  observe(*a, 2, {{1, 10, 2}});  // the log is in order
  EXPECT_EQ(a->observations(1).size(), 2u);
  EXPECT_TRUE(wait_for([&](auto done) {
                a->drop(a->digest(1).value(), done);
                return Status();
              }).ok());
  observe(*a, 2, {{2, 10, 2}});
  EXPECT_EQ(a->digest(1).value(), UserDigest{.user = 1});
  EXPECT_EQ(a->users(), 1u);
}

TEST_F(SharedUsersTest, DigestsListEachUserOnce) {
  const auto a = open("a");
  for (uint64_t user = 0; user < 10; ++user) observe(*a, user, {{1, 10, 2}});
  PersonalModel::UserPass place;
  std::vector<uint64_t> users;
  for (auto some = a->digests(place, 3).value(); !some.empty(); some = a->digests(place, 3).value()) {
    EXPECT_LE(some.size(), 3u);
    for (const UserDigest& one : some) users.push_back(one.user);
  }
  std::sort(users.begin(), users.end());
  EXPECT_EQ(users.size(), 10u);
  EXPECT_EQ(std::unique(users.begin(), users.end()), users.end());
}

TEST_F(SharedUsersTest, ACopyWithMoreThanARecordHoldsIsMergedInParts) {
  const auto a = open("a");
  const auto b = open("b");
  std::vector<UserObservation> many;
  for (uint64_t id = 0; id < 60'000; ++id) many.push_back({id, 10, 1});
  merge(*a, encode_copy(1, 0, many));
  EXPECT_EQ(a->observations(1).size(), 60'000u);
  merge(*b, a->copy(1).value());
  EXPECT_EQ(a->digest(1).value(), b->digest(1).value());
}

TEST_F(SharedUsersTest, BytesThatAreNoCopyAreRefused) {
  const auto a = open("a");
  std::vector<std::byte> copy = encode_copy(1, 0, {});
  copy.pop_back();
  EXPECT_EQ(a->merge(copy, [](const Status&) {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(a->merge(encode_record(1, {}), [](const Status&) {}).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
