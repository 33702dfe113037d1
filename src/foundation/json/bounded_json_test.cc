#include "foundation/json/bounded_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/base/random.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(BoundedJsonTest, ReadsWhatLiesWithinTheBounds) {
  const JsonBounds bounds{.bytes_max = 20, .depth_max = 2, .values_max = 4};
  EXPECT_EQ(*parse_bounded_json(R"({"a":[1,2]})", bounds), nlohmann::json({{"a", {1, 2}}}));
  EXPECT_EQ(*parse_bounded_json(R"("[[[,,,,,\"[[[")", bounds), "[[[,,,,,\"[[[");  // inside a string nothing counts
  EXPECT_TRUE(parse_bounded_json("[1,", bounds)->is_discarded());
  EXPECT_TRUE(parse_bounded_json("", bounds)->is_discarded());
  EXPECT_TRUE(parse_bounded_json("]]]]", bounds)->is_discarded());
  EXPECT_TRUE(parse_bounded_json("\"\\", bounds)->is_discarded());
}

TEST(BoundedJsonTest, RefusesWhatExceedsOneByItsName) {
  const JsonBounds bounds{.bytes_max = 40, .depth_max = 3, .values_max = 5};
  const auto error = [&](const std::string& text) { return parse_bounded_json(text, bounds).status().message(); };
  EXPECT_EQ(error(nested(3)), "");
  EXPECT_THAT(error(nested(4)), HasSubstr("more than 3 deep"));
  EXPECT_EQ(error("[1,2,3,4]"), "");
  EXPECT_THAT(error("[1,2,3,4,5]"), HasSubstr("more than 5 values"));
  EXPECT_EQ(error(std::string(40, ' ')), "");
  EXPECT_THAT(error(std::string(41, ' ')), HasSubstr("41 bytes of JSON; at most 40"));
}

// A text that a parser accepts has the depth and the number of values that were counted.
TEST(BoundedJsonTest, CountsAsAParserDoes) {
  struct Counts {
    size_t depth = 0;
    size_t values = 0;
    void visit(const nlohmann::json& value, size_t at) {
      ++values;
      if (value.is_structured()) depth = std::max(depth, at + 1);
      if (value.is_structured()) {
        for (const nlohmann::json& member : value) visit(member, at + 1);
      }
    }
  };
  constexpr uint64_t kSeed = 20261129;
  Random random(kSeed);
  const std::string_view pieces[] = {"[", "]", "{", "}", ",", "1", "\"a\"", "\"b\":", "\"\\\"\"", " ", "null"};
  size_t accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    const uint64_t length = 1 + random.below(8);
    for (uint64_t k = 0; k < length; ++k) text += pieces[random.below(std::size(pieces))];
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) continue;
    ++accepted;
    Counts counts;
    counts.visit(json, 0);
    SCOPED_TRACE(testing::Message() << text << " of seed " << kSeed);
    JsonBounds bounds{.depth_max = counts.depth, .values_max = 100};
    EXPECT_TRUE(parse_bounded_json(text, bounds).ok());
    if (counts.depth > 0) {
      --bounds.depth_max;
      EXPECT_FALSE(parse_bounded_json(text, bounds).ok());
    }
    // Equal members and empty lists make fewer values than were counted, and never more.
    EXPECT_TRUE(counts.values == 1 || !parse_bounded_json(text, {.values_max = counts.values - 1}).ok());
  }
  EXPECT_GT(accepted, 1000u);
}

TEST(BoundedJsonTest, WhatIsShownIsCut) {
  EXPECT_EQ(shown_json({{"a", 1}}), R"({"a":1})");
  EXPECT_EQ(shown_json(std::string(100, 'x')), "\"" + std::string(63, 'x') + "...");
  EXPECT_EQ(shown_json(*parse_bounded_json(nested(32))), nested(32));
}

}  // namespace
}  // namespace foliot
