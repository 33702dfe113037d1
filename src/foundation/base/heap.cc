#include "foundation/base/heap.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

namespace foliot {
namespace {

// The most that glibc takes: half of an arena's unit.
constexpr int kMappedFromBytes = 32 << 20;
// More than there are threads. Fewer arenas than threads are shared, behind a lock.
constexpr int kArenasMax = 1 << 16;

// Allocation is given nothing to find a counter by.
constinit thread_local uint64_t allocations = 0;
constinit std::atomic<uint64_t> within_exec = 0;

}  // namespace

void keep_heap_memory() {
#ifdef __GLIBC__
  // Fails only for a value out of range, and then nothing has changed.
  ::mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);
  ::mallopt(M_TRIM_THRESHOLD, -1);  // never
  ::mallopt(M_ARENA_MAX, kArenasMax);
#endif
}

void give_back(std::span<std::byte> memory) {
  constexpr size_t kPage = 4096, kStep = 1 << 20;
  if (memory.size() < kStep) return;
  const size_t skipped = (kPage - reinterpret_cast<uintptr_t>(memory.data()) % kPage) % kPage;
  for (std::span<std::byte> rest = memory.subspan(skipped); rest.size() >= kPage;) {
    const std::span<std::byte> step = rest.first(std::min(kStep, rest.size() / kPage * kPage));
    if (::madvise(step.data(), step.size(), MADV_DONTNEED) != 0) return;
    rest = rest.subspan(step.size());
  }
}

uint64_t heap_allocations() { return allocations; }

void count_heap_allocation() { ++allocations; }

uint64_t exec_heap_allocations() { return within_exec.load(std::memory_order_relaxed); }

void count_exec_heap_allocations(uint64_t count) { within_exec.fetch_add(count, std::memory_order_relaxed); }

}  // namespace foliot
