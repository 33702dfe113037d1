#include "foundation/base/toml_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

TEST(TomlTextTest, EscapesWhatATextMayNotHave) {
  EXPECT_EQ(toml_text("a b"), "\"a b\"");
  EXPECT_EQ(toml_text("\"a\\b\"\n\x7f"), R"("\"a\\b\"\u000a\u007f")");
  EXPECT_EQ(toml_text("\xc3\xa4"), "\"\xc3\xa4\"");
}

TEST(TomlTextTest, QuotesKeysThatAreNotBare) {
  EXPECT_EQ(toml_key("a-b_1"), "a-b_1");
  EXPECT_EQ(toml_key("a.b"), "\"a.b\"");
  EXPECT_EQ(toml_key(""), "\"\"");
}

TEST(TomlTextTest, ListsTexts) {
  EXPECT_EQ(toml_texts(std::vector<std::string>{"a", "b\"c"}), R"(["a", "b\"c"])");
  EXPECT_EQ(toml_texts({}), "[]");
}

}  // namespace
}  // namespace foliot
