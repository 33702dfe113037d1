// IoCache: the places of the inputs and outputs of INFERs in flight in the device's io
// cache. First fit over a short list of free extents, which never allocates.
//
// Threading: belongs to the INPUT executor, but for bytes() and used_bytes().
#ifndef FOLIOT_ENGINE_WORKER_IO_CACHE_H_
#define FOLIOT_ENGINE_WORKER_IO_CACHE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace foliot {

class IoCache {
 public:
  // At most `blocks_max` blocks are out at a time.
  IoCache(uint64_t bytes, size_t blocks_max);

  struct Block {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  // A block of at least `bytes`, aligned to kTensorAlignment; nullopt if none fits.
  std::optional<Block> acquire(uint64_t bytes);
  // REQUIRES: acquire() gave this block, and it is released once.
  void release(Block block);

  // More of it, behind what there is. Less than there is: nothing happens.
  void grow(uint64_t bytes);

  // In all, and in blocks that are out. Any thread.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t free_bytes() const;

 private:
  // Only one thread writes these: no locked instruction is needed.
  void set_used(uint64_t bytes) { used_bytes_.store(bytes, std::memory_order_relaxed); }

  std::atomic<uint64_t> bytes_;
  std::vector<Block> free_;  // by offset, never adjacent
  std::atomic<uint64_t> used_bytes_{0};
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_IO_CACHE_H_
