#include "edge/jobs/shared_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "edge/jobs/fake_job_kind.h"
#include "edge/jobs/redis_job_keys.h"
#include "foundation/net/test_redis_server.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SharedJobsTest : public testing::Test {
 protected:
  SharedJobsOptions options(const std::string& name) {
    return {.redis = redis_.address(),
            .name = name,
            .folder_mark = "folder",
            .times = {.lease = Duration::seconds(3), .margin = Duration::milliseconds(600)},
            .read_interval = Duration::milliseconds(10),
            .take_interval = Duration::milliseconds(5),
            .answer_wait = answer_wait_,
            .now = monotonic_now,
            .make_id = [this] { return fmt::format("id{}", ++ids_); },
            .on_failure = [this](const std::string& line) { note(line); }};
  }
  // Another server, which shares jobs.
  SharedJobs& add(const std::string& name) {
    servers_.push_back(std::make_unique<SharedJobs>(options(name)));
    begin(*servers_.back());
    return *servers_.back();
  }
  void begin(SharedJobs& server) {
    ASSERT_TRUE(server.start([this](std::unique_ptr<JobStore> store) { return open_runner(std::move(store)); }).ok());
    eventually([&] { return server.readable().ok(); });
  }
  Result<std::unique_ptr<JobRunner>> open_runner(std::unique_ptr<JobStore> store) {
    JobRunnerOptions runner{.limits = {.jobs_max = 10},
                            .store_retry = Duration::milliseconds(5),
                            .keeps_waiting = true,
                            .why_stopped = "it keeps them no more",
                            .now = [this] { return TimePoint() + Duration::milliseconds(++milliseconds_); },
                            .make_id = [this] { return fmt::format("job{}", ++ids_); }};
    FOLIOT_ASSIGN_OR_RETURN(auto opened, JobRunner::open(runner, std::move(store), nullptr));
    opened->add(kind_);
    return opened;
  }
  void note(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_ += line + "\n";
  }
  std::string lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  static void eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  SharedJobs& keeper() {
    SharedJobs* found = nullptr;
    eventually([&] {
      for (const auto& server : servers_) found = server->is_keeper() ? server.get() : found;
      return found != nullptr;
    });
    return *found;
  }
  SharedJobs& follower() {
    const SharedJobs& keeper = this->keeper();
    for (const auto& server : servers_) {
      if (server.get() != &keeper) return *server;
    }
    ADD_FAILURE() << "there is none";
    return *servers_.front();
  }
  static Result<Job> submit(SharedJobs& server, const std::string& request = "{}") {
    std::promise<Result<Job>> promise;
    server.submit({.kind = "stepped", .owner = "o", .request = request, .webhook = {}}, [&](Result<Job> job) {
      EXPECT_TRUE(!job.ok() || server.find(job->id)) << "a client that was answered sees the job";
      promise.set_value(std::move(job));
    });
    return promise.get_future().get();
  }
  static Result<Job> cancel(SharedJobs& server, const std::string& id) {
    std::promise<Result<Job>> promise;
    server.cancel(id, [&](Result<Job> job) { promise.set_value(std::move(job)); });
    return promise.get_future().get();
  }
  // At all servers.
  void await(const std::string& id, const std::function<bool(const Job&)>& condition) {
    for (const auto& server : servers_) {
      eventually([&] {
        const std::optional<Job> job = server->find(id);
        return job && condition(*job);
      });
    }
  }
  void await(const std::string& id, JobState state) {
    await(id, [&](const Job& job) { return job.state == state; });
  }
  RedisReply redis(const std::vector<std::string>& words) {
    RedisConnection connection(redis_.address());
    Result<RedisReply> reply = connection.call(words);
    EXPECT_TRUE(reply.ok()) << reply.status().message();
    return std::move(reply).value();
  }
  // As a server that this test does not have.
  void give_lease_away(const std::string& milliseconds) {
    redis({"SET", redis_job_key("lease"), "thief the thief", "PX", milliseconds});
  }

  TestRedisServer redis_;
  FakeJobKind kind_;
  Duration answer_wait_ = Duration::seconds(60);
  std::atomic<int> ids_{0};
  std::atomic<int64_t> milliseconds_{0};
  std::mutex mutex_;
  std::string lines_;
  std::vector<std::unique_ptr<SharedJobs>> servers_;
};

TEST_F(SharedJobsTest, EachServerAnswersEveryCall) {
  for (const char* name : {"a", "b", "c"}) add(name);
  kind_.allow(3);
  const Result<Job> job = submit(follower());
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->owner, "o");
  await(job->id, JobState::kSucceeded);
  const Result<Job> second = submit(keeper());
  ASSERT_TRUE(second.ok());
  await(second->id, [](const Job& shown) { return shown.waiting == "the test"; });
  EXPECT_TRUE(cancel(follower(), second->id)->cancel_requested);
  await(second->id, JobState::kCancelled);
  for (const auto& server : servers_) {
    ASSERT_EQ(server->list().size(), 2u);
    EXPECT_EQ(server->list()[0].id, job->id);
  }
}

TEST_F(SharedJobsTest, RefusalsOfTheKeeperArriveAtFollowers) {
  add("a");
  add("b");
  const Status refused = submit(follower(), R"({"wrong":true})").status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(), "'wrong' is wrong");
  EXPECT_EQ(cancel(follower(), "nothing").status().code(), StatusCode::kNotFound);
}

TEST_F(SharedJobsTest, AnotherGoesOnWhenTheKeeperStops) {
  add("a");
  add("b");
  const std::string id = submit(follower())->id;
  kind_.allow(2);
  await(id, [](const Job& job) { return job.done == 2; });
  SharedJobs& first = keeper();
  first.stop();
  EXPECT_FALSE(first.is_keeper());
  EXPECT_EQ(submit(first).status().message(), "the server is shutting down");
  servers_.erase(std::ranges::find_if(servers_, [&](const auto& server) { return server.get() == &first; }));
  kind_.allow(1);
  await(id, JobState::kSucceeded);
  EXPECT_EQ(kind_.steps_left(), 0) << "each step is done once";
}

TEST_F(SharedJobsTest, AKeeperWithoutTheLeaseEndsWhatItRuns) {
  add("a");
  add("b");
  const std::string id = submit(keeper())->id;
  kind_.await_runs(1);
  give_lease_away("1500");
  eventually([&] { return !servers_[0]->is_keeper() && !servers_[1]->is_keeper(); });
  eventually([&] { return lines().find("does not keep the jobs") != std::string::npos; });
  kind_.await_runs(2);
  kind_.allow(3);
  await(id, JobState::kSucceeded);
}

TEST_F(SharedJobsTest, WithoutRedisReadingGoesOnAndChangesAreRefused) {
  add("a");
  add("b");
  const std::string id = submit(keeper())->id;
  kind_.allow(1);
  await(id, [](const Job& job) { return job.done == 1; });
  redis_.stop();
  eventually([&] { return !servers_[0]->is_keeper() && !servers_[1]->is_keeper(); });
  for (const auto& server : servers_) {
    EXPECT_EQ(server->find(id)->done, 1u);
    EXPECT_EQ(server->list().size(), 1u);
    const Status refused = submit(*server).status();
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
    EXPECT_THAT(refused.message(), HasSubstr("nothing was done"));
    EXPECT_THAT(refused.message(), HasSubstr("unix:"));
  }
  redis_.start();
  kind_.allow(2);
  await(id, JobState::kSucceeded);
  EXPECT_EQ(kind_.steps_left(), 0) << "each step is done once";
  eventually([&] { return submit(follower()).ok(); });
}

TEST_F(SharedJobsTest, AServerThatStartsWithoutRedisWaitsForIt) {
  redis_.stop();
  SharedJobs& server = *servers_.emplace_back(std::make_unique<SharedJobs>(options("a")));
  EXPECT_EQ(server.connect().code(), StatusCode::kUnavailable);
  EXPECT_EQ(server.readable().code(), StatusCode::kUnavailable);
  EXPECT_EQ(submit(server).status().message(), "the server is starting");
  ASSERT_TRUE(server.start([this](std::unique_ptr<JobStore> store) { return open_runner(std::move(store)); }).ok());
  EXPECT_EQ(submit(server).status().code(), StatusCode::kUnavailable);
  eventually([&] { return server.readable().message().find("cannot be read yet") != std::string::npos; });
  redis_.start();
  eventually([&] { return server.readable().ok(); });
  eventually([&] { return submit(server).ok(); });
}

TEST_F(SharedJobsTest, AChangeThatTheKeeperDoesNotTakeIsWithdrawn) {
  answer_wait_ = Duration::milliseconds(100);
  give_lease_away("600000");
  const Status refused = submit(add("a")).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("'the thief', which keeps the jobs, did not answer; nothing was done"));
  EXPECT_EQ(redis({"LLEN", redis_job_key("changes")}).number, 0);
}

TEST_F(SharedJobsTest, AChangeThatTheKeeperTookMayBeDone) {
  answer_wait_ = Duration::seconds(2);
  give_lease_away("600000");
  SharedJobs& server = add("a");
  std::promise<Result<Job>> promise;
  server.submit({.kind = "stepped", .owner = {}, .request = "{}", .webhook = {}},
                [&](Result<Job> job) { promise.set_value(std::move(job)); });
  eventually([&] { return !redis({"LPOP", redis_job_key("changes")}).is_none(); });
  EXPECT_THAT(promise.get_future().get().status().message(), HasSubstr("it may be done yet: look at the list of jobs"));
}

TEST_F(SharedJobsTest, ChangesThatWaitAreBoundedAndAllAreAnswered) {
  give_lease_away("600000");
  SharedJobs& server = add("a");
  std::atomic<int> answers = 0;
  for (size_t i = 0; i < PassedChanges::kWaitingMax; ++i) server.cancel("x", [&](const Result<Job>&) { ++answers; });
  EXPECT_EQ(answers, 0);
  EXPECT_THAT(cancel(server, "x").status().message(), HasSubstr("64 submissions and cancellations wait, the limit"));
  server.stop();
  EXPECT_EQ(answers, 64);
  EXPECT_EQ(redis({"LLEN", redis_job_key("changes")}).number, 0) << "withdrawn";
}

TEST_F(SharedJobsTest, JobsWhosePlacesWereTakenAreForgottenByAll) {
  add("a");
  add("b");
  kind_.allow(36);
  std::string last;
  for (int i = 0; i < 12; ++i) {
    const Result<Job> job = submit(follower());
    ASSERT_TRUE(job.ok()) << job.status().message();
    last = job->id;
    await(last, JobState::kSucceeded);
  }
  for (const auto& server : servers_) eventually([&] { return server->list().size() == 10; });
}

TEST_F(SharedJobsTest, WhatRedisHasLostIsNotShown) {
  add("a");
  add("b");
  await(submit(follower())->id, JobState::kRunning);
  redis({"FLUSHALL"});
  for (const auto& server : servers_) eventually([&] { return server->list().empty(); });
  kind_.allow(100);
  eventually([&] { return submit(follower()).ok(); });
}

TEST_F(SharedJobsTest, AnotherFolderAndNewerJobsAreRefusedAtTheStart) {
  add("a");
  SharedJobsOptions elsewhere = options("b");
  elsewhere.folder_mark = "another";
  const Status folder = SharedJobs(elsewhere).connect();
  EXPECT_EQ(folder.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(folder.message(), HasSubstr("--jobs: is not the folder of the other front ends"));
  redis({"SET", redis_job_key("form"), "2"});
  const Status newer = SharedJobs(options("c")).connect();
  EXPECT_EQ(newer.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(newer.message(), HasSubstr("newer Foliot"));
}

TEST_F(SharedJobsTest, AServerThatCannotRunJobsLeavesThemToAnother) {
  SharedJobs& broken = *servers_.emplace_back(std::make_unique<SharedJobs>(options("broken")));
  ASSERT_TRUE(broken.start([](std::unique_ptr<JobStore>) { return Status::internal("it cannot"); }).ok());
  eventually([&] { return lines().find("jobs cannot run here: it cannot") != std::string::npos; });
  add("sound");
  EXPECT_TRUE(submit(broken).ok());
}

}  // namespace
}  // namespace foliot
