#include "engine/device/cpu/arg_reduce_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/device/cpu/instruction_set.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();
constexpr float kEndless = std::numeric_limits<float>::infinity();

struct Variant {
  ArgReduceRows rows;
  bool largest, last;
};

// Those of every instruction set that this processor has.
std::vector<Variant> all_variants() {
  std::vector<Variant> result;
  for (const auto set : {dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core}) {
    if (!includes(instruction_set(), set)) continue;
    for (const bool largest : {false, true})
      for (const bool last : {false, true}) result.push_back({find_arg_reduce_rows(largest, last, set), largest, last});
  }
  return result;
}

int64_t expected(const Variant& variant, const float* from, int64_t count, int64_t stride) {
  int64_t place = 0;
  for (int64_t i = 1; i < count; ++i) {
    const float x = from[i * stride], best = from[place * stride];
    if ((variant.largest ? x > best : x < best) || (variant.last && x == best)) place = i;
  }
  return place;
}

// Of few different values, so that many are equal, with infinities and NaNs among them.
std::vector<float> values(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> result(count);
  for (float& x : result) {
    const double draw = random.uniform();
    x = draw < 0.02   ? kAbsent
        : draw < 0.03 ? kEndless
        : draw < 0.04 ? -kEndless
                      : static_cast<float>(static_cast<int>(draw * 16));
  }
  return result;
}

TEST(ArgReduceRowsTest, Rows) {
  for (const Variant& variant : all_variants())
    for (const int64_t count : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130, 1000})
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        const std::vector<float> row = values(static_cast<size_t>(count), seed);
        EXPECT_EQ(variant.rows.row(row.data(), count), expected(variant, row.data(), count, 1)) << count << " " << seed;
      }
}

TEST(ArgReduceRowsTest, Columns) {
  for (const Variant& variant : all_variants())
    for (const int64_t count : {1, 3, 4, 5, 8, 15, 16, 17, 33, 64, 67, 128})
      for (const int64_t rows : {1, 2, 21, 100}) {
        const int64_t stride = count + 3;
        const std::vector<float> from = values(static_cast<size_t>(rows * stride), static_cast<uint64_t>(count));
        std::vector<int64_t> to(static_cast<size_t>(count) + 1, -1);
        variant.rows.columns(from.data(), rows, stride, count, to.data());
        for (int64_t j = 0; j < count; ++j)
          EXPECT_EQ(to[static_cast<size_t>(j)], expected(variant, from.data() + j, rows, stride))
              << count << " " << rows << " " << j;
        EXPECT_EQ(to.back(), -1) << count;
      }
}

TEST(ArgReduceRowsTest, AFirstElementThatIsNotANumberStays) {
  for (const Variant& variant : all_variants()) {
    std::vector<float> row(100, 1.0F);
    row[0] = kAbsent;
    EXPECT_EQ(variant.rows.row(row.data(), 100), 0);
  }
}

}  // namespace
}  // namespace foliot
