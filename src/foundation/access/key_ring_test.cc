#include "foundation/access/key_ring.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KeyRingTest : public ::testing::Test {
 protected:
  Result<KeyRing> read(const std::string& text) {
    std::ofstream(file_) << text;
    return KeyRing::read(file_);
  }
  static std::string entry(const std::string& name, const std::string& scopes, const std::string& key) {
    return fmt::format("[[keys]]\nname = '{}'\nscopes = {}\nsha256 = '{}'\n", name, scopes,
                       to_hexadecimal(digest_of(key)));
  }

  // Tests run side by side.
  const std::filesystem::path file_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("foliot_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml");
};

TEST_F(KeyRingTest, GrantsWhatAKeyIsFor) {
  const auto ring = read(entry("app", "['infer']", "one") + entry("operator", "['admin', 'metrics']", "two"));
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  using Verdict = KeyRing::Verdict;
  EXPECT_EQ(ring->decide("one", Scope::kInfer).verdict, Verdict::kGranted);
  EXPECT_EQ(ring->decide("one", Scope::kInfer).name, "app");
  EXPECT_EQ(ring->decide("one", Scope::kAdmin).verdict, Verdict::kWrongScope);
  EXPECT_EQ(ring->decide("two", Scope::kMetrics).verdict, Verdict::kGranted);
  EXPECT_EQ(ring->decide("two", Scope::kInfer).name, "operator");
  EXPECT_EQ(ring->decide("three", Scope::kInfer).verdict, Verdict::kUnknownKey);
  EXPECT_EQ(ring->decide("", Scope::kInfer).verdict, Verdict::kUnknownKey);
}

TEST_F(KeyRingTest, ReadsLimits) {
  const auto ring =
      read(entry("app", "['infer']", "one") + "requests_per_second = 0.5\nrequests_in_flight = 8\nweight = 3\n" +
           entry("free", "['infer']", "two"));
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  EXPECT_EQ(ring->entries()[0].limits.requests_per_second, 0.5);
  EXPECT_EQ(ring->entries()[0].limits.requests_in_flight, 8u);
  EXPECT_EQ(ring->entries()[0].limits.weight, 3u);
  EXPECT_EQ(ring->entries()[1].limits.weight, 1u);
  EXPECT_FALSE(ring->entries()[1].limits.requests_per_second);
  EXPECT_FALSE(ring->entries()[1].limits.requests_in_flight);
}

TEST_F(KeyRingTest, ReportsWhatIsWrongWithTheFile) {
  const auto wrong = [&](const std::string& text) { return read(text).status().message(); };
  EXPECT_THAT(wrong(""), HasSubstr("has no [[keys]]"));
  EXPECT_THAT(wrong(entry("app", "['inference']", "one")), AllOf(HasSubstr(":3"), HasSubstr("'inference'")));
  EXPECT_THAT(wrong(entry("app", "[]", "one")), HasSubstr("'scopes'"));
  EXPECT_THAT(wrong(entry("app", "['infer']", "one") + "requests_per_second = 0\n"), HasSubstr("requests_per_second"));
  EXPECT_THAT(wrong(entry("app", "['infer']", "one") + "requests_in_flight = 0\n"), HasSubstr("requests_in_flight"));
  EXPECT_THAT(wrong(entry("app", "['infer']", "one") + "weight = 0\n"), HasSubstr("weight"));
  EXPECT_THAT(wrong("[[keys]]\nname = 'app'\n"), HasSubstr("at least one scope"));
  EXPECT_THAT(wrong(entry("app", "['infer']", "one") + entry("app", "['infer']", "two")), HasSubstr("twice"));
  EXPECT_THAT(wrong("[[keys]]\nname = 'app'\nscopes = ['infer']\nsha256 = 'secret'\n"), HasSubstr("64 hexadecimal"));
  EXPECT_THAT(wrong("[[keys]]\nname = 'app'\nscopes = ['infer']\nkey = 'secret'\n"), HasSubstr("sha256"));
}

TEST(ApiKeyTest, EveryKeyIsAnother) {
  const std::string key = random_api_key();
  EXPECT_EQ(key.size(), 7u + 64u);
  EXPECT_NE(key, random_api_key());
  EXPECT_EQ(digest_from_hexadecimal(to_hexadecimal(digest_of(key))), digest_of(key));
}

TEST(ApiKeyTest, TheDigestIsSha256) {
  EXPECT_EQ(to_hexadecimal(digest_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_FALSE(digest_from_hexadecimal("ba78"));
  EXPECT_FALSE(digest_from_hexadecimal(std::string(64, 'g')));
  EXPECT_FALSE(digest_from_hexadecimal(std::string(62, 'a') + "-1"));
}

}  // namespace
}  // namespace foliot
