#include "engine/device/cpu/normalization_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/device/cpu/instruction_set.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kUntouched = 77;

// Those of every instruction set that this processor has.
std::vector<NormalizationRows> all_rows() {
  std::vector<NormalizationRows> result;
  for (const auto set : {dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core})
    if (includes(instruction_set(), set)) result.push_back(find_normalization_rows(set));
  return result;
}

// Around the sizes of vectors, of several of them, and of the pieces that sums are made of.
const std::vector<size_t> kCounts{1,  2,  3,  4,  5,  7,  8,  9,   15,  16,   17,   31,   32,   33,
                                  63, 64, 65, 66, 79, 80, 97, 128, 197, 1000, 1024, 4096, 4097, 9001};

std::vector<float> row_of(size_t count, double low, double high, uint64_t seed) {
  Random random(seed);
  std::vector<float> row(count);
  for (float& x : row) x = static_cast<float>(low + (high - low) * random.uniform());
  return row;
}

std::vector<double> expected_softmax(const std::vector<float>& row, bool log) {
  const auto largest = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - largest);
  std::vector<double> result;
  for (const float x : row) {
    const double logarithm = static_cast<double>(x) - largest - std::log(sum);
    result.push_back(log ? logarithm : std::exp(logarithm));
  }
  return result;
}

// With a value behind the row that must not be written.
std::vector<float> softmax_of(const NormalizationRows& rows, const std::vector<float>& row, bool log) {
  std::vector<float> result(row.size() + 1, kUntouched);
  rows.softmax(row.data(), result.data(), static_cast<int64_t>(row.size()), log);
  EXPECT_EQ(result.back(), kUntouched) << row.size();
  result.pop_back();
  return result;
}

TEST(NormalizationRows, SoftmaxIsRight) {
  for (const NormalizationRows& rows : all_rows()) {
    for (const size_t count : kCounts) {
      for (const bool log : {false, true}) {
        const std::vector<float> row = row_of(count, -40, 40, count);
        const std::vector<float> result = softmax_of(rows, row, log);
        const std::vector<double> expected = expected_softmax(row, log);
        for (size_t i = 0; i < count; ++i)
          ASSERT_NEAR(result[i], expected[i], (log ? 2e-6 : 1e-37) + 1e-5 * std::abs(expected[i])) << count << " " << i;
      }
    }
  }
}

TEST(NormalizationRows, SoftmaxOfEdgeValues) {
  for (const NormalizationRows& rows : all_rows()) {
    for (const size_t count : kCounts) {
      std::vector<float> row(count, 3e38F);
      for (const float x : softmax_of(rows, row, false)) ASSERT_FLOAT_EQ(x, 1 / static_cast<float>(count));
      row.assign(count, -kInfinite);
      for (const float x : softmax_of(rows, row, false)) ASSERT_TRUE(std::isnan(x)) << count;
      row[count / 2] = -3e38F;
      const std::vector<float> one = softmax_of(rows, row, false), logarithms = softmax_of(rows, row, true);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(one[i], i == count / 2 ? 1.F : 0.F) << count;
        ASSERT_EQ(logarithms[i], i == count / 2 ? 0.F : -kInfinite) << count;
      }
      for (const float strange : {kNotANumber, kInfinite}) {
        for (const size_t place : {size_t{0}, count / 2, count - 1}) {
          row = row_of(count, -1, 1, count);
          row[place] = strange;
          for (const float x : softmax_of(rows, row, false)) ASSERT_TRUE(std::isnan(x)) << count << ", " << place;
        }
      }
    }
  }
}

// Overwriting the row, and wherever it begins.
TEST(NormalizationRows, DoNotDependOnThePlace) {
  for (const NormalizationRows& rows : all_rows()) {
    for (const size_t count : kCounts) {
      const auto n = static_cast<int64_t>(count);
      const std::vector<float> row = row_of(count, -4, 4, count);
      const std::vector<float> expected = softmax_of(rows, row, false);
      const auto [mean, variance] = rows.moments(row.data(), n);
      std::vector<float> normal(count);
      rows.normalize(row.data(), normal.data(), n, mean, 0.7F, 0.1F);
      std::vector<float> memory(count + 4);
      for (size_t shift = 0; shift < 4; ++shift) {
        float* place = memory.data() + shift;
        std::copy(row.begin(), row.end(), place);
        const auto moments = rows.moments(place, n);
        EXPECT_EQ(moments.mean, mean);
        EXPECT_EQ(moments.variance, variance);
        rows.normalize(place, place, n, mean, 0.7F, 0.1F);
        EXPECT_TRUE(std::equal(normal.begin(), normal.end(), place)) << count;
        std::copy(row.begin(), row.end(), place);
        rows.softmax(place, place, n, false);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), place)) << count;
      }
    }
  }
}

// Also of values that are far from zero and near each other.
TEST(NormalizationRows, MomentsAreRight) {
  for (const NormalizationRows& rows : all_rows()) {
    for (const size_t count : kCounts) {
      for (const double centre : {0., 1000.}) {
        const std::vector<float> row = row_of(count, centre - 1, centre + 2, count);
        double mean = 0, variance = 0;
        for (const float x : row) mean += static_cast<double>(x) / static_cast<double>(count);
        for (const float x : row) variance += std::pow(static_cast<double>(x) - mean, 2) / static_cast<double>(count);
        const auto moments = rows.moments(row.data(), static_cast<int64_t>(count));
        ASSERT_NEAR(moments.mean, mean, 3e-7 * centre + 1e-6) << count;
        ASSERT_NEAR(moments.variance, variance, 1e-5 * variance + 1e-6) << count;
      }
    }
    const std::vector<float> strange{1, kNotANumber, 2}, infinite{1, kInfinite, 2};
    EXPECT_TRUE(std::isnan(rows.moments(strange.data(), 3).mean));
    EXPECT_TRUE(std::isnan(rows.moments(infinite.data(), 3).variance));
  }
}

TEST(NormalizationRows, NormalizeIsRight) {
  for (const NormalizationRows& rows : all_rows()) {
    for (const size_t count : kCounts) {
      const std::vector<float> row = row_of(count, -5, 5, count);
      std::vector<float> result(count + 1, kUntouched);
      rows.normalize(row.data(), result.data(), static_cast<int64_t>(count), 0.5F, 3, -2);
      for (size_t i = 0; i < count; ++i)
        ASSERT_NEAR(result[i], (static_cast<double>(row[i]) - 0.5) * 3 - 2, 1e-5) << count;
      EXPECT_EQ(result[count], kUntouched) << count;
    }
  }
}

}  // namespace
}  // namespace foliot
