#include "device/cpu/host_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace foliot {
namespace {

constexpr uint64_t kPageBytes = 8192;

std::unique_ptr<PageMemory> make_cache(uint32_t pages) {
  bool locked = true;
  return PageMemory::create(kPageBytes, pages, false, locked).value();
}

TEST(PageTable, ShowsPagesInTheOrderGiven) {
  const auto cache = make_cache(4);
  PageTable table = PageTable::reserve(*cache, 2 * kPageBytes).value();
  const std::vector<PageIndex> order{3, 1}, turned{1, 3};
  ASSERT_TRUE(table.map(*cache, order).ok());
  std::memset(table.data(), 3, kPageBytes);
  std::memset(table.data() + kPageBytes, 1, kPageBytes);
  table.unmap();
  ASSERT_TRUE(table.map(*cache, turned).ok());
  EXPECT_EQ(table.data()[0], std::byte{1});
  EXPECT_EQ(table.data()[2 * kPageBytes - 1], std::byte{3});
}

TEST(PageTable, KeepsItsAddress) {
  const auto cache = make_cache(2);
  PageTable table = PageTable::reserve(*cache, 1).value();
  const std::byte* address = table.data();
  const std::vector<PageIndex> first{0}, second{1};
  ASSERT_TRUE(table.map(*cache, first).ok());
  table.unmap();
  ASSERT_TRUE(table.map(*cache, second).ok());
  EXPECT_EQ(table.data(), address);
  EXPECT_EQ(table.bytes(), kPageBytes);
}

TEST(PageTable, FaultsWithoutPages) {
  const auto cache = make_cache(1);
  PageTable table = PageTable::reserve(*cache, kPageBytes).value();
  const auto touch = [&] { return static_cast<const volatile std::byte*>(table.data())[0]; };
  EXPECT_DEATH(touch(), "");
  const std::vector<PageIndex> pages{0};
  ASSERT_TRUE(table.map(*cache, pages).ok());
  EXPECT_EQ(touch(), std::byte{0});
  table.unmap();
  EXPECT_DEATH(touch(), "");
}

TEST(PageTable, OfNothingNeedsNoPages) {
  const auto cache = make_cache(0);
  PageTable table = PageTable::reserve(*cache, 0).value();
  EXPECT_TRUE(table.map(*cache, {}).ok());
  table.unmap();
  EXPECT_EQ(table.bytes(), 0u);
}

TEST(TakeMemory, SaysHowMuchCouldNotBeHad) {
  bool locked = true;
  const auto mapping = take_memory(uint64_t{1} << 46, "workspace", false, locked);
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(mapping.status().message().find("67108864 MiB for the workspace"), std::string::npos)
      << mapping.status().message();
}

TEST(TakeMemory, GivesZeroedMemory) {
  bool locked = true;
  const Mapping mapping = take_memory(100'000, "io cache", false, locked).value();
  ASSERT_GE(mapping.bytes(), 100'000u);
  for (uint64_t i = 0; i < 100'000; ++i) ASSERT_EQ(mapping.data()[i], std::byte{0});
}

}  // namespace
}  // namespace foliot
