#include "edge/jobs/job_runner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "edge/jobs/fake_job_kind.h"
#include "edge/jobs/fake_job_store.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kGiveUp = std::chrono::seconds(60);

class FakeWebhooks : public WebhookSender {
 public:
  Status check(const std::string& url) const override {
    return url == "http://allowed/" ? Status() : Status::invalid_argument("not allowed");
  }
  Status send(const std::string& /*url*/, const std::string& json) override {
    const std::lock_guard lock(mutex_);
    sent_.push_back(json);
    return sent_.size() <= failures_ ? Status::unavailable("down") : Status();
  }
  void fail_first(size_t failures) { failures_ = failures; }
  std::vector<std::string> sent() {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> sent_;
  size_t failures_ = 0;
};

class JobRunnerTest : public testing::Test {
 protected:
  // As when a process begins, over what the one before kept.
  void begin() {
    JobRunnerOptions options{.running_max = 2,
                             .limits = {.jobs_max = 10, .webhook_wait_first = Duration::milliseconds(1)},
                             .store_retry = Duration::milliseconds(1),
                             .keeps_waiting = keeps_waiting_,
                             .now = [this] { return TimePoint() + Duration::milliseconds(++milliseconds_); },
                             .make_id = [this] { return fmt::format("job{}", ++ids_); },
                             .elsewhere = {{"far", "ask the far one"}},
                             .on_failure =
                                 [this](const std::string& line) {
                                   const std::lock_guard lock(mutex_);
                                   lines_.push_back(line);
                                 }};
    Result<std::unique_ptr<JobRunner>> opened =
        JobRunner::open(options, std::make_unique<FakeJobStore>(disk_), &webhooks_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    runner_ = std::move(opened).value();
    runner_->add(kind_);
    ASSERT_TRUE(runner_->start().ok());
  }
  Result<Job> submit(const JobRequest& request) {
    std::promise<Result<Job>> promise;
    runner_->submit(request, [&](Result<Job> job) { promise.set_value(std::move(job)); });
    return promise.get_future().get();
  }
  Result<Job> submit() { return submit({.kind = "stepped", .request = "{}"}); }
  Result<Job> cancel(const std::string& id) {
    std::promise<Result<Job>> promise;
    runner_->cancel(id, [&](Result<Job> job) { promise.set_value(std::move(job)); });
    return promise.get_future().get();
  }
  // Waits for what another thread does.
  static void eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kGiveUp;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::yield();
    }
  }
  Job await(const std::string& id, JobState state) {
    eventually([&] { return runner_->find(id)->state == state; });
    return *runner_->find(id);
  }
  std::vector<Job> kept() { return *FakeJobStore(disk_).read(); }

  const std::shared_ptr<FakeJobStore::Disk> disk_ = std::make_shared<FakeJobStore::Disk>();
  bool keeps_waiting_ = false;
  FakeJobKind kind_;
  FakeWebhooks webhooks_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::atomic<int64_t> milliseconds_{0};
  std::atomic<int> ids_{0};
  std::unique_ptr<JobRunner> runner_;
};

TEST_F(JobRunnerTest, RunsJobsAndKeepsThem) {
  begin();
  kind_.allow(3);
  const Result<Job> job = submit();
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state, JobState::kQueued);
  EXPECT_EQ(job->total, 3u);
  EXPECT_EQ(await(job->id, JobState::kSucceeded).done, 3u);
  runner_->stop();
  EXPECT_THAT(kept(), ElementsAre(*runner_->find(job->id)));
}

TEST_F(JobRunnerTest, ProgressThatClientsSeeIsKept) {
  uint64_t kept_done = 0;
  disk_->on_put = [&](const Job& job) {
    const std::optional<Job> shown = runner_->find(job.id);
    EXPECT_LE(shown ? shown->done : 0, kept_done);
    kept_done = job.done;
  };
  begin();
  kind_.allow(3);
  await(submit()->id, JobState::kSucceeded);
  runner_->stop();
  EXPECT_EQ(kept_done, 3u);
}

TEST_F(JobRunnerTest, AFailedJobHasItsReason) {
  begin();
  kind_.fail(Status::internal("no luck"));
  kind_.allow(3);
  EXPECT_EQ(await(submit()->id, JobState::kFailed).error, "no luck");
}

TEST_F(JobRunnerTest, SoManyRunAtATimeAndOthersWait) {
  begin();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(submit().ok());
  kind_.await_runs(2);
  EXPECT_EQ(runner_->find("job3")->state, JobState::kQueued);
  kind_.allow(15);
  await("job5", JobState::kSucceeded);
  EXPECT_EQ(kind_.running_most(), 2);
}

TEST_F(JobRunnerTest, WhatAKindRefusesIsNotKept) {
  begin();
  const Result<Job> wrong = submit({.kind = "stepped", .request = R"({"wrong":true})"});
  EXPECT_EQ(wrong.status().message(), "'wrong' is wrong");
  EXPECT_THAT(submit({.kind = "other", .request = "{}"}).status().message(), HasSubstr("there are: stepped"));
  EXPECT_EQ(submit({.kind = "far", .request = "{}"}).status().message(),
            "jobs of kind 'far' do not run here: ask the far one");
  EXPECT_THAT(runner_->list(), testing::IsEmpty());
  EXPECT_THAT(kept(), testing::IsEmpty());
}

TEST_F(JobRunnerTest, AnInterruptedJobGoesOnWhereItWas) {
  begin();
  const std::string id = submit()->id;
  kind_.allow(2);
  eventually([&] { return runner_->find(id)->done == 2; });
  runner_->stop();
  EXPECT_EQ(kept().at(0).state, JobState::kQueued);
  EXPECT_EQ(kept().at(0).done, 2u);
  begin();
  kind_.allow(1);
  EXPECT_EQ(await(id, JobState::kSucceeded).done, 3u);
}

TEST_F(JobRunnerTest, AJobThatItsProcessLeftRunningGoesOn) {
  // As a process that was killed leaves it.
  Job job{.id = "old",
          .number = 4,
          .kind = "stepped",
          .request = "{}",
          .state = JobState::kRunning,
          .done = 1,
          .total = 3,
          .starts = 1};
  ASSERT_TRUE(FakeJobStore(disk_).put(job).ok());
  begin();
  kind_.allow(2);
  EXPECT_EQ(await("old", JobState::kSucceeded).done, 3u);
  EXPECT_EQ(submit()->number, 5u);
}

TEST_F(JobRunnerTest, AJobOfAKindThatIsGoneFails) {
  ASSERT_TRUE(FakeJobStore(disk_).put({.id = "old", .number = 4, .kind = "gone", .request = "{}"}).ok());
  begin();
  EXPECT_THAT(await("old", JobState::kFailed).error, HasSubstr("'gone'"));
}

TEST_F(JobRunnerTest, CancelsWhatRunsAndWhatWaits) {
  begin();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(submit().ok());
  kind_.await_runs(2);
  EXPECT_EQ(cancel("job3")->state, JobState::kCancelled);
  EXPECT_TRUE(cancel("job1")->cancel_requested);
  await("job1", JobState::kCancelled);
  EXPECT_EQ(cancel("job1").status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(cancel("nothing").status().code(), StatusCode::kNotFound);
  kind_.allow(3);
  await("job2", JobState::kSucceeded);
  runner_->stop();
  EXPECT_EQ(kept().at(0).state, JobState::kCancelled);
}

TEST_F(JobRunnerTest, WhatIsCancelledBeforeItRunsGivesBackWhatItClaimed) {
  begin();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(submit().ok());
  kind_.await_runs(2);
  ASSERT_TRUE(cancel("job3").ok());
  EXPECT_EQ(kind_.claimed(), 2u);
  ASSERT_TRUE(cancel("job1").ok());
  await("job1", JobState::kCancelled);
  EXPECT_EQ(kind_.claimed(), 2u) << "its run knows what to leave";
}

TEST_F(JobRunnerTest, AFullDiskRefusesSubmissionsAndJobsGoOn) {
  begin();
  const std::string id = submit()->id;
  kind_.await_runs(1);
  eventually([&] { return disk_->puts == 2; });  // that it began, too
  disk_->full = true;
  const Result<Job> refused = submit();
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("the job cannot be kept: the fake disk is full"));
  EXPECT_EQ(kind_.claimed(), 1u) << "what the refused one claimed was given back";
  kind_.allow(3);
  await(id, JobState::kSucceeded);
  EXPECT_EQ(kept().at(0).state, JobState::kRunning);
  disk_->full = false;
  eventually([&] { return kept().at(0).state == JobState::kSucceeded; });
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("cannot be kept now: the fake disk is full")));
}

TEST_F(JobRunnerTest, ARefusedSubmissionThatTheStoreHasIsRemoved) {
  begin();
  const std::string first = submit()->id;
  disk_->fails_after_put = true;
  EXPECT_EQ(submit().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(kept().size(), 2u) << "the store has it, and its answer was lost";
  disk_->fails_after_put = false;
  const Result<Job> next = submit();
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->number, 3u) << "of no two jobs the same";
  eventually([&] { return kept().size() == 2; });
  EXPECT_EQ(kept().at(0).id, first);
  EXPECT_EQ(kept().at(1).id, next->id);
}

TEST_F(JobRunnerTest, WhyAJobWaitsIsKeptIfThatIsAsked) {
  keeps_waiting_ = true;
  begin();
  const std::string id = submit()->id;
  eventually([&] { return kept().at(0).waiting == "the test"; });
}

TEST_F(JobRunnerTest, BeginsWhileTheDiskIsFull) {
  Job job{.id = "old", .number = 1, .kind = "stepped", .request = "{}", .state = JobState::kRunning, .total = 3};
  job.cancel_requested = true;
  ASSERT_TRUE(FakeJobStore(disk_).put(job).ok());
  disk_->full = true;
  begin();
  EXPECT_EQ(runner_->find("old")->state, JobState::kCancelled);
  EXPECT_EQ(kept().at(0).state, JobState::kRunning);
  disk_->full = false;
  eventually([&] { return kept().at(0).state == JobState::kCancelled; });
}

TEST_F(JobRunnerTest, WebhooksAreSentUntilTheyArrive) {
  begin();
  webhooks_.fail_first(2);
  kind_.allow(3);
  EXPECT_FALSE(submit({.kind = "stepped", .request = "{}", .webhook = "http://other/"}).ok());
  const std::string id = submit({.kind = "stepped", .request = "{}", .webhook = "http://allowed/"})->id;
  eventually([&] { return runner_->find(id)->webhook->state == JobWebhook::State::kDelivered; });
  EXPECT_EQ(runner_->find(id)->webhook->tries, 3u);
  EXPECT_EQ(webhooks_.sent().size(), 3u);
  EXPECT_THAT(webhooks_.sent().back(), HasSubstr(R"("state":"succeeded")"));
}

TEST_F(JobRunnerTest, BeforeAndAfterItRunsNothingIsTaken) {
  begin();
  runner_->stop();
  EXPECT_EQ(submit().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(cancel("x").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace foliot
