#include "foundation/base/escaped_text.h"

#include <gtest/gtest.h>

#include "foundation/base/random.h"

namespace foliot {
namespace {

TEST(EscapedText, LeavesTextAsItIs) {
  EXPECT_EQ(escaped("order-17, \"now\" it's \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "order-17, \"now\" it's \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(EscapedText, ShowsNothingThatATerminalWouldObey) {
  EXPECT_EQ(escaped("a\nb\x1B[2J\x7F"), "a\\x0ab\\x1b[2J\\x7f");
  EXPECT_EQ(escaped("\xC2\x9B"), "\\xc2\\x9b");           // CSI as one character
  EXPECT_EQ(escaped("\xE2\x80\xAE"), "\\xe2\\x80\\xae");  // right to left
  EXPECT_EQ(escaped("\\x0a"), "\\\\x0a");
}

TEST(EscapedText, ShowsBytesThatAreNoCharacters) {
  EXPECT_EQ(escaped("\xFF"), "\\xff");
  EXPECT_EQ(escaped("\xC3"), "\\xc3");                             // cut off
  EXPECT_EQ(escaped("\xC0\x80"), "\\xc0\\x80");                    // not the shortest form
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last character
}

TEST(EscapedText, IsReadBack) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t left = random.below(20); left > 0; --left) text += static_cast<char>(random.below(256));
    const std::string shown = escaped(text);
    EXPECT_EQ(unescaped(shown), text);
    EXPECT_EQ(shown.find('\n'), std::string::npos);
  }
  for (const char* wrong : {"\\", "\\x", "\\x1", "\\xg0", "\\n"}) EXPECT_EQ(unescaped(wrong), std::nullopt) << wrong;
}

TEST(EscapedText, QuotesCannotBeLeft) { EXPECT_EQ(in_quotes("a' was refused"), "'a\\' was refused'"); }

}  // namespace
}  // namespace foliot
