#include "edge/jobs/redis_job_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "edge/jobs/redis_job_keys.h"
#include "edge/jobs/redis_job_lease.h"
#include "foundation/net/test_redis_server.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RedisJobStoreTest : public testing::Test {
 protected:
  static Job job(const std::string& id, uint64_t number) {
    return {.id = id, .number = number, .kind = "offline", .request = "{}"};
  }
  RedisReply redis(const std::vector<std::string>& words) {
    Result<RedisReply> reply = connection_.call(words);
    EXPECT_TRUE(reply.ok()) << reply.status().message();
    return std::move(reply).value();
  }
  void take(const std::string& token) { ASSERT_TRUE(lease_.take(token, Duration::seconds(600))->is_mine); }

  TestRedisServer server_;
  RedisConnection connection_{server_.address()};
  RedisJobLease lease_{server_.address(), "the first"};
  RedisJobLease other_lease_{server_.address(), "the second"};
  RedisJobStore store_{server_.address(), "one"};
};

TEST_F(RedisJobStoreTest, OnlyTheHolderOfTheLeaseWrites) {
  EXPECT_EQ(store_.put(job("a", 1)).code(), StatusCode::kUnavailable) << "no server keeps the jobs";
  take("one");
  ASSERT_TRUE(store_.put(job("a", 1)).ok());
  ASSERT_TRUE(lease_.release("one").ok());
  ASSERT_TRUE(other_lease_.take("two", Duration::seconds(600))->is_mine);
  Job changed = job("a", 1);
  changed.done = 7;
  const Status lost = store_.put(changed);
  EXPECT_EQ(lost.code(), StatusCode::kUnavailable);
  EXPECT_THAT(lost.message(), HasSubstr("'the second' keeps the jobs now"));
  EXPECT_EQ(store_.remove("a").code(), StatusCode::kUnavailable);
  EXPECT_THAT(*store_.read(), ElementsAre(job("a", 1)));
}

TEST_F(RedisJobStoreTest, ReportsWhatItHasWritten) {
  take("two");
  std::vector<uint64_t> revisions;
  std::vector<std::string> removed;
  RedisJobStore store(server_.address(), "two",
                      {.on_put = [&](const Job&, uint64_t revision) { revisions.push_back(revision); },
                       .on_removed = [&](const std::string& id) { removed.push_back(id); }});
  ASSERT_TRUE(store.put(job("a", 1)).ok());
  ASSERT_TRUE(store.put(job("a", 1)).ok());
  ASSERT_TRUE(store.remove("a").ok());
  ASSERT_EQ(revisions.size(), 2u);
  EXPECT_LT(revisions[0], revisions[1]);
  EXPECT_GT(revisions[0], 1'600'000'000'000'000u) << "an instant, which does not come again";
  EXPECT_THAT(removed, ElementsAre("a"));
}

TEST_F(RedisJobStoreTest, AWriteThatComesAfterALaterOneIsNotMade) {
  take("one");
  ASSERT_TRUE(store_.put(job("a", 1)).ok());
  Job later = job("a", 1);
  later.done = 2;
  ASSERT_TRUE(store_.put(later).ok());
  // As Redis reads it late that stood still: the first write of the same token.
  RedisJobStore late(server_.address(), "one");
  const Status status = late.put(job("a", 1));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("late"));
  EXPECT_THAT(*store_.read(), ElementsAre(later));
}

TEST_F(RedisJobStoreTest, JobsOfANewerVersionAreLeftAlone) {
  take("one");
  ASSERT_TRUE(store_.put(job("a", 1)).ok());
  redis({"SET", redis_job_key("form"), "2"});
  const Status status = store_.read().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("newer Foliot, in form 2"));
  EXPECT_EQ(store_.put(job("b", 2)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(redis({"HLEN", redis_job_key("jobs")}).number, 1);
}

TEST_F(RedisJobStoreTest, WhatIsNoJobIsNamedAndLeftOut) {
  take("two");
  std::string damaged;
  RedisJobStore store(server_.address(), "two", {.on_damaged = [&](const std::string& what) { damaged += what; }});
  ASSERT_TRUE(store.put(job("a", 1)).ok());
  redis({"HSET", redis_job_key("jobs"), "x", "{}"});
  redis({"HSET", redis_job_key("jobs"), "y", to_json(job("z", 2))});
  EXPECT_THAT(*store.read(), ElementsAre(job("a", 1)));
  EXPECT_THAT(damaged, HasSubstr(redis_job_key("jobs") + ": job 'x' is damaged, and left out"));
  EXPECT_THAT(damaged, HasSubstr("job 'y' is damaged, and left out: it says that it is 'z'"));
  EXPECT_EQ(redis({"HLEN", redis_job_key("jobs")}).number, 3) << "they stay";
}

TEST_F(RedisJobStoreTest, AFullRedisHasNoRoom) {
  take("one");
  ASSERT_TRUE(store_.put(job("a", 1)).ok());
  redis({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(store_.put(job("b", 2)).code(), StatusCode::kResourceExhausted);
}

TEST(RedisJobLease, IsOfOneAtATimeUntilItEnds) {
  TestRedisServer server;
  RedisJobLease one(server.address(), "the first"), two(server.address(), "the second");
  EXPECT_FALSE(one.renew("a", Duration::seconds(600))->is_mine) << "it was not taken";
  EXPECT_TRUE(one.take("a", Duration::seconds(600))->is_mine);
  EXPECT_TRUE(one.take("a", Duration::seconds(600))->is_mine) << "an answer may have been lost";
  const Result<JobLeaseReply> refused = two.take("b", Duration::milliseconds(1));
  EXPECT_FALSE(refused->is_mine);
  EXPECT_EQ(refused->holder, "the first");
  EXPECT_FALSE(two.renew("b", Duration::milliseconds(1))->is_mine);
  ASSERT_TRUE(two.release("b").ok());
  EXPECT_TRUE(one.renew("a", Duration::milliseconds(1))->is_mine);
  while (!two.take("b", Duration::seconds(600))->is_mine) {
  }
  EXPECT_FALSE(one.renew("a", Duration::seconds(600))->is_mine);
  ASSERT_TRUE(two.release("b").ok());
  EXPECT_TRUE(one.take("c", Duration::seconds(600))->is_mine);
}

}  // namespace
}  // namespace foliot
