#include "device/cpu/call_memory.h"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// Sanitizers have an allocator of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOLIOT_SANITIZED 1
#elif defined(__has_feature)
#define FOLIOT_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define FOLIOT_SANITIZED 0
#endif

namespace foliot {
namespace {

// Allocation is given nothing to find its memory by, so that all of this is global.
constinit std::atomic<uint32_t> calls = 0;
constinit thread_local bool is_call = false;

}  // namespace

CallMemory::CallMemory() {
  is_call = true;
  calls.fetch_add(1, std::memory_order_relaxed);
}

CallMemory::~CallMemory() {
  is_call = false;
  calls.fetch_sub(1, std::memory_order_relaxed);
}

#if !FOLIOT_SANITIZED

namespace {

constexpr uint64_t kBlockBytes = 4 << 20;  // the kernel gives memory for what was touched only
constexpr uint64_t kPageBytes = 4096;
alignas(kPageBytes) constinit std::byte block[kBlockBytes] = {};

// Both in one word, so that they change together: how many objects the block holds,
// and where the last of them ends.
constexpr uint64_t kObject = uint64_t{1} << 32;
constinit std::atomic<uint64_t> objects_and_end = 0;

// Whether this thread has a CallMemory, or computes for one that has.
bool within_call() { return is_call || (calls.load(std::memory_order_relaxed) > 0 && omp_get_level() > 0); }

// Null: not within a call, or there is no room.
void* take_from_block(size_t alignment, size_t bytes) {
  if (!within_call() || alignment > kPageBytes || bytes > kBlockBytes) return nullptr;
  uint64_t before = objects_and_end.load(std::memory_order_acquire);
  uint64_t start = 0, after = 0;
  do {
    start = before < kObject ? 0 : (before % kObject + alignment - 1) / alignment * alignment;
    const uint64_t end = start + std::max(bytes, size_t{1});
    if (end > kBlockBytes) return nullptr;
    after = before / kObject * kObject + kObject + end;
  } while (!objects_and_end.compare_exchange_weak(before, after, std::memory_order_acq_rel, std::memory_order_acquire));
  return block + start;
}

bool give_back_to_block(const void* object) {
  const auto* address = static_cast<const std::byte*>(object);
  if (address < block || address >= block + kBlockBytes) return false;
  objects_and_end.fetch_sub(kObject, std::memory_order_release);
  return true;
}

}  // namespace
}  // namespace foliot

// The standard library's other forms call this one, and its `operator delete` calls free().
void* operator new(size_t bytes) {
  if (void* object = foliot::take_from_block(alignof(std::max_align_t), bytes)) return object;
  while (true) {
    if (void* object = std::malloc(std::max(bytes, size_t{1}))) return object;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

extern "C" int posix_memalign(void** object, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || !std::has_single_bit(alignment)) return EINVAL;
  *object = foliot::take_from_block(alignment, bytes);
  if (*object == nullptr) *object = std::aligned_alloc(alignment, bytes);
  return *object == nullptr ? ENOMEM : 0;
}

extern "C" void free(void* object) noexcept {
  // The C library's, or that of an allocator loaded in its stead.
  static const auto free_elsewhere = reinterpret_cast<void (*)(void*)>(::dlsym(RTLD_NEXT, "free"));
  if (!foliot::give_back_to_block(object)) free_elsewhere(object);
}

#else
}  // namespace foliot
#endif
