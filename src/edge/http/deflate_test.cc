#include "edge/http/deflate.h"

#include <gtest/gtest.h>

#include <random>

#include "edge/requests/inflate.h"

namespace foliot {
namespace {

using enum ContentEncoding;

TEST(PreferredEncodingTest, GoesByWhatTheClientPrefers) {
  for (const auto& [header, wanted] : std::initializer_list<std::pair<const char*, ContentEncoding>>{
           {"", kIdentity},
           {"identity", kIdentity},
           {"br, zstd", kIdentity},
           {"gzip", kGzip},
           {"deflate", kDeflate},
           {"gzip, deflate, br", kGzip},
           {"deflate, gzip", kGzip},
           {"GZIP", kGzip},
           {"gzip;q=0", kIdentity},
           {"gzip;q=0, deflate", kDeflate},
           {"gzip;q=0.5,deflate;q=0.8", kDeflate},
           {"gzip; q=0.5 , identity", kIdentity},
           {"gzip;q=x", kIdentity},
           {"*", kIdentity},
           {",;,=", kIdentity},
       }) {
    EXPECT_EQ(preferred_encoding(header), wanted) << header;
  }
}

HttpResponse response_of(std::vector<std::string> body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

TEST(CompressTest, TheInverseOfInflate) {
  for (const ContentEncoding encoding : {kGzip, kDeflate}) {
    const std::string text(300'000, 'a');
    HttpResponse response = response_of({"begin ", text, "", " end"});
    compress(response, encoding);
    ASSERT_EQ(response.body.size(), 1u);
    EXPECT_LT(response.body.front().size(), text.size() / 50);
    ASSERT_EQ(response.headers.size(), 1u);
    EXPECT_EQ(response.headers[0].second, encoding == kGzip ? "gzip" : "deflate");
    EXPECT_EQ(response.body.front()[0] == '\x1f', encoding == kGzip);
    const auto inflated = inflate_bytes(response.body.front(), 1 << 20);
    ASSERT_TRUE(inflated.ok());
    EXPECT_EQ(*inflated, "begin " + text + " end");
  }
}

TEST(CompressTest, WhatWouldBeNoSmallerStaysAsItIs) {
  std::mt19937 random(7);
  std::string noise(200'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  for (const std::string& body : {noise, std::string("{}"), std::string(1000, 'a'), std::string()}) {
    HttpResponse response = response_of({body});
    compress(response, kGzip);
    EXPECT_EQ(response.body.front(), body);
    EXPECT_TRUE(response.headers.empty());
  }
  HttpResponse unwanted = response_of({std::string(10'000, 'a')});
  compress(unwanted, kIdentity);
  EXPECT_EQ(unwanted.body.front().size(), 10'000u);
}

}  // namespace
}  // namespace foliot
