#include "engine/compiler/output_extents.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

// The rule for one output with one dimension, which is a function of two sizes.
ExtentRule rule(const std::function<int64_t(int64_t a, int64_t b)>& extent) {
  OutputExtents extents(
      [&](const OutputExtents::Sizes& sizes) -> std::optional<std::vector<Shape>> {
        const int64_t value = extent(sizes.at("a"), sizes.at("b"));
        if (value < 1) return std::nullopt;
        return std::vector<Shape>{{value}};
      },
      {{"a", 5000}, {"b", 64}});
  return extents.find(0, 0);
}

std::string text_of(const ExtentRule& rule) {
  if (rule.is_fixed) return "fixed";
  return rule.linear ? to_string(*rule.linear) : "unknown";
}

TEST(OutputExtentsTest, FindsWhatAnOutputFollows) {
  EXPECT_EQ(text_of(rule([](int64_t, int64_t) { return 7; })), "fixed");
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return a; })), "a");
  EXPECT_EQ(text_of(rule([](int64_t, int64_t b) { return b / 2; })), "b / 2");
  EXPECT_EQ(text_of(rule([](int64_t, int64_t b) { return (b + 1) / 2; })), "(b + 1) / 2");
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return 256 * a + 3; })), "256 * a + 3");
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return a < 400 ? 0 : (a - 80) / 320; })), "(a - 80) / 320");
}

TEST(OutputExtentsTest, LooksOnlyAtSizesThatTheModelTakes) {
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return a % 8 == 0 ? a : 0; })), "a");
}

TEST(OutputExtentsTest, KnowsNoRuleForAnythingElse) {
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t b) { return a + b; })), "unknown");
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return a * a; })), "unknown");
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return a * 3 / 2; })), "unknown");
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return std::max<int64_t>(a, 100); })), "unknown");
  EXPECT_EQ(text_of(rule([](int64_t a, int64_t) { return a % 8 == 0 ? a / 8 : 0; })), "unknown");
}

}  // namespace
}  // namespace foliot
