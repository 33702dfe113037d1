// What every UserStore does: the suite that runs on RocksDB and on the fake; and what each does alone.
#include "foundation/store/user_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "foundation/base/random.h"
#include "foundation/store/rocks_user_store.h"
#include "foundation/store/simulated_user_store.h"
#include "foundation/store/test_records.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;
using Writes = std::vector<UserStore::Write>;

UserStore::Bytes value_of(std::string_view text) {
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

std::string text_of_user(UserStore& store, uint64_t user) {
  const auto value = store.get(user);
  if (!value.ok()) return value.status().message();
  return *value ? text_of(**value) : "none";
}

// A store that can be closed and opened again, as a process does that ends.
class StoreOwner {
 public:
  explicit StoreOwner(bool is_real) : is_real_(is_real) {
    std::filesystem::remove_all(folder);
    open();
  }
  ~StoreOwner() {
    rocks_.reset();
    std::filesystem::remove_all(folder);
  }
  StoreOwner(const StoreOwner&) = delete;
  StoreOwner& operator=(const StoreOwner&) = delete;

  UserStore& store() { return is_real_ ? static_cast<UserStore&>(*rocks_) : fake; }
  void open() {
    if (!is_real_) return;
    rocks_.reset();
    auto opened = RocksUserStore::open(folder, RocksUserStore::kBytesMin);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    rocks_ = std::move(opened).value();
  }
  void close() { rocks_.reset(); }
  bool is_in_files(uint64_t user, const std::string& text) {
    if (!is_real_) return fake.is_in_files(user);
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      std::ifstream in(file.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      if (bytes.find(text) != std::string::npos) return true;
    }
    return false;
  }

  SimulatedUserStore fake;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("foliot_user_store_{}", ::getpid());

 private:
  const bool is_real_;
  std::unique_ptr<RocksUserStore> rocks_;
};

class UserStoreTest : public ::testing::TestWithParam<bool> {
 protected:
  UserStore& store() { return owner_.store(); }
  std::vector<uint64_t> scanned(size_t bytes_max) {
    std::vector<uint64_t> users;
    std::optional<uint64_t> after;
    while (true) {
      const auto some = store().scan(after, bytes_max);
      EXPECT_TRUE(some.ok()) << some.status().message();
      if (!some.ok() || some->empty()) return users;
      for (const UserStore::Value& value : *some) users.push_back(value.user);
      after = users.back();
    }
  }
  StoreOwner owner_{GetParam()};
};

TEST_P(UserStoreTest, AValueIsThatOfTheLastWrite) {
  EXPECT_EQ(text_of_user(store(), 7), "none");
  ASSERT_TRUE(store().write(Writes{{7, value_of("a")}, {8, value_of("b")}}).ok());
  ASSERT_TRUE(store().write(Writes{{7, value_of("c")}, {9, value_of("")}}).ok());
  EXPECT_EQ(text_of_user(store(), 7), "c");
  EXPECT_EQ(text_of_user(store(), 8), "b");
  EXPECT_EQ(text_of_user(store(), 9), "") << "an empty value is one";
  ASSERT_TRUE(store().write(Writes{{7, std::nullopt}, {8, value_of("d")}, {8, std::nullopt}, {8, value_of("e")}}).ok());
  EXPECT_EQ(text_of_user(store(), 7), "none");
  EXPECT_EQ(text_of_user(store(), 8), "e") << "writes are in their order";
}

TEST_P(UserStoreTest, AScanHasAllUsersInTheOrderOfTheirNumbers) {
  const std::vector<uint64_t> users = {0, 1, 255, 256, 65'536, uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX};
  EXPECT_TRUE(scanned(1).empty());
  for (const uint64_t user : users) ASSERT_TRUE(store().write(Writes{{user, value_of("12345678")}}).ok());
  ASSERT_TRUE(store().set_note(value_of("a note")).ok());
  EXPECT_EQ(scanned(1), users) << "one at a time";
  EXPECT_EQ(scanned(1 << 20), users);
  EXPECT_EQ(store().scan({}, 24)->size(), 3U);
  ASSERT_TRUE(store().write(Writes{{256, std::nullopt}}).ok());
  EXPECT_EQ(store().scan(255, 1)->front().user, 65'536U);
  EXPECT_EQ(store().scan(254, 1)->front().user, 255U) << "one that is not there may be named";
}

TEST_P(UserStoreTest, TheNoteIsKeptBesideTheUsers) {
  EXPECT_FALSE(store().note()->has_value());
  ASSERT_TRUE(store().set_note(value_of("first")).ok());
  ASSERT_TRUE(store().set_note(value_of("second")).ok());
  EXPECT_EQ(text_of(**store().note()), "second");
  ASSERT_TRUE(store().set_note({}).ok());
  EXPECT_FALSE(store().note()->has_value());
}

TEST_P(UserStoreTest, WhatWasFlushedLasts) {
  ASSERT_TRUE(store().write(Writes{{7, value_of("a")}, {8, value_of("b")}}).ok());
  ASSERT_TRUE(store().set_note(value_of("noted")).ok());
  ASSERT_TRUE(store().flush().ok());
  owner_.fake.crash();
  owner_.open();
  EXPECT_EQ(text_of_user(store(), 7), "a");
  EXPECT_EQ(text_of_user(store(), 8), "b");
  EXPECT_EQ(text_of(**store().note()), "noted");
}

TEST_P(UserStoreTest, WhatIsPurgedIsInNoFile) {
  const std::string secret = "a text that no other user has";
  for (uint64_t user = 0; user < 100; ++user) {
    ASSERT_TRUE(store().write(Writes{{user, value_of(user == 50 ? secret : "x")}}).ok());
    if (user % 30 == 0) {
      ASSERT_TRUE(store().flush().ok());
    }
  }
  ASSERT_TRUE(store().flush().ok());
  EXPECT_TRUE(owner_.is_in_files(50, secret));
  ASSERT_TRUE(store().write(Writes{{50, std::nullopt}}).ok());
  ASSERT_TRUE(store().flush().ok());
  EXPECT_TRUE(owner_.is_in_files(50, secret)) << "erased, and not purged";
  ASSERT_TRUE(store().purge(std::vector<uint64_t>{50}).ok());
  EXPECT_FALSE(owner_.is_in_files(50, secret));
  EXPECT_EQ(text_of_user(store(), 49), "x");
  std::vector<uint64_t> all;
  for (uint64_t user = 0; user < 100; ++user) all.push_back(user);
  EXPECT_TRUE(store().purge(all).ok());
  EXPECT_EQ(scanned(1 << 20).size(), 99U);
}

TEST_P(UserStoreTest, AStoreThatIsClearedHasNothing) {
  ASSERT_TRUE(store().write(Writes{{7, value_of("a text of one")}}).ok());
  ASSERT_TRUE(store().set_note(value_of("noted")).ok());
  ASSERT_TRUE(store().flush().ok());
  ASSERT_TRUE(store().clear().ok());
  EXPECT_EQ(text_of_user(store(), 7), "none");
  EXPECT_FALSE(store().note()->has_value());
  EXPECT_FALSE(owner_.is_in_files(7, "a text of one"));
  ASSERT_TRUE(store().write(Writes{{7, value_of("b")}}).ok());
  EXPECT_EQ(text_of_user(store(), 7), "b");
}

// Against a map, with flushes and ends of the process.
TEST_P(UserStoreTest, RandomWritesAreThoseOfAMap) {
  Random random(4);
  std::map<uint64_t, std::string> expected;
  for (int turn = 0; turn < 300; ++turn) {
    Writes writes;
    for (uint64_t count = 1 + random.below(20); count > 0; --count) {
      const uint64_t user = random.below(200);
      if (random.below(5) == 0) {
        writes.push_back({user, std::nullopt});
        expected.erase(user);
        continue;
      }
      const std::string text(random.below(2000), static_cast<char>('a' + random.below(26)));
      writes.push_back({user, value_of(text)});
      expected[user] = text;
    }
    ASSERT_TRUE(store().write(writes).ok());
    if (random.below(20) == 0) {
      ASSERT_TRUE(store().flush().ok());
      owner_.fake.crash();
      owner_.open();
    }
    const uint64_t user = random.below(200);
    ASSERT_EQ(text_of_user(store(), user), expected.contains(user) ? expected[user] : "none");
  }
  std::vector<uint64_t> users;
  for (const auto& [user, text] : expected) users.push_back(user);
  EXPECT_EQ(scanned(5000), users);
}

INSTANTIATE_TEST_SUITE_P(Stores, UserStoreTest, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "RocksDb" : "Simulated"; });

TEST(RocksUserStoreTest, AWriteThatWasNotFlushedIsLostWithTheProcess) {
  StoreOwner owner(true);
  ASSERT_TRUE(owner.store().write(Writes{{7, value_of("a")}}).ok());
  ASSERT_TRUE(owner.store().flush().ok());
  ASSERT_TRUE(owner.store().write(Writes{{7, value_of("b")}}).ok());
  owner.open();
  EXPECT_EQ(text_of_user(owner.store(), 7), "a");
}

TEST(RocksUserStoreTest, ADamagedValueIsAnError) {
  StoreOwner owner(true);
  ASSERT_TRUE(owner.store().write(Writes{{7, value_of(std::string(5000, 'x'))}}).ok());
  ASSERT_TRUE(owner.store().flush().ok());
  owner.close();
  for (const auto& file : std::filesystem::directory_iterator(owner.folder)) {
    if (file.path().extension() != ".sst") continue;
    std::fstream bytes(file.path(), std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(2000);
    bytes.put('y');
  }
  owner.open();
  const auto value = owner.store().get(7);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().code(), StatusCode::kInternal);
  EXPECT_THAT(value.status().message(), HasSubstr(owner.folder.string() + ": cannot read: Corruption"));
  EXPECT_FALSE(owner.store().scan({}, 1).ok());
}

TEST(RocksUserStoreTest, AFolderThatIsDamagedIsRefusedAndMayBeRemoved) {
  StoreOwner owner(true);
  ASSERT_TRUE(owner.store().write(Writes{{7, value_of("a")}}).ok());
  ASSERT_TRUE(owner.store().flush().ok());
  owner.close();
  std::ofstream(owner.folder / "CURRENT") << "no manifest";
  const auto opened = RocksUserStore::open(owner.folder, RocksUserStore::kBytesMin);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(), HasSubstr("cannot open it"));
  ASSERT_TRUE(RocksUserStore::remove_all(owner.folder).ok());
  owner.open();
  EXPECT_EQ(text_of_user(owner.store(), 7), "none");
  EXPECT_THAT(RocksUserStore::open(owner.folder, 1).status().message(), HasSubstr("1 bytes for RocksDB: must be"));
}

TEST(SimulatedUserStoreTest, ACrashLosesTheLastWrites) {
  bool has_lost = false;
  bool has_kept = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedUserStore store(seed, {});
    for (uint64_t user = 0; user < 10; ++user) {
      ASSERT_TRUE(store.write(Writes{{user, value_of("a")}}).ok());
      if (user == 4) {
        ASSERT_TRUE(store.flush().ok());
      }
    }
    store.crash();
    const size_t kept = store.values();
    EXPECT_GE(kept, 5U);
    for (uint64_t user = 0; user < kept; ++user) EXPECT_TRUE(store.has(user)) << "the first ones stay";
    has_lost = has_lost || kept < 10;
    has_kept = has_kept || kept > 5;
  }
  EXPECT_TRUE(has_lost && has_kept);
}

TEST(SimulatedUserStoreTest, FaultsAreErrors) {
  SimulatedUserStore store(1, {.failed_read = 1});
  ASSERT_TRUE(store.write(Writes{{7, value_of("a")}}).ok());
  EXPECT_FALSE(store.get(7).ok());
  EXPECT_FALSE(store.scan({}, 1).ok());
  store.set_faults({.failed_write = 1});
  EXPECT_FALSE(store.write(Writes{{7, value_of("b")}}).ok());
  store.set_faults({.disk_full = 1});
  EXPECT_EQ(store.write(Writes{{7, value_of("b")}}).code(), StatusCode::kResourceExhausted);
  store.set_faults({});
  EXPECT_EQ(text_of_user(store, 7), "a") << "nothing of a write that failed is there";
  store.damage(7);
  EXPECT_FALSE(store.get(7).ok());
  ASSERT_TRUE(store.write(Writes{{7, value_of("b")}}).ok());
  EXPECT_EQ(text_of_user(store, 7), "b");
}

}  // namespace
}  // namespace foliot
