#include "foundation/objectstore/etag_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

namespace foliot {
namespace {

// Hashes by md5sum(1); that of parts by hand: MD5 of the parts' MD5s as bytes.
constexpr const char* kText = "hello world, in parts";
constexpr const char* kWhole = "e2c892bf61b1c59238478e041cb80121";

bool matches(const std::string& etag, std::optional<uint64_t> part_bytes, const std::string& text, size_t piece) {
  EtagCheck check({.key = "a", .etag = etag, .bytes = text.size()}, part_bytes);
  EXPECT_TRUE(check.is_possible());
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t at = 0; at < bytes.size(); at += piece)
    check.update(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  return check.matches();
}

TEST(EtagCheckTest, OfAWholeObjectIsItsMd5) {
  for (const size_t piece : {1, 7, 1000}) {
    EXPECT_TRUE(matches(kWhole, std::nullopt, kText, piece));
    EXPECT_FALSE(matches(kWhole, std::nullopt, std::string(kText) + "!", piece));
  }
  EXPECT_TRUE(matches("D41D8CD98F00B204E9800998ECF8427E", std::nullopt, "", 1)) << "of nothing, in capitals";
}

TEST(EtagCheckTest, OfPartsIsTheMd5OfTheirMd5s) {
  const std::string etag = "15f3ebba8b0d2031a36013229d7aebad-3";
  for (const size_t piece : {1, 7, 8, 9, 1000}) {
    EXPECT_TRUE(matches(etag, 8, kText, piece));
    EXPECT_FALSE(matches(etag, 9, kText, piece)) << "cut otherwise";
    std::string damaged = kText;
    damaged[10] ^= 1;
    EXPECT_FALSE(matches(etag, 8, damaged, piece));
  }
  const std::string even(kText, 16);
  EXPECT_TRUE(matches("22cdfaeddd15da9651de30d6b6686b5c-2", 8, even, 5)) << "the last part is a whole one";
}

TEST(EtagCheckTest, OtherEtagsSayNothing) {
  for (const char* const etag :
       {"", "0x8DC", "abc", "e2c892bf61b1c59238478e041cb80121ff", "15f3ebba8b0d2031a36013229d7aebad-3"}) {
    EXPECT_FALSE(EtagCheck({.key = "a", .etag = etag, .bytes = 1}, std::nullopt).is_possible()) << etag;
  }
}

}  // namespace
}  // namespace foliot
