#include "engine/worker/io_cache.h"

#include <algorithm>

#include "engine/device/plan.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

uint64_t align_up(uint64_t bytes) { return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

}  // namespace

IoCache::IoCache(uint64_t bytes, size_t blocks_max) : bytes_(bytes / kTensorAlignment * kTensorAlignment) {
  free_.reserve(blocks_max + 2);
  free_.push_back({0, this->bytes()});
}

void IoCache::grow(uint64_t bytes) {
  bytes = bytes / kTensorAlignment * kTensorAlignment;
  const uint64_t before = this->bytes();
  if (bytes <= before) return;
  const bool joins_last = !free_.empty() && free_.back().offset + free_.back().bytes == before;
  if (joins_last) {
    free_.back().bytes += bytes - before;
  } else {
    FOLIOT_CHECK(free_.size() < free_.capacity());
    free_.push_back({before, bytes - before});
  }
  bytes_.store(bytes, std::memory_order_relaxed);
}

std::optional<IoCache::Block> IoCache::acquire(uint64_t bytes) {
  bytes = align_up(std::max<uint64_t>(bytes, 1));
  const auto fit = std::find_if(free_.begin(), free_.end(), [&](const Block& block) { return block.bytes >= bytes; });
  if (fit == free_.end()) return std::nullopt;
  const Block taken{fit->offset, bytes};
  fit->offset += bytes;
  fit->bytes -= bytes;
  if (fit->bytes == 0) free_.erase(fit);
  set_used(used_bytes() + bytes);
  return taken;
}

void IoCache::release(Block block) {
  set_used(used_bytes() - block.bytes);
  const auto next = std::find_if(free_.begin(), free_.end(), [&](const Block& b) { return b.offset > block.offset; });
  FOLIOT_CHECK(next == free_.end() || block.offset + block.bytes <= next->offset);
  const bool joins_next = next != free_.end() && block.offset + block.bytes == next->offset;
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    FOLIOT_CHECK(previous->offset + previous->bytes <= block.offset);
    if (previous->offset + previous->bytes == block.offset) {
      previous->bytes += block.bytes + (joins_next ? next->bytes : 0);
      if (joins_next) free_.erase(next);
      return;
    }
  }
  if (joins_next) {
    next->offset = block.offset;
    next->bytes += block.bytes;
  } else {
    FOLIOT_CHECK(free_.size() < free_.capacity());
    free_.insert(next, block);
  }
}

uint64_t IoCache::free_bytes() const {
  uint64_t bytes = 0;
  for (const Block& block : free_) bytes += block.bytes;
  return bytes;
}

}  // namespace foliot
