#include "foundation/core/stage_condition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace foliot {
namespace {

using Value = StageCondition::Value;
using Comparison = StageCondition::Comparison;

template <typename T>
bool asked(const StageCondition& condition, DataType type, const std::vector<T>& row) {
  return holds(condition, type, std::as_bytes(std::span(row)));
}

TEST(StageConditionTest, ComparesTheMaximumAnElementAndItsPosition) {
  const std::vector<float> row = {0.5F, -1, 2.5F, 2.5F};
  const auto is = [&](Value value, double limit, uint64_t element = 0) {
    return asked({.value = value, .element = element, .comparison = Comparison::kEqual, .limit = limit},
                 DataType::kFloat32, row);
  };
  EXPECT_TRUE(is(Value::kMaximum, 2.5));
  EXPECT_TRUE(is(Value::kElement, -1, 1));
  EXPECT_TRUE(is(Value::kArgmax, 2));
  EXPECT_FALSE(is(Value::kArgmax, 3));
}

TEST(StageConditionTest, ComparesInEachWay) {
  const auto three = [](Comparison comparison, double limit) {
    return asked<int32_t>({.comparison = comparison, .limit = limit}, DataType::kInt32, {3});
  };
  EXPECT_TRUE(three(Comparison::kBelow, 4));
  EXPECT_FALSE(three(Comparison::kBelow, 3));
  EXPECT_TRUE(three(Comparison::kAtMost, 3));
  EXPECT_FALSE(three(Comparison::kAbove, 3));
  EXPECT_TRUE(three(Comparison::kAbove, 2));
  EXPECT_TRUE(three(Comparison::kAtLeast, 3));
  EXPECT_TRUE(three(Comparison::kEqual, 3));
  EXPECT_FALSE(three(Comparison::kNotEqual, 3));
}

TEST(StageConditionTest, ReadsEachType) {
  const StageCondition above_one{.comparison = Comparison::kAbove, .limit = 1};
  EXPECT_TRUE(asked<uint8_t>(above_one, DataType::kUint8, {1, 200}));
  EXPECT_FALSE(asked<int8_t>(above_one, DataType::kInt8, {1, -100}));
  EXPECT_TRUE(asked<uint64_t>(above_one, DataType::kUint64, {uint64_t{1} << 63}));
  EXPECT_TRUE(asked<double>(above_one, DataType::kFloat64, {1.5}));
  EXPECT_TRUE(asked<uint16_t>(above_one, DataType::kFloat16, {0x3E00}));    // 1.5
  EXPECT_FALSE(asked<uint16_t>(above_one, DataType::kFloat16, {0xBE00}));   // -1.5
  EXPECT_TRUE(asked<uint16_t>(above_one, DataType::kFloat16, {0x7C00}));    // infinity
  EXPECT_FALSE(asked<uint16_t>(above_one, DataType::kFloat16, {0x03FF}));   // subnormal
  EXPECT_TRUE(asked<uint16_t>(above_one, DataType::kBfloat16, {0x3FC0}));   // 1.5
  EXPECT_FALSE(asked<uint16_t>(above_one, DataType::kBfloat16, {0x3F80}));  // 1
}

TEST(StageConditionTest, NotANumberIsPassedOverAndEqualsNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const StageCondition three{.comparison = Comparison::kEqual, .limit = 3};
  EXPECT_TRUE(asked<float>(three, DataType::kFloat32, {nan, 3, nan, 1}));
  EXPECT_TRUE(asked<float>({.value = Value::kArgmax, .comparison = Comparison::kEqual, .limit = 1}, DataType::kFloat32,
                           {nan, 3, nan, 1}));
  for (const Value value : {Value::kMaximum, Value::kElement, Value::kArgmax}) {
    StageCondition condition{.value = value};
    for (const Comparison comparison :
         {Comparison::kBelow, Comparison::kAtMost, Comparison::kAbove, Comparison::kAtLeast, Comparison::kEqual}) {
      condition.comparison = comparison;
      EXPECT_FALSE(asked<float>(condition, DataType::kFloat32, {nan, nan}));
    }
    condition.comparison = Comparison::kNotEqual;
    EXPECT_TRUE(asked<float>(condition, DataType::kFloat32, {nan, nan}));
  }
}

}  // namespace
}  // namespace foliot
