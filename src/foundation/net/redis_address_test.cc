#include "foundation/net/redis_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RedisAddress, IsParsed) {
  EXPECT_EQ(RedisAddress::parse("redis://a")->text(), "redis://a:6379/0");
  EXPECT_EQ(RedisAddress::parse("redis://10.0.0.1:7000/3")->text(), "redis://10.0.0.1:7000/3");
  EXPECT_EQ(RedisAddress::parse("redis://[::1]:7000")->text(), "redis://[::1]:7000/0");
  EXPECT_EQ(RedisAddress::parse("redis://[::1]")->host, "::1");
  EXPECT_EQ(RedisAddress::parse("unix:/run/redis.sock")->text(), "unix:/run/redis.sock");
  for (const char* wrong : {"redis://", "redis://a:0", "redis://a:70000", "redis://a/x", "redis://a:b",
                            "unix:", "http://a", "redis://:secret@a", "redis://a/99999"}) {
    const Status status = RedisAddress::parse(wrong).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(status.message(), HasSubstr(wrong));
  }
}

TEST(RedisAddress, TlsIsNamedAsWhatIsMissing) {
  EXPECT_THAT(RedisAddress::parse("rediss://a:6380/1").status().message(),
              AllOf(HasSubstr("rediss://a:6380/1"), HasSubstr("Redis over TLS is not supported, put a tunnel")));
}

TEST(RedisAddress, DiffersFromAFile) {
  EXPECT_TRUE(RedisAddress::is_one("redis://a"));
  EXPECT_TRUE(RedisAddress::is_one("unix:"));
  EXPECT_TRUE(RedisAddress::is_one("rediss://a")) << "what cannot be reached is refused and is no file";
  EXPECT_TRUE(RedisAddress::is_one("valkey://a"));
  EXPECT_FALSE(RedisAddress::is_one("/srv/states.sqlite"));
  EXPECT_FALSE(RedisAddress::is_one("states:7"));
}

}  // namespace
}  // namespace foliot
