#include "engine/device/cpu/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace foliot {
namespace {

constexpr uint64_t kPageBytes = 8192;

std::unique_ptr<PageMemory> make_cache(uint32_t pages) {
  bool locked = true;
  return PageMemory::create(kPageBytes, pages, 0, false, locked).value();
}

TEST(PageTable, ShowsPagesInTheOrderGiven) {
  const auto cache = make_cache(4);
  PageTable table = PageTable::reserve(*cache, 2 * kPageBytes).value();
  const std::vector<PageIndex> order{3, 1}, turned{1, 3};
  ASSERT_TRUE(table.map(order).ok());
  std::memset(table.data(), 3, kPageBytes);
  std::memset(table.data() + kPageBytes, 1, kPageBytes);
  table.unmap();
  ASSERT_TRUE(table.map(turned).ok());
  EXPECT_EQ(table.data()[0], std::byte{1});
  EXPECT_EQ(table.data()[2 * kPageBytes - 1], std::byte{3});
}

TEST(PageTable, KeepsItsAddress) {
  const auto cache = make_cache(2);
  PageTable table = PageTable::reserve(*cache, 1).value();
  const std::byte* address = table.data();
  const std::vector<PageIndex> first{0}, second{1};
  ASSERT_TRUE(table.map(first).ok());
  table.unmap();
  ASSERT_TRUE(table.map(second).ok());
  EXPECT_EQ(table.data(), address);
  EXPECT_EQ(table.bytes(), kPageBytes);
}

TEST(PageTable, FaultsWithoutPages) {
  const auto cache = make_cache(1);
  PageTable table = PageTable::reserve(*cache, kPageBytes).value();
  const auto touch = [&] { return static_cast<const volatile std::byte*>(table.data())[0]; };
  EXPECT_DEATH(touch(), "");
  const std::vector<PageIndex> pages{0};
  ASSERT_TRUE(table.map(pages).ok());
  EXPECT_EQ(touch(), std::byte{0});
  table.unmap();
  EXPECT_DEATH(touch(), "");
}

TEST(PageTable, GivesItsPagesBackWhenItGoes) {
  const auto cache = make_cache(1);
  const std::vector<PageIndex> pages{0};
  {
    PageTable table = PageTable::reserve(*cache, kPageBytes).value();
    ASSERT_TRUE(table.map(pages).ok());
    table.data()[7] = std::byte{7};
  }
  PageTable next = PageTable::reserve(*cache, kPageBytes).value();
  ASSERT_TRUE(next.map(pages).ok());
  EXPECT_EQ(next.data()[7], std::byte{7});
}

// Pages of whole huge pages, of parts of one, and of an odd number of small pages.
TEST(PageTable, MovesLockedPagesOfAnySize) {
  for (const uint64_t page_bytes : {uint64_t{4} << 20, uint64_t{1} << 20, uint64_t{3} << 12}) {
    bool locked = true;
    const auto cache = PageMemory::create(page_bytes, 3, 0, true, locked).value();
    PageTable one = PageTable::reserve(*cache, 2 * page_bytes).value();
    PageTable other = PageTable::reserve(*cache, page_bytes).value();
    const std::vector<PageIndex> two{2, 0}, single{1};
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(one.map(two).ok());
      ASSERT_TRUE(other.map(single).ok());
      std::memset(one.data(), 10 + round, one.bytes());
      std::memset(other.data(), 20 + round, other.bytes());
      EXPECT_EQ(one.data()[one.bytes() - 1], std::byte(10 + round));
      other.unmap();
      one.unmap();
    }
  }
}

// Pages of the kernel's that are in memory behind a table.
int64_t resident_pages(const PageTable& table) {
  std::vector<unsigned char> resident(table.bytes() / 4096);
  EXPECT_EQ(mincore(table.data(), table.bytes(), resident.data()), 0);
  return std::ranges::count_if(resident, [](unsigned char page) { return (page & 1) != 0; });
}

TEST(PageTable, SparePagesTakeMemoryWhenTheyAreUsed) {
  bool locked = true;
  const auto cache = PageMemory::create(kPageBytes, 3, 2, false, locked).value();
  PageTable needed = PageTable::reserve(*cache, kPageBytes).value();
  PageTable spare = PageTable::reserve(*cache, kPageBytes).value();
  const std::vector<PageIndex> first{0}, last{2};
  ASSERT_TRUE(needed.map(first).ok() && spare.map(last).ok());
  EXPECT_EQ(resident_pages(needed), 2);
  EXPECT_EQ(resident_pages(spare), 0);
  std::memset(spare.data(), 5, spare.bytes());
  spare.unmap();
  ASSERT_TRUE(spare.map(last).ok());
  EXPECT_EQ(resident_pages(spare), 2);
  EXPECT_EQ(spare.data()[kPageBytes - 1], std::byte{5});
}

TEST(PageTable, OfNothingNeedsNoPages) {
  const auto cache = make_cache(0);
  PageTable table = PageTable::reserve(*cache, 0).value();
  EXPECT_TRUE(table.map({}).ok());
  table.unmap();
  EXPECT_EQ(table.bytes(), 0u);
}

TEST(TakeMemory, ReportsHowMuchCouldNotBeHad) {
  bool locked = true;
  const auto mapping = take_memory(uint64_t{1} << 46, "workspace", false, locked);
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(mapping.status().message().find("67108864 MiB for the workspace"), std::string::npos)
      << mapping.status().message();
}

TEST(GrowingMemory, GrowsWhereItIs) {
  constexpr uint64_t kHugePage = 2 << 20;
  GrowingMemory memory;
  bool locked = false;
  ASSERT_TRUE(memory.take(1000, 3 * kHugePage, "workspace", false, locked).ok());
  EXPECT_EQ(memory.bytes(), kHugePage);
  std::byte* const before = memory.data();
  before[kHugePage - 1] = std::byte{7};
  ASSERT_TRUE(memory.grow(2 * kHugePage + 1, "workspace", locked).ok());
  EXPECT_EQ(memory.data(), before);
  EXPECT_EQ(memory.bytes(), 3 * kHugePage);
  EXPECT_EQ(before[kHugePage - 1], std::byte{7});
  before[3 * kHugePage - 1] = std::byte{8};
  ASSERT_TRUE(memory.grow(1, "workspace", locked).ok());
  EXPECT_EQ(memory.bytes(), 3 * kHugePage);
}

TEST(GrowingMemory, ReportsThatItCannotGrowFurther) {
  GrowingMemory fixed;
  bool locked = false;
  ASSERT_TRUE(fixed.take(1000, 0, "workspace", false, locked).ok());
  const Status status = fixed.grow(100 << 20, "workspace", locked);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("100 MiB for the workspace"));
  fixed.data()[999] = std::byte{1};
}

TEST(TakeMemory, GivesZeroedMemory) {
  bool locked = true;
  const Mapping mapping = take_memory(100'000, "io cache", false, locked).value();
  ASSERT_GE(mapping.bytes(), 100'000u);
  for (uint64_t i = 0; i < 100'000; ++i) ASSERT_EQ(mapping.data()[i], std::byte{0});
}

}  // namespace
}  // namespace foliot
