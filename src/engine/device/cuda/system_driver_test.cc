// Against the machine's own driver: these tests say "skipped" where there is none.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/page_memory.h"

namespace foliot {
namespace {

class SystemDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<CudaDriver>> driver = open_cuda_driver();
    if (!driver.ok()) GTEST_SKIP() << driver.status().message();
    driver_ = std::move(driver).value();
    Result<std::vector<Gpu>> gpus = driver_->gpus();
    if (!gpus.ok() || gpus->empty()) GTEST_SKIP() << "the driver finds no GPU";
    gpu_ = gpus->front();
  }

  std::unique_ptr<CudaDriver> driver_;
  Gpu gpu_;
};

TEST_F(SystemDriver, DescribesTheGpu) {
  EXPECT_FALSE(gpu_.name.empty());
  EXPECT_GT(gpu_.memory_bytes, 0u);
  EXPECT_GT(gpu_.multiprocessors, 0u);
}

TEST_F(SystemDriver, PutsPagesBehindAddresses) {
  if (gpu_.block_granularity == 0) GTEST_SKIP() << gpu_.name << " cannot put memory behind addresses";
  const uint64_t page_bytes = gpu_.block_granularity;
  const auto cache = GpuPageMemory::create(*driver_, gpu_, page_bytes, 3).value();
  GpuPageTable table = GpuPageTable::reserve(*cache, 2 * page_bytes).value();
  const std::vector<PageIndex> first{2, 0}, second{1, 2};
  ASSERT_TRUE(table.map(first).ok());
  table.unmap();
  ASSERT_TRUE(table.map(second).ok());
}

}  // namespace
}  // namespace foliot
