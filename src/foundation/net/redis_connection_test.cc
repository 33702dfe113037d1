#include "foundation/net/redis_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foundation/net/test_redis_server.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

class RedisConnectionTest : public testing::Test {
 protected:
  Result<RedisReply> call(const std::vector<std::string>& words) { return connection_.call(words); }

  TestRedisServer server_;
  RedisConnection connection_{server_.address()};
};

TEST_F(RedisConnectionTest, RepliesAreValues) {
  const std::string binary("a\0\r\n", 4);
  EXPECT_EQ(call({"SET", "key", binary})->text, "OK");
  EXPECT_EQ(call({"GET", "key"})->text, binary);
  EXPECT_TRUE(call({"GET", "none"})->is_none());
  EXPECT_EQ(call({"INCRBY", "number", "7"})->unsigned_number(), 7u);
  EXPECT_EQ(call({"INCRBY", "number", "-9"})->unsigned_number(), std::nullopt);
  EXPECT_EQ(call({"EVAL", "return '9007199254740993'", "0"})->unsigned_number(), 9007199254740993u);
  const Result<RedisReply> list = call({"EVAL", "return {1, {'two'}}", "0"});
  ASSERT_TRUE(list.ok() && list->is_list());
  ASSERT_EQ(list->list.size(), 2u);
  EXPECT_EQ(list->list[1].list[0].text, "two");
}

TEST_F(RedisConnectionTest, IsMadeAgainAfterAFailure) {
  ASSERT_TRUE(call({"SET", "key", "1"}).ok());
  server_.stop();
  for (int i = 0; i < 2; ++i) {
    const Status gone = call({"GET", "key"}).status();
    EXPECT_EQ(gone.code(), StatusCode::kUnavailable);
    EXPECT_THAT(gone.message(), HasSubstr("unix:"));
  }
  server_.start();
  EXPECT_EQ(call({"GET", "key"})->text, "1");
}

TEST_F(RedisConnectionTest, ErrorsOfTheServerAreNamed) {
  EXPECT_EQ(call({"NONSENSE"}).status().code(), StatusCode::kUnavailable);
  ASSERT_TRUE(call({"CONFIG", "SET", "maxmemory", "1"}).ok());
  const Status full = call({"SET", "key", "1"}).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted) << full.message();
  ASSERT_TRUE(call({"CONFIG", "SET", "requirepass", "right"}).ok());
  RedisAddress locked = server_.address();
  locked.password = "wrong";
  const Status refused = RedisConnection(locked).connect();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_NE(refused.message().find("FOLIOT_REDIS_PASSWORD"), std::string::npos) << refused.message();
}

TEST_F(RedisConnectionTest, ADatabaseIsChosen) {
  RedisAddress other = server_.address();
  other.database = 3;
  RedisConnection connection(other);
  const std::string words[] = {"SET", "key", "3"};
  ASSERT_TRUE(connection.call(words).ok());
  EXPECT_TRUE(call({"GET", "key"})->is_none());
}

}  // namespace
}  // namespace foliot
