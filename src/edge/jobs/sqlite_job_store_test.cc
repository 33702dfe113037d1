#include "edge/jobs/sqlite_job_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SqliteJobStoreTest : public testing::Test {
 protected:
  ~SqliteJobStoreTest() override { std::filesystem::remove(file_); }
  void fill(uint64_t jobs) {
    auto store = SqliteJobStore::open(file_).value();
    for (uint64_t i = 1; i <= jobs; ++i) ASSERT_TRUE(store->put(job(i)).ok());
  }
  static Job job(uint64_t number) {
    return {.id = fmt::format("{}", number),
            .number = number,
            .kind = "offline",
            .request = "{}",
            .error = std::string(900, 'e')};
  }
  void execute(const char* statement) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, statement, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  Status opened() { return SqliteJobStore::open(file_).status(); }

  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("foliot_jobs_{}.sqlite", ::getpid());
};

TEST_F(SqliteJobStoreTest, ADamagedJobIsNamedAndLeftOut) {
  fill(3);
  execute("UPDATE jobs SET job = '{' WHERE id = '2'");
  std::string damaged;
  auto store = SqliteJobStore::open(file_, {.on_damaged = [&](const std::string& what) { damaged += what; }}).value();
  const auto jobs = store->read();
  ASSERT_TRUE(jobs.ok()) << jobs.status().message();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->back(), job(3));
  EXPECT_THAT(damaged, HasSubstr(file_.string() + ": job '2' is damaged, and left out"));
}

TEST_F(SqliteJobStoreTest, ANewerDatabaseIsNamed) {
  fill(1);
  execute("PRAGMA user_version = 2");
  EXPECT_EQ(opened().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(opened().message(),
              AllOf(HasSubstr(file_.string()), HasSubstr("newer Foliot, in form 2"), HasSubstr("--jobs")));
}

TEST_F(SqliteJobStoreTest, ADatabaseOfAnotherProgramIsLeftAsItIs) {
  execute("CREATE TABLE jobs (name TEXT)");
  EXPECT_EQ(opened().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(opened().message(), HasSubstr("another program"));
}

TEST_F(SqliteJobStoreTest, WhatIsNoDatabaseIsNamed) {
  std::ofstream(file_) << std::string(5000, 'x');
  EXPECT_EQ(opened().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(opened().message(), AllOf(HasSubstr(file_.string()), HasSubstr("move it away")));
}

TEST_F(SqliteJobStoreTest, ADamagedDatabaseIsNamed) {
  fill(30);
  {
    // The pages behind the first, which has the schema.
    std::fstream damaged(file_, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(4096);
    damaged << std::string(8192, '\x5a');
  }
  EXPECT_EQ(opened().code(), StatusCode::kInternal) << opened().message();
  EXPECT_THAT(opened().message(), AllOf(HasSubstr(file_.string()), HasSubstr("restore it from a backup")));
}

TEST_F(SqliteJobStoreTest, OneProcessUsesIt) {
  const auto first = SqliteJobStore::open(file_);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(opened().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(opened().message(), HasSubstr("another process uses it"));
}

TEST_F(SqliteJobStoreTest, AFullDiskIsAnErrorAndLosesNothing) {
  fill(1);
  {
    auto store = SqliteJobStore::open(file_, {.pages_max = 8}).value();
    Status status;
    uint64_t next = 2;
    while ((status = store->put(job(next))).ok()) ++next;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr(file_.string()), HasSubstr("free space")));
    EXPECT_EQ(store->read()->size(), next - 1);
    // All of a page or two.
    for (const char* id : {"1", "2", "3", "4", "5", "6", "7", "8"}) ASSERT_TRUE(store->remove(id).ok());
    EXPECT_TRUE(store->put(job(next)).ok()) << "there is room again";
  }
  EXPECT_TRUE(opened().ok());
}

TEST_F(SqliteJobStoreTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(SqliteJobStore::open("/nowhere/jobs.sqlite").status().message(), HasSubstr("/nowhere/jobs.sqlite"));
}

}  // namespace
}  // namespace foliot
