#include "edge/jobs/redis_job_exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "edge/jobs/redis_job_keys.h"
#include "edge/jobs/redis_job_lease.h"
#include "edge/jobs/redis_job_store.h"
#include "foundation/net/test_redis_server.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RedisJobExchangeTest : public testing::Test {
 protected:
  RedisJobExchangeTest() { EXPECT_TRUE(lease_.take("one", Duration::seconds(600))->is_mine); }
  void put(const std::string& id, uint64_t number) {
    ASSERT_TRUE(store_.put({.id = id, .number = number, .kind = "offline", .request = "{}"}).ok());
  }
  static std::vector<std::string> ids(const RedisJobExchange::News& news) {
    std::vector<std::string> all;
    for (const RevisedJob& one : news.changed) all.push_back(one.job.id);
    return all;
  }

  TestRedisServer server_;
  RedisJobLease lease_{server_.address(), "the first"};
  RedisJobStore store_{server_.address(), "one"};
  RedisJobExchange exchange_{server_.address()};
};

TEST_F(RedisJobExchangeTest, ReadsWhatChangedSince) {
  EXPECT_TRUE(exchange_.read(0)->is_all);
  put("a", 1);
  put("b", 2);
  put("a", 1);
  const auto all = exchange_.read(0);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_THAT(ids(*all), ElementsAre("b", "a"));
  EXPECT_EQ(all->last, all->changed.back().revision);
  EXPECT_EQ(all->jobs, 2u);
  EXPECT_THAT(ids(*exchange_.read(all->last)), IsEmpty());
  put("c", 3);
  ASSERT_TRUE(store_.remove("b").ok());
  EXPECT_THAT(ids(*exchange_.read(all->last)), ElementsAre("c"));
  EXPECT_EQ(exchange_.read(all->last)->jobs, 2u);
  EXPECT_THAT(exchange_.read_ids()->ids, ElementsAre("a", "c"));
}

TEST_F(RedisJobExchangeTest, WhatIsDamagedIsNamedAndDoesNotHoldBackTheOthers) {
  for (uint64_t i = 1; i <= 150; ++i) put(fmt::format("{:03}", i), i);
  RedisConnection connection(server_.address());
  for (int i = 1; i <= 110; ++i) {
    const std::string words[] = {"HSET", redis_job_key("jobs"), fmt::format("{:03}", i), "{}"};
    ASSERT_TRUE(connection.call(words).ok());
  }
  const auto first = exchange_.read(0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_THAT(ids(*first), IsEmpty());
  ASSERT_EQ(first->damaged.size(), 100u);
  EXPECT_NE(first->damaged.front().find("job '001' is damaged"), std::string::npos) << first->damaged.front();
  const auto rest = exchange_.read(first->read);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->damaged.size(), 10u);
  EXPECT_EQ(ids(*rest).size(), 40u);
  EXPECT_EQ(rest->read, rest->last);
}

TEST_F(RedisJobExchangeTest, ReadsManyInParts) {
  for (uint64_t i = 1; i <= 250; ++i) put(fmt::format("{:03}", i), i);
  uint64_t since = 0;
  std::vector<std::string> read;
  for (bool is_all = false; !is_all;) {
    const auto news = exchange_.read(since);
    ASSERT_TRUE(news.ok());
    for (const std::string& id : ids(*news)) read.push_back(id);
    since = news->changed.back().revision;
    is_all = news->is_all;
  }
  ASSERT_EQ(read.size(), 250u);
  EXPECT_TRUE(std::ranges::is_sorted(read));
}

TEST_F(RedisJobExchangeTest, ChangesGoToTheKeeperInOrder) {
  for (const char* change : {"1", "2", "3"}) EXPECT_TRUE(*exchange_.pass(change));
  EXPECT_THAT(*exchange_.take("another", 10), IsEmpty());
  EXPECT_TRUE(*exchange_.withdraw("2"));
  EXPECT_FALSE(*exchange_.withdraw("2"));
  EXPECT_THAT(*exchange_.take("one", 1), ElementsAre("1"));
  EXPECT_THAT(*exchange_.take("one", 10), ElementsAre("3"));
  EXPECT_FALSE(*exchange_.withdraw("1")) << "the keeper has it";
}

TEST_F(RedisJobExchangeTest, SoManyChangesWaitAtMost) {
  for (size_t i = 0; i < RedisJobExchange::kPassedMax; ++i) ASSERT_TRUE(*exchange_.pass(std::to_string(i)));
  EXPECT_FALSE(*exchange_.pass("another"));
  ASSERT_EQ(exchange_.take("one", 1)->size(), 1u);
  EXPECT_TRUE(*exchange_.pass("another"));
}

TEST_F(RedisJobExchangeTest, AnswersAreFoundByTheirChange) {
  ASSERT_TRUE(exchange_.answer("2", "done").ok());
  EXPECT_THAT(*exchange_.answers({"1", "2"}), ElementsAre(std::nullopt, std::optional<std::string>("done")));
}

TEST_F(RedisJobExchangeTest, NothingStaysForGood) {
  ASSERT_TRUE(exchange_.answer("2", "done").ok());
  ASSERT_TRUE(*exchange_.pass("1"));
  RedisConnection connection(server_.address());
  for (const char* key : {"answer:2", "changes"}) {
    const std::string words[] = {"PTTL", redis_job_key(key)};
    EXPECT_GT(connection.call(words)->number, 0) << key;
  }
}

TEST_F(RedisJobExchangeTest, JobsOfANewerVersionAreLeftAlone) {
  RedisConnection connection(server_.address());
  const std::string words[] = {"SET", redis_job_key("form"), "2"};
  ASSERT_TRUE(connection.call(words).ok());
  EXPECT_EQ(exchange_.read(0).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(RedisJobExchangeTest, TheFirstFolderIsThatOfAll) {
  EXPECT_EQ(*exchange_.agree_on_folder("one"), "one");
  EXPECT_EQ(*exchange_.agree_on_folder("two"), "one");
  EXPECT_EQ(*exchange_.is_persistent(), std::optional(true));
}

}  // namespace
}  // namespace foliot
