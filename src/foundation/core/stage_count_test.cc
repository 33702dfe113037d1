#include "foundation/core/stage_count.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

namespace foliot {
namespace {

template <typename T>
float count_of(DataType type, T value) {
  return count_in(type, std::as_bytes(std::span(&value, 1)));
}

TEST(StageCountTest, IsReadOfEveryTypeOfNumber) {
  EXPECT_EQ(count_of(DataType::kUint8, uint8_t{16}), 16);
  EXPECT_EQ(count_of(DataType::kInt64, int64_t{-3}), -3);
  EXPECT_EQ(count_of(DataType::kFloat32, 2.5f), 2.5f);
  EXPECT_EQ(count_of(DataType::kFloat16, uint16_t{0x4900}), 10);
}

TEST(StageCountTest, WhatOnlyRoundingMakesWholeIsNone) {
  EXPECT_TRUE(std::isnan(count_of(DataType::kFloat64, 2 + 1e-12)));
  EXPECT_EQ(count_of(DataType::kFloat64, 2.0), 2);
}

TEST(StageCountTest, IsAWholeNumberUpToItsLimit) {
  EXPECT_EQ(whole_count(0, 16), 0u);
  EXPECT_EQ(whole_count(16, 16), 16u);
  EXPECT_EQ(whole_count(17, 16), std::nullopt);
  EXPECT_EQ(whole_count(-1, 16), std::nullopt);
  EXPECT_EQ(whole_count(0.5f, 16), std::nullopt);
  EXPECT_EQ(whole_count(std::numeric_limits<float>::quiet_NaN(), 16), std::nullopt);
  EXPECT_EQ(whole_count(std::numeric_limits<float>::infinity(), 16), std::nullopt);
}

}  // namespace
}  // namespace foliot
