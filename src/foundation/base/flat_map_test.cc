#include "foundation/base/flat_map.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "foundation/base/id.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

TEST(FlatMapTest, DoesAsAMapDoes) {
  FlatMap<uint64_t, uint32_t> map;
  std::unordered_map<uint64_t, uint32_t> model;
  Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t key = random.below(random.below(2) == 0 ? 300 : 3000);
    const auto value = static_cast<uint32_t>(random.below(1000));
    if (random.below(5) < 2) {
      EXPECT_EQ(map.insert(key, value), model.emplace(key, value).second);
    } else if (random.below(5) == 0) {
      map[key] = model[key] = value;
    } else if (random.below(2) == 0) {
      EXPECT_EQ(map.erase(key), model.erase(key) == 1);
    }
    const auto found = model.find(key);
    const uint32_t* value_found = map.find(key);
    ASSERT_EQ(value_found != nullptr, found != model.end());
    EXPECT_TRUE(value_found == nullptr || *value_found == found->second);
    ASSERT_EQ(map.size(), model.size());
  }
}

TEST(FlatMapTest, KeysMayBeIds) {
  using Name = Id<struct NameTag, uint32_t>;
  FlatMap<Name, int> map;
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_TRUE(map.insert(Name(i * 64), static_cast<int>(i)));
  EXPECT_FALSE(map.insert(Name(64), 7));
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_NE(map.find(Name(i * 64)), nullptr);
    EXPECT_EQ(*map.find(Name(i * 64)), static_cast<int>(i));
  }
  EXPECT_EQ(map.find(Name(1)), nullptr);
  int64_t sum = 0;
  map.for_each([&](Name name, int value) { sum += name.value() - value; });
  EXPECT_EQ(sum, 63 * 999 * 500);
  EXPECT_TRUE(map.erase(Name(0)));
}

}  // namespace
}  // namespace foliot
