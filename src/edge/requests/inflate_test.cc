#include "edge/requests/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace foliot {
namespace {

std::string deflated(const std::string& text, bool gzip) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

TEST(InflateTest, ReadsGzipAndZlib) {
  for (const size_t size : {size_t{0}, size_t{10}, size_t{64} << 10, size_t{3} << 20}) {
    const std::string text(size, 'a');
    EXPECT_EQ(*inflate_bytes(deflated(text, true), 4 << 20), text);
    EXPECT_EQ(*inflate_bytes(deflated(text, false), 4 << 20), text);
  }
}

// RFC 1952: several members are one text.
TEST(InflateTest, ReadsEveryMemberOfAGzipFile) {
  const std::string members = deflated("ab", true) + deflated("", true) + deflated("c", true);
  EXPECT_EQ(*inflate_bytes(members, 3), "abc");
  EXPECT_EQ(inflate_bytes(members, 2).status().code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(inflate_bytes(members.substr(0, members.size() - 1), 3).ok());
}

TEST(InflateTest, RejectsBytesThatFollow) {
  for (const bool gzip : {true, false}) {
    const auto inflated = inflate_bytes(deflated("ab", gzip) + "xyz", 10);
    EXPECT_EQ(inflated.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(inflated.status().message().find("3 bytes follow"), std::string::npos) << inflated.status().message();
  }
}

TEST(InflateTest, StopsAtTheLimit) {
  const std::string text(100'000, 'a');
  EXPECT_TRUE(inflate_bytes(deflated(text, true), 100'000).ok());
  EXPECT_EQ(inflate_bytes(deflated(text, true), 99'999).status().code(), StatusCode::kResourceExhausted);
}

TEST(InflateTest, RejectsWhatIsDamagedOrCutOff) {
  std::string compressed = deflated(std::string(1000, 'a') + "b", true);
  EXPECT_EQ(inflate_bytes("not compressed", 1000).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inflate_bytes("", 1000).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(inflate_bytes(compressed.substr(0, compressed.size() - 9), 10'000).ok());
  compressed[compressed.size() - 6] ^= 1;  // in the checksum
  EXPECT_FALSE(inflate_bytes(compressed, 10'000).ok());
}

}  // namespace
}  // namespace foliot
