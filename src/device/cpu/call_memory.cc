#include "device/cpu/call_memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

// Sanitizers have an `operator new` of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOLIOT_SANITIZED 1
#elif defined(__has_feature)
#define FOLIOT_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define FOLIOT_SANITIZED 0
#endif

namespace foliot {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr size_t kAlignment = alignof(std::max_align_t);

// `operator new` is given nothing to find its memory by, so that this is global.
struct Block {
  alignas(kAlignment) std::byte bytes[kBlockBytes] = {};
  size_t used = 0;               // its owner's
  std::atomic<size_t> live = 0;  // objects not freed yet
  std::atomic<bool> owned = false;
};
constinit Block block;
constinit thread_local bool is_owner = false;

}  // namespace

CallMemory::CallMemory() : first_(!block.owned.exchange(true, std::memory_order_acquire)) {
  if (first_) is_owner = true;
}

CallMemory::~CallMemory() {
  if (!first_) return;
  is_owner = false;
  block.owned.store(false, std::memory_order_release);
}

#if !FOLIOT_SANITIZED

namespace {

// Null: this thread has no block, or it has no room.
void* take_from_block(size_t bytes) {
  if (!is_owner) return nullptr;
  if (block.live.load(std::memory_order_acquire) == 0) block.used = 0;
  if (bytes > kBlockBytes - block.used) return nullptr;
  void* object = block.bytes + block.used;
  block.used += (std::max(bytes, size_t{1}) + kAlignment - 1) / kAlignment * kAlignment;
  block.live.fetch_add(1, std::memory_order_relaxed);
  return object;
}

void* take(size_t bytes) {
  if (void* object = take_from_block(bytes)) return object;
  return std::malloc(bytes > 0 ? bytes : 1);
}

void give_back(void* object) {
  const auto* address = static_cast<const std::byte*>(object);
  if (address >= block.bytes && address < block.bytes + kBlockBytes) {
    block.live.fetch_sub(1, std::memory_order_release);
  } else {
    std::free(object);
  }
}

}  // namespace
}  // namespace foliot

// The standard library's other forms call these.
void* operator new(size_t bytes) {
  while (true) {
    if (void* object = foliot::take(bytes)) return object;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void operator delete(void* object) noexcept { foliot::give_back(object); }
void operator delete(void* object, size_t) noexcept { foliot::give_back(object); }

#else
}  // namespace foliot
#endif
