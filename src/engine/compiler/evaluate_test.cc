#include "engine/compiler/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foliot {
namespace {

using Integers = std::vector<int64_t>;

Constant list(const Integers& values) { return make_constant({static_cast<int64_t>(values.size())}, values); }

Attributes with_function(Function function) {
  Attributes attributes;
  attributes.set("function", function);
  return attributes;
}

Integers binary(Function function, const Integers& a, const Integers& b) {
  const Shape shape{static_cast<int64_t>(std::max(a.size(), b.size()))};
  const Constant operands[] = {list(a), list(b)};
  return to_integers(
      evaluate(OperatorKind::kBinary, operands, with_function(function), {DataType::kInt64, shape}).value());
}

TEST(EvaluateTest, ComputesOnIntegersExactly) {
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_EQ(binary(Function::kAdd, {large}, {1}), (Integers{large + 1}));
  EXPECT_EQ(binary(Function::kMul, {3, 4}, {5}), (Integers{15, 20}));
  EXPECT_EQ(binary(Function::kDiv, {7, -7}, {2}), (Integers{3, -3}));
  EXPECT_EQ(binary(Function::kMod, {7, -7}, {3}), (Integers{1, 2}));
  EXPECT_EQ(binary(Function::kPow, {2, -3}, {3}), (Integers{8, -27}));
  EXPECT_EQ(binary(Function::kMin, {1, 9}, {5}), (Integers{1, 5}));
}

TEST(EvaluateTest, FunctionsOfLargeIntegersAreExact) {
  const int64_t large = (int64_t{1} << 60) + 1;
  const Constant operand[] = {list({large, -large})};
  const auto of = [&](Attributes attributes) {
    return to_integers(evaluate(OperatorKind::kUnary, operand, attributes, {DataType::kInt64, {2}}).value());
  };
  EXPECT_EQ(of(with_function(Function::kRelu)), (Integers{large, 0}));
  EXPECT_EQ(of(with_function(Function::kNeg)), (Integers{-large, large}));
  EXPECT_EQ(of(with_function(Function::kAbs)), (Integers{large, large}));
  Attributes clip = with_function(Function::kClip);
  clip.set("alpha", -5.0);
  clip.set("beta", std::numeric_limits<double>::max());
  EXPECT_EQ(of(clip), (Integers{large, -5}));
}

TEST(EvaluateTest, SurvivesWhatIsUndefinedInCpp) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(binary(Function::kDiv, {lowest}, {-1}), (Integers{lowest}));
  EXPECT_EQ(binary(Function::kDiv, {1}, {0}), (Integers{0}));
  EXPECT_EQ(binary(Function::kMod, {lowest}, {-1}), (Integers{0}));
  const double infinite = std::numeric_limits<double>::infinity();
  const Constant operand[] = {make_scalar(DataType::kFloat32, infinite)};
  const auto cast = evaluate(OperatorKind::kCast, operand, {}, {DataType::kInt64, {}});
  EXPECT_EQ(to_integers(*cast)[0], std::numeric_limits<int64_t>::max());
}

TEST(EvaluateTest, SlicesBackwards) {
  Attributes attributes;
  attributes.set("starts", Integers{4});
  attributes.set("steps", Integers{-2});
  const Constant operand[] = {list({0, 1, 2, 3, 4})};
  EXPECT_EQ(to_integers(*evaluate(OperatorKind::kSlice, operand, attributes, {DataType::kInt64, {3}})),
            (Integers{4, 2, 0}));
}

TEST(EvaluateTest, GathersAndRefusesWhatIsOutside) {
  Attributes attributes;
  attributes.set("axis", int64_t{0});
  const Constant inside[] = {list({10, 20, 30}), list({-1, 0})};
  EXPECT_EQ(to_integers(*evaluate(OperatorKind::kGather, inside, attributes, {DataType::kInt64, {2}})),
            (Integers{30, 10}));
  const Constant outside[] = {list({10, 20, 30}), list({3})};
  EXPECT_FALSE(evaluate(OperatorKind::kGather, outside, attributes, {DataType::kInt64, {1}}).has_value());
}

TEST(EvaluateTest, TransposesAndReduces) {
  const Constant matrix[] = {make_constant({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})};
  Attributes permutation;
  permutation.set("permutation", Integers{1, 0});
  EXPECT_EQ(to_doubles(*evaluate(OperatorKind::kTranspose, matrix, permutation, {DataType::kFloat32, {3, 2}})),
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  Attributes mean = with_function(Function::kMean);
  mean.set("axes", Integers{1});
  EXPECT_EQ(to_doubles(*evaluate(OperatorKind::kReduce, matrix, mean, {DataType::kFloat32, {2}})),
            (std::vector<double>{2, 5}));
}

TEST(EvaluateTest, ConvertsHalfPrecision) {
  const std::vector<double> values{0, 1, -2.5, 65504, 6.103515625e-05, 5.9604644775390625e-08, 0.333251953125};
  const auto count = static_cast<int64_t>(values.size());
  EXPECT_EQ(to_doubles(from_doubles(DataType::kFloat16, {count}, values)), values);
  const std::vector<double> rounded =
      to_doubles(from_doubles(DataType::kFloat16, {3}, std::vector<double>{1 + 1.0 / 2048, 65519, 1e6}));
  EXPECT_EQ(rounded[0], 1);
  EXPECT_EQ(rounded[1], 65504);
  EXPECT_TRUE(std::isinf(rounded[2]));
  EXPECT_EQ(to_doubles(from_doubles(DataType::kBfloat16, {1}, std::vector<double>{1.00390625}))[0], 1);
}

TEST(ConstantPoolTest, MakesEqualContentOneObject) {
  ConstantPool pool;
  const Constant one = pool.intern(list({1, 2}));
  EXPECT_EQ(pool.intern(list({1, 2})).bytes, one.bytes);
  EXPECT_NE(pool.intern(list({1, 3})).bytes, one.bytes);
}

}  // namespace
}  // namespace foliot
