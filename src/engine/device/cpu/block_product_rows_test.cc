#include "engine/device/cpu/block_product_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/device/cpu/instruction_set.h"
#include "foundation/base/random.h"
#include "foundation/base/test_seed.h"

namespace foliot {
namespace {

const std::vector<dnnl::cpu_isa> kSets{dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core,
                                       dnnl::cpu_isa::avx512_core_vnni};

// One product with all that it needs.
struct Example {
  BlockWeights weights;
  int64_t rows;
  std::vector<uint32_t> codes;
  std::vector<float> scales, bias, x;
  std::vector<uint8_t> zero_points;

  Example(const BlockWeights& form, int64_t row_count, Random& random) : weights(form), rows(row_count) {
    const auto real = [&] { return static_cast<float>(2 * random.uniform() - 1); };
    for (int64_t i = 0; i < weights.panels() * weights.words() * 16; ++i)
      codes.push_back(static_cast<uint32_t>(random.below(uint64_t{1} << 32)));
    for (int64_t i = 0; i < weights.panels() * weights.blocks() * 16; ++i) scales.push_back(real());
    if (random.below(2) == 0) {
      for (size_t i = 0; i < scales.size(); ++i)
        zero_points.push_back(static_cast<uint8_t>(random.below(static_cast<uint64_t>(2 * weights.middle()))));
    }
    if (random.below(2) == 0)
      for (int64_t i = 0; i < weights.columns; ++i) bias.push_back(real());
    for (int64_t i = 0; i < rows * weights.depth; ++i) x.push_back(real());
  }

  double weight(int64_t column, int64_t k) const {
    const int64_t panel = column / 16, lane = column % 16, depth = weights.word_depth();
    const uint32_t word = codes[static_cast<size_t>((panel * weights.words() + k / depth) * 16 + lane)];
    const auto code = (word >> weights.shift_of(k % depth)) & static_cast<uint32_t>(2 * weights.middle() - 1);
    const auto at = static_cast<size_t>((panel * weights.blocks() + k / weights.block) * 16 + lane);
    const double zero = zero_points.empty() ? static_cast<double>(weights.middle()) : zero_points[at];
    return (code - zero) * scales[at];
  }

  std::vector<float> run(dnnl::cpu_isa set, bool rounds) const {
    const BlockProductRows functions = find_block_product_rows(set);
    std::vector<float> to(static_cast<size_t>(rows * weights.columns), 77), unpacked(kUnpackedFloats);
    std::vector<int8_t> rounded(static_cast<size_t>(rows * weights.padded_depth()), 77);
    std::vector<float> rounded_scales(static_cast<size_t>(rows * weights.blocks()));
    std::vector<int32_t> sums(rounded_scales.size());
    const BlockProduct product{.weights = weights,
                               .rows = rows,
                               .codes = codes.data(),
                               .scales = scales.data(),
                               .zero_points = zero_points.empty() ? nullptr : zero_points.data(),
                               .bias = bias.empty() ? nullptr : bias.data(),
                               .x = x.data(),
                               .to = to.data(),
                               .rounded = rounded.data(),
                               .rounded_scales = rounded_scales.data(),
                               .rounded_sums = sums.data()};
    for (int64_t row = 0; row < rows && rounds; ++row) functions.round_row(product, row);
    for (int64_t share = 0; share * kPanelsPerShare < weights.panels(); ++share) {
      if (rounds)
        functions.multiply_rounded(product, share);
      else
        functions.multiply(product, share, unpacked.data());
    }
    return to;
  }

  // `step_error`: of each product, in units of its block's largest magnitude.
  void expect_close(const std::vector<float>& actual, double step_error) const {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < weights.columns; ++column) {
        double sum = bias.empty() ? 0 : bias[static_cast<size_t>(column)], error = 1e-6 * (1 + std::abs(sum));
        for (int64_t k = 0; k < weights.depth; ++k) {
          const double product = x[static_cast<size_t>(row * weights.depth + k)] * weight(column, k);
          sum += product;
          error += 2e-6 * std::abs(product) + step_error * std::abs(weight(column, k));
        }
        const double value = actual[static_cast<size_t>(row * weights.columns + column)];
        // Written so that NaN fails.
        if (!(std::abs(value - sum) <= error)) {
          ADD_FAILURE() << "row " << row << ", column " << column << ": " << value << " instead of " << sum;
          return;
        }
      }
    }
  }
};

Example random_example(Random& random) {
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
  };
  const BlockWeights weights{.depth = between(1, 400),
                             .columns = between(1, 150),
                             .block = int64_t{8} << between(0, 5),
                             .bits = random.below(2) == 0 ? 4 : 8};
  return Example(weights, between(1, 15), random);
}

std::vector<dnnl::cpu_isa> present_sets() {
  std::vector<dnnl::cpu_isa> result;
  for (const dnnl::cpu_isa set : kSets)
    if (includes(instruction_set(), set)) result.push_back(set);
  return result;
}

TEST(BlockProductRows, AgreeWithTheReferenceOnEveryInstructionSet) {
  Random random(fresh_seed());
  for (int round = 0; round < 60; ++round) {
    const Example example = random_example(random);
    SCOPED_TRACE(testing::Message() << example.rows << "x" << example.weights.depth << "x" << example.weights.columns
                                    << ", block " << example.weights.block << ", bits " << example.weights.bits);
    for (const dnnl::cpu_isa set : present_sets()) {
      SCOPED_TRACE(name_of(set));
      example.expect_close(example.run(set, false), 0);
      example.expect_close(example.run(set, true), 0.5001 / 127);
    }
  }
}

TEST(BlockProductRows, ARowIsTheSameToTheBitAloneAndAmongOthers) {
  Random random(fresh_seed());
  for (int round = 0; round < 30; ++round) {
    const Example example = random_example(random);
    Example alone = example;
    alone.rows = 1;
    const auto columns = static_cast<size_t>(example.weights.columns);
    for (const dnnl::cpu_isa set : present_sets()) {
      for (const bool rounds : {false, true}) {
        const std::vector<float> all = example.run(set, rounds), one = alone.run(set, rounds);
        EXPECT_EQ(std::memcmp(all.data(), one.data(), columns * sizeof(float)), 0) << name_of(set) << rounds;
      }
    }
  }
}

TEST(BlockProductRows, ValuesThatAreNotFiniteAreNeverLost) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  Random random(fresh_seed());
  for (int round = 0; round < 30; ++round) {
    Example example = random_example(random);
    const auto at = random.below(static_cast<uint64_t>(example.weights.depth));
    const float special = std::vector{kNan, kInfinity, -kInfinity}[random.below(3)];
    example.x[at] = special;
    for (const dnnl::cpu_isa set : present_sets()) {
      const std::vector<float> exact = example.run(set, false), rounded = example.run(set, true);
      for (int64_t column = 0; column < example.weights.columns; ++column) {
        const auto expected = static_cast<float>(special * example.weight(column, static_cast<int64_t>(at)));
        const float actual = exact[static_cast<size_t>(column)];
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(actual) : actual == expected) << name_of(set);
        EXPECT_TRUE(std::isnan(rounded[static_cast<size_t>(column)])) << name_of(set);
      }
      for (size_t i = static_cast<size_t>(example.weights.columns); i < exact.size(); ++i)
        EXPECT_TRUE(std::isfinite(exact[i]) && std::isfinite(rounded[i])) << name_of(set);
    }
  }
}

TEST(BlockProductRows, RoundTheLargestAndTheSmallestNumbers) {
  Random random(fresh_seed());
  Example example({.depth = 32, .columns = 16, .block = 32, .bits = 4}, 2, random);
  for (float& scale : example.scales) scale = 0x1p-10F;
  for (size_t i = 0; i < 32; ++i) {
    example.x[i] = std::numeric_limits<float>::max();
    example.x[32 + i] = std::numeric_limits<float>::denorm_min();
  }
  for (const dnnl::cpu_isa set : present_sets()) {
    for (const bool rounds : {false, true})
      for (const float value : example.run(set, rounds)) EXPECT_TRUE(std::isfinite(value)) << name_of(set) << rounds;
  }
}

}  // namespace
}  // namespace foliot
