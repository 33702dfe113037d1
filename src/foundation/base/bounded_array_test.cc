#include "foundation/base/bounded_array.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

using Numbers = BoundedArray<uint64_t, 4>;

std::vector<uint64_t> items(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

TEST(BoundedArrayTest, HoldsWhatWasAdded) {
  Numbers numbers;
  EXPECT_EQ(numbers.size(), 0u);
  for (uint64_t i = 1; i <= 4; ++i) numbers.add(i);
  EXPECT_EQ(items(numbers), (std::vector<uint64_t>{1, 2, 3, 4}));
  numbers[1] = 7;
  EXPECT_EQ(numbers[1], 7u);
  numbers.clear();
  EXPECT_EQ(items(numbers), std::vector<uint64_t>());
}

TEST(BoundedArrayTest, ACopyHasAsManyItems) {
  Numbers few, many;
  few.add(9);
  for (uint64_t i = 1; i <= 3; ++i) many.add(i);
  Numbers copy(many);
  EXPECT_EQ(items(copy), items(many));
  copy = few;
  EXPECT_EQ(items(copy), items(few));
}

TEST(BoundedArrayDeathTest, TakesNoMoreThanItsCapacity) {
  Numbers numbers;
  for (uint64_t i = 0; i < 4; ++i) numbers.add(i);
  EXPECT_DEATH(numbers.add(4), "");
  EXPECT_DEATH(numbers[4], "");
}

}  // namespace
}  // namespace foliot
