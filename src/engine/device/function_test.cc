#include "engine/device/function.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "engine/device/operator.h"

namespace foliot {
namespace {

TEST(FunctionTest, EachHasANameOfItsOwnThatLeadsBack) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kFunctionCount; ++i) {
    const auto function = static_cast<Function>(i);
    EXPECT_TRUE(names.insert(to_string(function)).second) << to_string(function);
    EXPECT_EQ(parse_function(to_string(function)), function) << to_string(function);
  }
}

// They stand in packages, so the names stay.
TEST(FunctionTest, NamesAreThoseOfPackages) {
  EXPECT_EQ(to_string(Function::kRelu), "relu");
  EXPECT_EQ(to_string(Function::kGeluTanh), "gelu_tanh");
  EXPECT_EQ(to_string(Function::kLinear), "linear");
  EXPECT_EQ(to_string(Function::kAdd), "add");
  EXPECT_EQ(to_string(Function::kGreaterOrEqual), "greater_or_equal");
  EXPECT_EQ(to_string(Function::kShiftRight), "shift_right");
  EXPECT_EQ(to_string(Function::kMean), "mean");
  EXPECT_EQ(to_string(Function::kLogSumExp), "log_sum_exp");
  EXPECT_EQ(to_string(Function::kNone), "none");
}

TEST(FunctionTest, OtherNamesAreNone) {
  for (const char* name : {"", "Relu", "relu ", "frobnicate"}) EXPECT_EQ(parse_function(name), std::nullopt) << name;
}

TEST(FunctionTest, SomeHaveParameters) {
  EXPECT_FALSE(has_parameters(Function::kAtanh));
  EXPECT_TRUE(has_parameters(Function::kClip));
  EXPECT_TRUE(has_parameters(Function::kLinear));
  EXPECT_FALSE(has_parameters(Function::kAdd));
}

TEST(OperatorKindTest, EachHasANameOfItsOwnThatLeadsBack) {
  std::set<std::string_view> names;
  for (auto i = 0; i <= static_cast<int>(OperatorKind::kReorder); ++i) {
    const auto kind = static_cast<OperatorKind>(i);
    EXPECT_TRUE(names.insert(to_string(kind)).second) << to_string(kind);
    EXPECT_EQ(parse_operator_kind(to_string(kind)), kind) << to_string(kind);
  }
  EXPECT_EQ(parse_operator_kind("convolution"), std::nullopt);
}

}  // namespace
}  // namespace foliot
