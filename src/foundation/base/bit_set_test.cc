#include "foundation/base/bit_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

std::vector<uint32_t> members(const BitSet& set) {
  std::vector<uint32_t> all;
  set.for_each([&](uint32_t member) { all.push_back(member); });
  return all;
}

TEST(BitSetTest, KeepsWhatWasInserted) {
  BitSet set;
  EXPECT_TRUE(set.empty());
  for (const uint32_t member : {700u, 3u, 64u, 3u}) set.insert(member);
  EXPECT_EQ(members(set), (std::vector<uint32_t>{3, 64, 700}));
  EXPECT_EQ(set.size(), 3u);
  EXPECT_EQ(set.next(0), 3u);
  EXPECT_EQ(set.next(4), 64u);
  EXPECT_EQ(set.next(700), 700u);
  EXPECT_EQ(set.next(701), std::nullopt);
  set.erase(64);
  set.erase(64);
  set.erase(100'000);
  EXPECT_EQ(members(set), (std::vector<uint32_t>{3, 700}));
  EXPECT_EQ(set.size(), 2u);
  EXPECT_FALSE(set.contains(64));
  EXPECT_FALSE(set.contains(100'000));
}

TEST(BitSetTest, FindsWhatTwoHaveInCommon) {
  BitSet a;
  BitSet b;
  for (const uint32_t member : {1u, 65u, 200u, 1000u}) a.insert(member);
  for (const uint32_t member : {0u, 65u, 200u}) b.insert(member);
  std::vector<uint32_t> common;
  a.for_each_common(b, [&](uint32_t member) { common.push_back(member); });
  EXPECT_EQ(common, (std::vector<uint32_t>{65, 200}));
  EXPECT_EQ(a.first_common(b), 65u);
  EXPECT_EQ(a.first_common(b, 65), 65u);
  EXPECT_EQ(a.first_common(b, 66), 200u);
  EXPECT_EQ(a.first_common(b, 201), std::nullopt);
  b.erase(65);
  b.erase(200);
  EXPECT_EQ(a.first_common(b), std::nullopt);
}

TEST(BitSetTest, FindsTheNextAcrossWhatIsEmpty) {
  BitSet set;
  for (const uint32_t member : {63u, 64u, 4095u, 4096u, 9000u, 20'000u}) set.insert(member);
  set.erase(9000);
  std::vector<uint32_t> found;
  for (auto member = set.next(0); member; member = set.next(*member + 1)) found.push_back(*member);
  EXPECT_EQ(found, (std::vector<uint32_t>{63, 64, 4095, 4096, 20'000}));
  EXPECT_EQ(set.next(20'001), std::nullopt);
}

TEST(BitSetTest, MayLoseTheMemberThatIsVisited) {
  BitSet a;
  BitSet b;
  for (const uint32_t member : {1u, 65u, 66u, 1000u}) a.insert(member);
  for (const uint32_t member : {1u, 2u, 66u, 5000u}) b.insert(member);
  a.for_each_common(b, [&](uint32_t member) { a.erase(member); });
  EXPECT_EQ(members(a), (std::vector<uint32_t>{65, 1000}));
  a.for_each([&](uint32_t member) { a.erase(member); });
  EXPECT_TRUE(a.empty());
}

}  // namespace
}  // namespace foliot
