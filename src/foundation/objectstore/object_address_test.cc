#include "foundation/objectstore/object_address.h"

#include <gtest/gtest.h>

#include <string>

namespace foliot {
namespace {

TEST(ObjectAddressTest, ReadsBucketAndPrefix) {
  const auto address = ObjectAddress::parse("s3://team-models/vision/v2/");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address.value().bucket, "team-models");
  EXPECT_EQ(address.value().prefix, "vision/v2");
  EXPECT_EQ(address.value().text(), "s3://team-models/vision/v2");
  EXPECT_EQ(address.value().name(), "v2");
}

TEST(ObjectAddressTest, ABucketAloneIsOne) {
  const auto address = ObjectAddress::parse("s3://models");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address.value().prefix, "");
  EXPECT_EQ(address.value().name(), "models");
}

TEST(ObjectAddressTest, RefusesWhatIsNone) {
  for (const char* const wrong : {"models", "s3://", "s3://ab", "s3://Models", "s3://mo dels/x", "s3://models/../other",
                                  "s3://models/a//b", "s3://models/./b", "s3://models/a\\b"}) {
    const auto address = ObjectAddress::parse(wrong);
    ASSERT_FALSE(address.ok()) << wrong;
    EXPECT_NE(address.status().message().find(wrong), std::string::npos) << address.status().message();
  }
}

TEST(ObjectAddressTest, SafeKeysStayBelowTheirFolder) {
  for (const char* const safe : {"a", "a/b.onnx", "a/..b", "a/b..", "ä/ü", "a b/c"})
    EXPECT_TRUE(is_safe_key(safe)) << safe;
  for (const char* const unsafe :
       {"", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/..", "a/./b", "a\\..\\b", "a\nb"}) {
    EXPECT_FALSE(is_safe_key(unsafe)) << unsafe;
  }
  EXPECT_FALSE(is_safe_key(std::string(256, 'x'))) << "no file may have so long a name";
  EXPECT_FALSE(is_safe_key("a" + std::string(1024, '/')));
}

}  // namespace
}  // namespace foliot
