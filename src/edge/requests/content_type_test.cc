#include "edge/requests/content_type.h"

#include <gtest/gtest.h>

#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

std::span<const std::byte> view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

TEST(ContentTypeTest, Base64IsDecodedAndEncoded) {
  // The vectors of RFC 4648, and bytes that are no text.
  const std::string plain =
      serialized({"", "f", "fo", "foo", "foob", "fooba", "foobar", std::string_view("\0\xFF\xFE", 3)});
  const std::string encoded = serialized({"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy", "AP/+"});
  EXPECT_EQ(decode_base64_strings(view(encoded)), plain);
  EXPECT_EQ(encode_base64_strings(view(plain)), encoded);
}

TEST(ContentTypeTest, WhatIsNoBase64StaysAsItIs) {
  const std::string texts = serialized({"Zg=", "Zg==Zg==", "====", "A===", "Z g=", "ab_-", "hello"});
  EXPECT_EQ(decode_base64_strings(view(texts)), texts);
}

TEST(ContentTypeTest, WhatIsNotWholeIsLeftOut) {
  const std::string texts = serialized({"Zg==", "Zm9v"});
  EXPECT_EQ(decode_base64_strings(view(texts).first(texts.size() - 1)), serialized({"f"}));
  EXPECT_EQ(encode_base64_strings(view(texts).first(2)), "");
}

TEST(ContentTypeTest, AStringOutputIsReadAsItWasAskedFor) {
  TensorSpec labels{"predict", DataType::kBytes, {1}, {}};
  EXPECT_EQ(content_type_of(labels, parse_content_type("np")), "np");
  EXPECT_EQ(content_type_of(labels, parse_content_type("str")), "str");
  EXPECT_EQ(content_type_of(labels, parse_content_type("datetime")), "datetime");
  EXPECT_TRUE(is_base64(labels, parse_content_type("base64")));
  EXPECT_FALSE(is_base64(labels, parse_content_type("none such")));
  TensorSpec numbers{"predict", DataType::kFloat32, {1}, {}};
  EXPECT_EQ(content_type_of(numbers, ContentType::kBase64), "np");
  EXPECT_FALSE(is_base64(numbers, ContentType::kBase64));
  EXPECT_EQ(content_type_of({"output-0", DataType::kFloat32, {1}, {}}, ContentType::kNone), "") << "KServe says none";
}

}  // namespace
}  // namespace foliot
