#include "engine/device/cpu/vector_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "engine/device/cpu/activation_rows.h"
#include "engine/device/cpu/instruction_set.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

struct Case {
  Function function;
  double (*reference)(double);
  double low, high;
};

// In units in the last place of `expected`.
double distance(float value, double expected) {
  const double unit = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
  return std::abs(value - expected) / unit;
}

double relu_of(double x) { return std::max(x, 0.0); }
double softplus_of(double x) { return std::log1p(std::exp(x)); }

const std::vector<Case> kCases{{Function::kErf, std::erf, -4, 4},
                               {Function::kExp, std::exp, -103, 88.7},
                               {Function::kLog, std::log, 1e-3, 50},
                               {Function::kSin, std::sin, -50, 50},
                               {Function::kCos, std::cos, -50, 50},
                               {Function::kTan, std::tan, -1.5, 1.5},
                               {Function::kAsin, std::asin, -1, 1},
                               {Function::kAcos, std::acos, -1, 1},
                               {Function::kAtan, std::atan, -9, 9},
                               {Function::kSinh, std::sinh, -9, 9},
                               {Function::kCosh, std::cosh, -9, 9},
                               {Function::kAsinh, std::asinh, -9, 9},
                               {Function::kAcosh, std::acosh, 1, 9},
                               {Function::kAtanh, std::atanh, -.9, .9},
                               {Function::kFloor, std::floor, -9, 9},
                               {Function::kCeil, std::ceil, -9, 9},
                               {Function::kSoftplus, softplus_of, -100, 40},
                               {Function::kRelu, relu_of, -9, 9}};

std::vector<float> values_between(double low, double high, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / static_cast<double>(count - 1));
  return values;
}

TEST(VectorFunctions, AreRight) {
  for (const Case& it : kCases) {
    const VectorFunction function = find_vector_function(it.function);
    if (function == nullptr) GTEST_SKIP() << "the processor has no AVX2";
    const std::vector<float> from = values_between(it.low, it.high, 1003);
    std::vector<float> to(from.size());
    function(from.data(), to.data(), static_cast<int64_t>(from.size()));
    for (size_t i = 0; i < from.size(); ++i) {
      const double expected = it.reference(static_cast<double>(from[i]));
      ASSERT_LE(distance(to[i], expected), 4) << to_string(it.function) << " of " << from[i];
    }
  }
}

TEST(VectorFunctions, TakeTheLargestTheLeastAndNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const dnnl::cpu_isa set : {dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core}) {
    if (find_vector_function(Function::kExp) == nullptr || !includes(instruction_set(), set)) continue;
    const ActivationRows rows = find_activation_rows(set);
    const std::vector<float> from{kInfinity, 89, 88.72F, 0, -0.F, -87.5F, -103.9F, -105, -1e30F, -kInfinity, NAN};
    std::vector<float> exp(from.size()), softplus(from.size());
    rows.exp(from.data(), exp.data(), static_cast<int64_t>(from.size()));
    rows.softplus(from.data(), softplus.data(), static_cast<int64_t>(from.size()));
    const std::vector<float> least{0, 0, 0};
    std::vector<float> relu(from.size());
    rows.relu(from.data(), relu.data(), static_cast<int64_t>(from.size()));
    EXPECT_EQ(relu[0], kInfinity);
    EXPECT_EQ(relu[9], 0);
    EXPECT_TRUE(std::isnan(relu.back()));
    EXPECT_EQ(std::vector<float>(exp.begin(), exp.begin() + 2), (std::vector<float>{kInfinity, kInfinity}));
    EXPECT_EQ(std::vector<float>(exp.begin() + 7, exp.begin() + 10), least);
    EXPECT_EQ(std::vector<float>(softplus.begin() + 7, softplus.begin() + 10), least);
    EXPECT_EQ(softplus[0], kInfinity);
    EXPECT_TRUE(std::isnan(exp.back()) && std::isnan(softplus.back()));
    for (size_t i = 2; i < 7; ++i) {
      ASSERT_LE(distance(exp[i], std::exp(static_cast<double>(from[i]))), 4) << from[i];
      ASSERT_LE(distance(softplus[i], softplus_of(static_cast<double>(from[i]))), 4) << from[i];
    }
  }
}

TEST(VectorFunctions, EluIsRightNearZeroAndKeepsItsSign) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const dnnl::cpu_isa set : {dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core}) {
    if (find_vector_elu() == nullptr || !includes(instruction_set(), set)) continue;
    std::vector<float> from{-0.F, 0.F, NAN, kInfinity, -kInfinity, 1e-40F, -1e-40F, 3e38F, -3e38F, -24.9F, -25.1F};
    for (const float x : values_between(-30, 2, 1003)) from.push_back(x);
    for (float x = -1; x < -1e-30F; x *= 0.7F) from.push_back(x);
    const auto elu = [&](const float* values, int64_t count) {
      std::vector<float> to(static_cast<size_t>(count));
      find_activation_rows(set).elu(values, 1.5F, to.data(), count);
      return to;
    };
    const std::vector<float> to = elu(from.data(), static_cast<int64_t>(from.size()));
    EXPECT_TRUE(std::signbit(to[0]) && to[0] == 0);
    EXPECT_TRUE(std::isnan(to[2]));
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(elu(&from[i], 1)[0]), std::bit_cast<uint32_t>(to[i])) << from[i];
      const auto x = static_cast<double>(from[i]);
      if (x < 0) {
        ASSERT_LE(distance(to[i], 1.5 * std::expm1(x)), 4) << from[i];
      } else if (x >= 0) {
        ASSERT_EQ(to[i], from[i]);
      }
    }
  }
}

// A row of a batch has the same answer in any place of it.
TEST(VectorFunctions, DoNotDependOnThePlace) {
  for (const Case& it : kCases) {
    const VectorFunction function = find_vector_function(it.function);
    if (function == nullptr) GTEST_SKIP() << "the processor has no AVX2";
    const std::vector<float> from = values_between(it.low, it.high, 29);
    std::vector<float> whole(from.size()), alone(from.size());
    function(from.data(), whole.data(), static_cast<int64_t>(from.size()));
    for (size_t i = 0; i < from.size(); ++i) function(&from[i], &alone[i], 1);
    for (size_t i = 0; i < from.size(); ++i)
      EXPECT_EQ(std::bit_cast<uint32_t>(whole[i]), std::bit_cast<uint32_t>(alone[i])) << to_string(it.function);
  }
}

// Quotients from below one to beyond what vectors take, of both signs, also whole numbers; and what is not finite.
std::vector<std::pair<float, float>> divisions() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<std::pair<float, float>> pairs{{3.F, 0.F},     {kInfinity, 2.F}, {2.F, kInfinity}, {-2.F, -kInfinity},
                                             {1e30F, 3e-5F}, {-0.F, 1.F},      {1e-42F, 3e-43F}, {-5e-40F, 1e-30F}};
  Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto quotient = static_cast<float>(std::exp2(30 * random.uniform() - 4));
    const auto divisor = static_cast<float>((random.uniform() < 0.5 ? -1 : 1) * std::exp2(40 * random.uniform() - 20));
    const float near = i % 3 == 0 ? std::round(quotient) : quotient;
    const float dividend = (i % 2 == 0 ? near : -near) * divisor;
    pairs.insert(pairs.end(), {{dividend, divisor}, {std::nextafter(dividend, 0.F), divisor}});
  }
  return pairs;
}

TEST(VectorFunctions, TakeRemaindersAsTheCLibraryDoes) {
  const VectorRemainder take = find_vector_remainder();
  if (take == nullptr) GTEST_SKIP() << "the processor has no AVX2";
  std::vector<float> dividends, divisors;
  for (const auto& [dividend, divisor] : divisions()) {
    dividends.push_back(dividend);
    divisors.push_back(divisor);
  }
  const auto count = static_cast<int64_t>(dividends.size());
  std::vector<float> each(dividends.size()), one(dividends.size());
  take(dividends.data(), divisors.data(), 1, each.data(), count);
  const float divisor = 0.7F;
  take(dividends.data(), &divisor, 0, one.data(), count);
  const auto expect = [](float value, float x, float y) {
    const float expected = std::fmod(x, y);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(value)) << x << " by " << y;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected)) << x << " by " << y;
  };
  for (size_t i = 0; i < dividends.size(); ++i) {
    expect(each[i], dividends[i], divisors[i]);
    expect(one[i], dividends[i], divisor);
  }
}

TEST(VectorFunctions, RaiseToPowers) {
  const VectorParameter power = find_vector_power();
  if (power == nullptr) GTEST_SKIP() << "the processor has no AVX2";
  const std::vector<float> from = values_between(0, 30, 107);
  std::vector<float> to(from.size());
  for (const float exponent : {0.5F, 1.7F, -0.25F, 4.F}) {
    power(from.data(), exponent, to.data(), static_cast<int64_t>(from.size()));
    for (size_t i = 1; i < from.size(); ++i) {
      const double expected = std::pow(static_cast<double>(from[i]), static_cast<double>(exponent));
      ASSERT_LE(distance(to[i], expected), 4) << from[i] << " to the power of " << exponent;
    }
  }
  power(from.data(), -1, to.data(), 1);
  EXPECT_EQ(to[0], std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace foliot
