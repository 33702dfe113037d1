// FakeDriver: a driver without a GPU, for tests. It keeps account of blocks and
// addresses, checks the real one's requirements, and fails after a set number of calls.
#ifndef FOLIOT_ENGINE_DEVICE_CUDA_FAKE_DRIVER_H_
#define FOLIOT_ENGINE_DEVICE_CUDA_FAKE_DRIVER_H_

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "engine/device/cuda/driver.h"

namespace foliot {

class FakeDriver : public CudaDriver {
 public:
  static constexpr uint64_t kGranularity = uint64_t{2} << 20;

  // How many calls of each kind succeed before the next one fails.
  uint32_t blocks_left = std::numeric_limits<uint32_t>::max();
  uint32_t maps_left = std::numeric_limits<uint32_t>::max();
  uint32_t allows_left = std::numeric_limits<uint32_t>::max();

  static Gpu gpu() {
    return {.ordinal = 0, .name = "Fake", .memory_bytes = uint64_t{1} << 30, .block_granularity = kGranularity};
  }

  // What stands behind an address and may be used; nullopt: nothing.
  std::optional<GpuBlock> behind(GpuAddress address) const {
    const auto mapping = mappings_.find(address);
    if (mapping == mappings_.end() || !mapping->second.allowed) return std::nullopt;
    return mapping->second.block;
  }
  size_t blocks() const { return blocks_.size(); }
  size_t ranges() const { return ranges_.size(); }
  size_t mappings() const { return mappings_.size(); }

  Result<std::vector<Gpu>> gpus() override { return std::vector<Gpu>{gpu()}; }

  Result<GpuBlock> take(uint32_t, uint64_t bytes) override {
    EXPECT_EQ(bytes % kGranularity, 0u);
    if (blocks_left-- == 0) return Status::resource_exhausted("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY");
    blocks_[++last_block_] = bytes;
    return last_block_;
  }
  void give_back(GpuBlock block) override {
    for (const auto& [address, mapping] : mappings_) EXPECT_NE(mapping.block, block) << "still behind an address";
    EXPECT_EQ(blocks_.erase(block), 1u);
  }

  Result<GpuAddress> reserve(uint64_t bytes) override {
    EXPECT_EQ(bytes % kGranularity, 0u);
    const GpuAddress address = next_address_;
    next_address_ += bytes + kGranularity;
    ranges_[address] = bytes;
    return address;
  }
  void release(GpuAddress address, uint64_t bytes) override {
    const auto first = mappings_.lower_bound(address);
    EXPECT_TRUE(first == mappings_.end() || first->first >= address + bytes) << "something is behind it";
    ASSERT_TRUE(ranges_.count(address) > 0);
    EXPECT_EQ(ranges_[address], bytes);
    ranges_.erase(address);
  }

  Status map(GpuAddress address, uint64_t bytes, GpuBlock block) override {
    EXPECT_TRUE(is_reserved(address, bytes));
    EXPECT_EQ(blocks_.at(block), bytes);
    for (const auto& [other, mapping] : mappings_) EXPECT_NE(mapping.block, block) << "in two places";
    if (maps_left-- == 0) return Status::unavailable("cuMemMap: CUDA_ERROR_UNKNOWN");
    EXPECT_TRUE(mappings_.emplace(address, Mapping{.block = block, .bytes = bytes}).second);
    return {};
  }
  Status allow(uint32_t, GpuAddress address, uint64_t bytes) override {
    if (allows_left-- == 0) return Status::unavailable("cuMemSetAccess: CUDA_ERROR_UNKNOWN");
    for_each(address, bytes, [](auto mapping) { mapping->second.allowed = true; });
    return {};
  }
  void unmap(GpuAddress address, uint64_t bytes) override {
    for_each(address, bytes, [this](auto mapping) { mappings_.erase(mapping); });
  }

 private:
  struct Mapping {
    GpuBlock block;
    uint64_t bytes;
    bool allowed = false;
  };

  bool is_reserved(GpuAddress address, uint64_t bytes) const {
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return false;
    const auto& [start, length] = *std::prev(after);
    return address + bytes <= start + length;
  }

  // All mappings of a range, which must have something behind the whole of it.
  template <typename Body>
  void for_each(GpuAddress address, uint64_t bytes, Body body) {
    for (const GpuAddress end = address + bytes; address < end;) {
      const auto mapping = mappings_.find(address);
      ASSERT_TRUE(mapping != mappings_.end());
      address += mapping->second.bytes;
      body(mapping);
    }
  }

  GpuBlock last_block_ = 0;
  GpuAddress next_address_ = uint64_t{1} << 40;
  std::map<GpuBlock, uint64_t> blocks_;     // bytes
  std::map<GpuAddress, uint64_t> ranges_;   // bytes
  std::map<GpuAddress, Mapping> mappings_;  // by where they start
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CUDA_FAKE_DRIVER_H_
