#include "engine/compiler/small_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace foliot {
namespace {

using testing::ElementsAre;

std::vector<float> floats_of(int number, std::vector<uint8_t> packed, uint64_t elements) {
  const std::vector<std::byte> bytes = widen(*find_small_type(number), std::as_bytes(std::span(packed)), elements);
  std::vector<float> values(elements);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<int> integers_of(int number, std::vector<uint8_t> packed, uint64_t elements) {
  const SmallType& type = *find_small_type(number);
  EXPECT_EQ(packed_bytes(type, elements), packed.size());
  std::vector<int> values;
  for (const std::byte byte : widen(type, std::as_bytes(std::span(packed)), elements)) {
    const auto code = std::to_integer<uint8_t>(byte);
    values.push_back(type.wide == DataType::kInt8 ? static_cast<int8_t>(code) : code);
  }
  return values;
}

TEST(SmallTypesTest, IntegersLieFromTheLowestBitOn) {
  EXPECT_THAT(integers_of(21, {0x1f, 0x08}, 3), ElementsAre(15, 1, 8));
  EXPECT_THAT(integers_of(22, {0x1f, 0x08}, 3), ElementsAre(-1, 1, -8));
  EXPECT_THAT(integers_of(25, {0b11100100}, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(integers_of(26, {0b11100100}, 4), ElementsAre(0, 1, -2, -1));
}

TEST(SmallTypesTest, FloatsHaveTheirLargestAndLeast) {
  EXPECT_THAT(floats_of(17, {0x7e, 0x01, 0x80, 0xb8}, 4), ElementsAre(448, std::ldexp(1, -9), -0.0F, -1));
  EXPECT_THAT(floats_of(18, {0x7f, 0x01}, 2), ElementsAre(240, std::ldexp(1, -10)));
  EXPECT_THAT(floats_of(19, {0x7b, 0x01, 0x7c, 0xfc}, 4), ElementsAre(57344, std::ldexp(1, -16), INFINITY, -INFINITY));
  EXPECT_THAT(floats_of(20, {0x7f, 0x01}, 2), ElementsAre(57344, std::ldexp(1, -17)));
  EXPECT_THAT(floats_of(23, {0x10, 0x32, 0x54, 0x76, 0xef}, 10), ElementsAre(0, 0.5, 1, 1.5, 2, 3, 4, 6, -6, -4));
  EXPECT_THAT(floats_of(24, {127, 0}, 2), ElementsAre(1, std::ldexp(1, -127)));
}

TEST(SmallTypesTest, NanIsWhereEachTypeHasIt) {
  for (const auto& [number, code] :
       {std::pair(17, 0x7f), {17, 0xff}, {18, 0x80}, {19, 0x7d}, {19, 0xff}, {20, 0x80}, {24, 0xff}})
    EXPECT_TRUE(std::isnan(floats_of(number, {static_cast<uint8_t>(code)}, 1)[0])) << number << " " << code;
}

TEST(SmallTypesTest, OthersAreNotSmall) {
  for (const int number : {0, 1, 16, 27}) EXPECT_EQ(find_small_type(number), nullptr) << number;
}

}  // namespace
}  // namespace foliot
