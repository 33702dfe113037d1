#include "edge/requests/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace foliot {
namespace {

std::string quoted(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

template <typename T>
Result<std::string> elements(DataType type, const std::vector<T>& values) {
  std::string json;
  FOLIOT_RETURN_IF_ERROR(append_json_elements(json, type, std::as_bytes(std::span(values))));
  return json;
}

TEST(JsonTextTest, EscapesWhatJsonMustNotHold) {
  EXPECT_EQ(quoted("a\"b\\c\n\t\x01"), R"("a\"b\\c\n\t\u0001")");
  EXPECT_EQ(quoted("gr\xC3\xBC\xC3\x9F \xF0\x9F\x99\x82"), "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x99\x82\"");
}

TEST(JsonTextTest, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(quoted("a\xFF"
                   "b"),
            "\"a\xEF\xBF\xBD"
            "b\"");
  EXPECT_EQ(quoted("\xC3"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(quoted("\xC0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");                  // overlong
  EXPECT_EQ(quoted("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // a surrogate
}

TEST(JsonTextTest, FloatsReadBackAsTheSameNumber) {
  EXPECT_EQ(*elements<float>(DataType::kFloat32, {0.1f, 1, -2.5f, 16777217.f, 1e-45f}), "[0.1,1,-2.5,16777216,1e-45]");
  EXPECT_EQ(*elements<double>(DataType::kFloat64, {0.1, 1e300}), "[0.1,1e+300]");
}

TEST(JsonTextTest, Strings) {
  const std::string bytes("\2\0\0\0a\"\0\0\0\0\2\0\0\0\xff\n", 16);
  EXPECT_EQ(*elements<char>(DataType::kBytes, {bytes.begin(), bytes.end()}), "[\"a\\\"\",\"\",\"\xEF\xBF\xBD\\n\"]");
  EXPECT_EQ(*elements<char>(DataType::kBytes, {}), "[]");
}

TEST(JsonTextTest, IntegersAndBooleans) {
  EXPECT_EQ(*elements<int8_t>(DataType::kInt8, {-128, 127}), "[-128,127]");
  EXPECT_EQ(*elements<uint64_t>(DataType::kUint64, {std::numeric_limits<uint64_t>::max()}), "[18446744073709551615]");
  EXPECT_EQ(*elements<uint8_t>(DataType::kBool, {0, 1}), "[false,true]");
  EXPECT_EQ(*elements<float>(DataType::kFloat32, {}), "[]");
}

TEST(JsonTextTest, NumbersThatAreNotFiniteAreWrittenAsTritonDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(*elements<float>(DataType::kFloat32, {1, infinity, -infinity}), "[1,Infinity,-Infinity]");
  EXPECT_EQ(*elements<double>(DataType::kFloat64, {std::numeric_limits<double>::quiet_NaN(), 2}), "[NaN,2]");
}

TEST(JsonTextTest, SixteenBitFloatsNeedBinaryData) {
  const auto half = elements<uint16_t>(DataType::kFloat16, {0});
  ASSERT_FALSE(half.ok());
  EXPECT_THAT(half.status().message(), ::testing::HasSubstr("binary"));
}

}  // namespace
}  // namespace foliot
