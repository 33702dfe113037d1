#include "engine/device/cuda/page_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/device/cuda/fake_driver.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPageBytes = uint64_t{4} << 20;

class GpuPages : public ::testing::Test {
 protected:
  // Everything is given back, whatever a test did.
  ~GpuPages() override {
    EXPECT_EQ(driver_.blocks(), 0u);
    EXPECT_EQ(driver_.ranges(), 0u);
    EXPECT_EQ(driver_.mappings(), 0u);
  }

  Result<std::unique_ptr<GpuPageMemory>> make(uint32_t pages, uint64_t page_bytes = kPageBytes) {
    return GpuPageMemory::create(driver_, FakeDriver::gpu(), page_bytes, pages);
  }

  FakeDriver driver_;
};

TEST_F(GpuPages, StandBehindAddressesInTheOrderGiven) {
  const auto cache = make(4).value();
  GpuPageTable one = GpuPageTable::reserve(*cache, 2 * kPageBytes).value();
  GpuPageTable other = GpuPageTable::reserve(*cache, kPageBytes).value();
  const std::vector<PageIndex> order{3, 1}, single{0}, turned{1, 3};
  ASSERT_TRUE(one.map(order).ok());
  ASSERT_TRUE(other.map(single).ok());
  const auto first = driver_.behind(one.address());
  const auto second = driver_.behind(one.address() + kPageBytes);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
  one.unmap();
  EXPECT_FALSE(driver_.behind(one.address()));
  EXPECT_TRUE(driver_.behind(other.address()));
  ASSERT_TRUE(one.map(turned).ok());
  EXPECT_EQ(driver_.behind(one.address()), second);
  EXPECT_EQ(driver_.behind(one.address() + kPageBytes), first);
}

TEST_F(GpuPages, KeepTheAddressOfAProgram) {
  const auto cache = make(2).value();
  GpuPageTable table = GpuPageTable::reserve(*cache, 1).value();
  const GpuAddress address = table.address();
  const std::vector<PageIndex> first{0}, second{1};
  ASSERT_TRUE(table.map(first).ok());
  table.unmap();
  ASSERT_TRUE(table.map(second).ok());
  EXPECT_EQ(table.address(), address);
  EXPECT_EQ(table.bytes(), kPageBytes);
  GpuPageTable moved = std::move(table);
  EXPECT_EQ(moved.address(), address);
  EXPECT_TRUE(driver_.behind(moved.address()));
}

TEST_F(GpuPages, AreGivenBackWhenMappingFailsHalfWay) {
  const auto cache = make(3).value();
  GpuPageTable table = GpuPageTable::reserve(*cache, 3 * kPageBytes).value();
  const std::vector<PageIndex> pages{0, 1, 2};
  driver_.maps_left = 2;
  const Status status = table.map(pages);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("cuMemMap"));
  EXPECT_EQ(driver_.mappings(), 0u);
  driver_.allows_left = 0;
  EXPECT_FALSE(table.map(pages).ok());
  EXPECT_EQ(driver_.mappings(), 0u);
  EXPECT_TRUE(table.map(pages).ok());
}

TEST_F(GpuPages, AreAllTakenOrNone) {
  driver_.blocks_left = 2;
  const auto cache = make(3);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(cache.status().message(), HasSubstr("configure fewer pages"));
  EXPECT_EQ(driver_.blocks(), 0u);
}

TEST_F(GpuPages, AreOfASizeThatTheGpuKnows) {
  const auto odd = make(1, FakeDriver::kGranularity + 4096);
  ASSERT_FALSE(odd.ok());
  EXPECT_THAT(odd.status().message(), HasSubstr("choose a multiple of 2.0 MiB"));
  Gpu old = FakeDriver::gpu();
  old.block_granularity = 0;
  EXPECT_FALSE(GpuPageMemory::create(driver_, old, kPageBytes, 1).ok());
}

TEST_F(GpuPages, AreNotNeededByAProgramWithoutWeights) {
  const auto cache = make(1).value();
  GpuPageTable table = GpuPageTable::reserve(*cache, 0).value();
  EXPECT_TRUE(table.map({}).ok());
  EXPECT_EQ(table.bytes(), 0u);
}

}  // namespace
}  // namespace foliot
