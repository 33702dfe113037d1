#include "edge/jobs/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TimePoint at(int64_t seconds) { return TimePoint() + Duration::seconds(seconds); }

class JobTableTest : public testing::Test {
 protected:
  Job add(const std::string& id, const std::string& webhook = "") {
    Result<Job> job = table_.admit({.kind = "offline", .owner = "", .request = "{}", .webhook = webhook}, id, at(1));
    EXPECT_TRUE(job.ok()) << job.status().message();
    gone_ = table_.add(*job);
    return *job;
  }
  JobState state(const std::string& id) { return table_.find(id)->state; }
  // Another process, after this one was killed.
  JobTable restarted(std::vector<Job>* changed = nullptr) {
    JobTable other(limits_);
    const std::vector<Job> all = other.recover(table_.list(), at(100));
    if (changed != nullptr) *changed = all;
    return other;
  }

  const JobTable::Limits limits_{.jobs_max = 3, .starts_max = 2, .webhook_tries_max = 3};
  JobTable table_{limits_};
  std::vector<std::string> gone_;
};

TEST_F(JobTableTest, JobsRunInTheirOrderAndEnd) {
  add("a");
  add("b");
  EXPECT_EQ(state("a"), JobState::kQueued);
  EXPECT_EQ(table_.begin_next(at(2))->id, "a");
  EXPECT_EQ(table_.begin_next(at(3))->id, "b");
  EXPECT_EQ(table_.begin_next(at(4)), std::nullopt);
  EXPECT_EQ(table_.finish("b", Status(), at(5)).state, JobState::kSucceeded);
  const Job failed = table_.finish("a", Status::internal("why"), at(6));
  EXPECT_EQ(failed.state, JobState::kFailed);
  EXPECT_EQ(failed.error, "why");
  EXPECT_EQ(failed.created, at(1));
  EXPECT_EQ(failed.started, at(2));
  EXPECT_EQ(failed.ended, at(6));
  EXPECT_EQ(table_.count(JobState::kFailed), 1u);
}

TEST_F(JobTableTest, AJobThatRanWhenItsProcessEndedIsQueuedAgain) {
  add("a");
  add("b");
  table_.begin_next(at(2));
  table_.advance("a", {10, 30, {{"large", 10}}});
  std::vector<Job> changed;
  JobTable next = restarted(&changed);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].id, "a");
  const std::optional<Job> job = next.begin_next(at(101));
  EXPECT_EQ(job->id, "a") << "it was first, and still is";
  EXPECT_EQ(job->done, 10u);
  EXPECT_EQ(job->variants.at("large"), 10u);
  EXPECT_EQ(job->started, at(2));
  EXPECT_EQ(next.admit({.kind = "k"}, "c", at(1))->number, 3u);
}

TEST_F(JobTableTest, AJobThatEndsItsProcessTimeAndAgainFails) {
  add("a");
  table_.begin_next(at(2));
  table_ = restarted();
  table_.begin_next(at(3));
  std::vector<Job> changed;
  EXPECT_EQ(restarted(&changed).find("a")->state, JobState::kFailed);
  EXPECT_THAT(changed.at(0).error, HasSubstr("2 times without progress"));
  table_.advance("a", {1, 9});
  EXPECT_EQ(restarted().find("a")->state, JobState::kQueued) << "it advanced";
}

TEST_F(JobTableTest, StopsDoNotCountAsFailures) {
  add("a");
  for (int i = 0; i < 5; ++i) {
    table_.begin_next(at(2));
    EXPECT_EQ(table_.interrupt("a").state, JobState::kQueued);
    table_ = restarted();
  }
  EXPECT_EQ(state("a"), JobState::kQueued);
}

TEST_F(JobTableTest, CancellingAQueuedJobEndsIt) {
  add("a");
  EXPECT_EQ(table_.cancel("a", at(2))->state, JobState::kCancelled);
  EXPECT_EQ(table_.begin_next(at(3)), std::nullopt);
  EXPECT_EQ(table_.cancel("a", at(2)).status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(table_.cancel("a", at(2)).status().message(), HasSubstr("job 'a' has cancelled already"));
  EXPECT_EQ(table_.cancel("b", at(2)).status().code(), StatusCode::kNotFound);
}

TEST_F(JobTableTest, ARunningJobIsCancelledOnceItsRunIsOver) {
  add("a");
  table_.begin_next(at(2));
  EXPECT_FALSE(table_.is_cancelled("a"));
  EXPECT_EQ(table_.cancel("a", at(3))->state, JobState::kRunning);
  EXPECT_TRUE(table_.is_cancelled("a"));
  EXPECT_EQ(restarted().find("a")->state, JobState::kCancelled) << "it does not run again";
  EXPECT_EQ(table_.finish("a", Status::internal("ended early"), at(4)).state, JobState::kCancelled);
  EXPECT_EQ(table_.find("a")->error, "");
}

TEST_F(JobTableTest, WhyItWaitsIsShownUntilItAdvances) {
  add("a");
  table_.begin_next(at(2));
  table_.set_waiting("a", "busy");
  EXPECT_EQ(table_.find("a")->waiting, "busy");
  table_.advance("a", {0, 4});
  EXPECT_EQ(table_.find("a")->waiting, "busy");
  table_.advance("a", {1, 4});
  EXPECT_EQ(table_.find("a")->waiting, "");
}

TEST_F(JobTableTest, AtTheLimitTheFirstThatEndedGoes) {
  for (const char* id : {"a", "b", "c"}) add(id);
  EXPECT_EQ(table_.admit({.kind = "k"}, "d", at(2)).status().code(), StatusCode::kResourceExhausted);
  table_.begin_next(at(2));
  table_.begin_next(at(2));
  table_.finish("b", Status(), at(3));
  add("d");
  EXPECT_THAT(gone_, ElementsAre("b"));
  EXPECT_EQ(table_.find("b"), std::nullopt);
  EXPECT_EQ(table_.list().size(), 3u);
}

TEST_F(JobTableTest, WebhooksAreTriedAgainAndGivenUp) {
  add("a", "http://h/");
  EXPECT_EQ(table_.due_webhook(at(9)), std::nullopt) << "it has not ended";
  table_.begin_next(at(2));
  table_.finish("a", Status(), at(3));
  EXPECT_EQ(table_.due_webhook(at(3))->id, "a");
  EXPECT_EQ(table_.webhook_tried("a", Status::unavailable("down"), at(4)).webhook->error, "down");
  EXPECT_EQ(table_.due_webhook(at(4)), std::nullopt);
  EXPECT_EQ(table_.next_webhook(), at(5));
  EXPECT_EQ(restarted().next_webhook(), at(5)) << "it outlives the process";
  table_.webhook_tried("a", Status::unavailable("down"), at(5));
  EXPECT_EQ(table_.next_webhook(), at(7));
  EXPECT_EQ(table_.webhook_tried("a", Status::unavailable("down"), at(7)).webhook->state, JobWebhook::State::kFailed);
  EXPECT_TRUE(table_.next_webhook().is_infinite());
}

TEST_F(JobTableTest, OfTwoJobsOfOneNumberOneGetsAnother) {
  JobTable table({});
  const std::vector<Job> changed =
      table.recover({{.id = "a", .number = 3}, {.id = "b", .number = 3}, {.id = "c", .number = 4}}, at(1));
  EXPECT_EQ(table.list().size(), 3u);
  EXPECT_EQ(table.find("a")->number, 3u);
  EXPECT_EQ(table.find("b")->number, 4u);
  EXPECT_EQ(table.find("c")->number, 5u);
  EXPECT_EQ(changed.size(), 2u);
}

TEST_F(JobTableTest, AClockThatIsSetBackDelaysNoWebhook) {
  add("a", "http://h/");
  table_.begin_next(at(10'000));
  table_.finish("a", Status(), at(10'000));
  table_.webhook_tried("a", Status::unavailable("down"), at(10'000));
  table_.mind_clock(at(10'000));
  EXPECT_EQ(table_.next_webhook(), at(10'001));
  table_.mind_clock(at(6'400));
  EXPECT_EQ(table_.next_webhook(), at(6'401));
  table_.mind_clock(at(6'400));
  EXPECT_EQ(table_.due_webhook(at(6'401))->id, "a");
  table_.webhook_tried("a", Status::unavailable("down"), at(6'401));
  table_.mind_clock(at(6'401));
  EXPECT_EQ(table_.next_webhook(), at(6'403)) << "twice as long";
}

TEST_F(JobTableTest, AJobWithAPendingWebhookStays) {
  add("a", "http://h/");
  table_.begin_next(at(2));
  table_.finish("a", Status(), at(3));
  add("b");
  add("c");
  EXPECT_FALSE(table_.admit({.kind = "k"}, "d", at(4)).ok());
  EXPECT_EQ(table_.webhook_tried("a", Status(), at(4)).webhook->state, JobWebhook::State::kDelivered);
  add("d");
  EXPECT_THAT(gone_, ElementsAre("a"));
  EXPECT_TRUE(restarted().next_webhook().is_infinite());
}

}  // namespace
}  // namespace foliot
