#include "engine/compiler/constant.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

Constant numbers(std::vector<float> values) { return make_constant({static_cast<int64_t>(values.size())}, values); }

TEST(ConstantPoolTest, DerivesOnceAsLongAsBothAreThere) {
  ConstantPool pool;
  int made = 0;
  const auto derive = [&](const Constant& from, const char* how) {
    return pool.derive(from, how, [&] { return numbers({static_cast<float>(++made)}); });
  };
  const Constant a = pool.intern(numbers({1, 2})), b = pool.intern(numbers({3, 4}));
  auto first = std::make_unique<Constant>(derive(a, "doubled"));
  EXPECT_EQ(derive(a, "doubled").bytes, first->bytes);
  EXPECT_EQ(made, 1);
  EXPECT_NE(derive(b, "doubled").bytes, first->bytes);
  EXPECT_NE(derive(a, "halved").bytes, first->bytes);
  EXPECT_EQ(made, 3);
  first.reset();
  EXPECT_EQ(floats(derive(a, "doubled"))[0], 4.0F);
}

}  // namespace
}  // namespace foliot
