#include "answer/selection/kept_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace foliot {
namespace {

// Both outlive it.
Query query_of(std::string_view first, std::string_view second) {
  return {.inputs = {{"a", "UINT8", {}, std::as_bytes(std::span(first))},
                     {"b", "UINT8", {}, std::as_bytes(std::span(second))}}};
}
std::string text(const TensorView& input) {
  return {reinterpret_cast<const char*>(input.bytes.data()), input.bytes.size()};
}

TEST(KeptInputsTest, TheQueryReadsTheCopy) {
  std::string first = "first";
  std::string second = "2nd";
  KeptInputs inputs(8);
  Query query = query_of(first, second);
  ASSERT_TRUE(inputs.copy(query));
  std::ranges::fill(first, '-');
  std::ranges::fill(second, '-');
  EXPECT_EQ(text(query.inputs[0]), "first");
  EXPECT_EQ(text(query.inputs[1]), "2nd");
  EXPECT_EQ(inputs.bytes(), 8u);
}

TEST(KeptInputsTest, BeyondTheLimitThereIsNone) {
  const std::string five = "12345";
  KeptInputs inputs(19);
  Query query = query_of(five, five);
  EXPECT_TRUE(inputs.copy(query));
  Query other = query_of(five, five);
  EXPECT_FALSE(inputs.copy(other));
  EXPECT_EQ(static_cast<const void*>(other.inputs[0].bytes.data()), five.data()) << "it is as before";
  EXPECT_EQ(inputs.bytes(), 10u);
  const auto owner = std::move(query.owner);
  query = {};
  EXPECT_EQ(inputs.bytes(), 10u);
  Query small = query_of(five, "1234");
  EXPECT_TRUE(inputs.copy(small));
  EXPECT_EQ(inputs.bytes(), 19u);
}

TEST(KeptInputsTest, ACopyMayOutliveWhatCountsIt) {
  const std::string five = "12345";
  Query query = query_of(five, "");
  EXPECT_TRUE(KeptInputs(5).copy(query));
  EXPECT_EQ(text(query.inputs[0]), "12345");
}

TEST(KeptInputsTest, ThreadsShareTheLimit) {
  const std::string five = "12345";
  KeptInputs inputs(15);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        Query query = query_of(five, "");
        const bool copied = inputs.copy(query);
        EXPECT_LE(inputs.bytes(), 15u);
        if (!copied) continue;
        EXPECT_EQ(text(query.inputs[0]), five);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(inputs.bytes(), 0u);
}

}  // namespace
}  // namespace foliot
