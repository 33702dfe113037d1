// What every JobStore does.
#include "edge/jobs/job_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "edge/jobs/fake_job_store.h"
#include "edge/jobs/redis_job_lease.h"
#include "edge/jobs/redis_job_store.h"
#include "edge/jobs/sqlite_job_store.h"
#include "foundation/net/test_redis_server.h"

namespace foliot {
namespace {

// A place, and stores over it, one after the other.
class JobPlace {
 public:
  virtual ~JobPlace() = default;
  virtual std::unique_ptr<JobStore> open() = 0;
};

class FakePlace : public JobPlace {
 public:
  std::unique_ptr<JobStore> open() override { return std::make_unique<FakeJobStore>(disk_); }

 private:
  const std::shared_ptr<FakeJobStore::Disk> disk_ = std::make_shared<FakeJobStore::Disk>();
};

class SqlitePlace : public JobPlace {
 public:
  ~SqlitePlace() override { std::filesystem::remove(file_); }
  std::unique_ptr<JobStore> open() override {
    Result<std::unique_ptr<SqliteJobStore>> store = SqliteJobStore::open(file_);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }

 private:
  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("foliot_job_contract_{}.sqlite", ::getpid());
};

// With the lease that its stores write by.
class RedisPlace : public JobPlace {
 public:
  std::unique_ptr<JobStore> open() override {
    const std::string token = fmt::format("token{}", ++stores_);
    EXPECT_TRUE(lease_.release(fmt::format("token{}", stores_ - 1)).ok());
    EXPECT_TRUE(lease_.take(token, Duration::seconds(600))->is_mine);
    return std::make_unique<RedisJobStore>(server_.address(), token);
  }

 private:
  TestRedisServer server_;
  RedisJobLease lease_{server_.address(), "test"};
  int stores_ = 0;
};

struct JobStoreCase {
  const char* name;
  std::unique_ptr<JobPlace> (*make)();
};
void PrintTo(const JobStoreCase& value, std::ostream* out) { *out << value.name; }

class JobStoreContract : public testing::TestWithParam<JobStoreCase> {
 protected:
  // By another process, as it were.
  std::vector<Job> kept() {
    store_.reset();
    store_ = place_->open();
    const Result<std::vector<Job>> all = store_->read();
    EXPECT_TRUE(all.ok()) << all.status().message();
    return all.ok() ? *all : std::vector<Job>();
  }
  static Job job(const std::string& id, uint64_t number) {
    return {.id = id, .number = number, .kind = "offline", .request = R"({"model":"m \"é\""})", .total = 5};
  }

  const std::unique_ptr<JobPlace> place_ = GetParam().make();
  std::unique_ptr<JobStore> store_ = place_->open();
};

TEST_P(JobStoreContract, IsEmptyAtFirst) { EXPECT_THAT(kept(), testing::IsEmpty()); }

TEST_P(JobStoreContract, KeepsJobsInTheOrderOfTheirNumbers) {
  for (const Job& each : {job("b", 10), job("c", 9), job("a", 2)}) ASSERT_TRUE(store_->put(each).ok());
  EXPECT_THAT(kept(), testing::ElementsAre(job("a", 2), job("c", 9), job("b", 10)));
}

TEST_P(JobStoreContract, ReplacesTheJobOfAnId) {
  Job changed = job("a", 1);
  ASSERT_TRUE(store_->put(changed).ok());
  ASSERT_TRUE(store_->put(job("b", 2)).ok());
  changed.state = JobState::kRunning;
  changed.done = 3;
  changed.webhook = JobWebhook{.url = "http://h/", .error = ""};
  ASSERT_TRUE(store_->put(changed).ok());
  EXPECT_THAT(kept(), testing::ElementsAre(changed, job("b", 2)));
}

TEST_P(JobStoreContract, RemovesAJob) {
  ASSERT_TRUE(store_->put(job("a", 1)).ok());
  ASSERT_TRUE(store_->put(job("b", 2)).ok());
  ASSERT_TRUE(store_->remove("a").ok());
  ASSERT_TRUE(store_->remove("a").ok()) << "it is gone, as asked";
  EXPECT_THAT(kept(), testing::ElementsAre(job("b", 2)));
}

TEST_P(JobStoreContract, KeepsManyAndLargeJobs) {
  for (uint64_t i = 1; i <= 30; ++i) {
    Job large = job(fmt::format("{:04}", i), i);
    large.error = std::string(kJobRequestBytesMax, 'x');
    ASSERT_TRUE(store_->put(large).ok());
  }
  const std::vector<Job> all = kept();
  ASSERT_EQ(all.size(), 30u);
  EXPECT_EQ(all.back().error.size(), kJobRequestBytesMax);
}

INSTANTIATE_TEST_SUITE_P(
    All, JobStoreContract,
    testing::Values(
        JobStoreCase{"Fake", []() -> std::unique_ptr<JobPlace> { return std::make_unique<FakePlace>(); }},
        JobStoreCase{"Sqlite", []() -> std::unique_ptr<JobPlace> { return std::make_unique<SqlitePlace>(); }},
        JobStoreCase{"Redis", []() -> std::unique_ptr<JobPlace> { return std::make_unique<RedisPlace>(); }}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace foliot
