// Host memory of the device: taken, locked and pre-faulted once.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_HOST_MEMORY_H_
#define FOLIOT_ENGINE_DEVICE_CPU_HOST_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/device.h"
#include "foundation/base/status.h"

namespace foliot {

// A piece of address space, unmapped when it goes.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, uint64_t bytes) : address_(static_cast<std::byte*>(address)), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();
  std::byte* data() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void swap(Mapping& other) noexcept;
  std::byte* address_ = nullptr;
  uint64_t bytes_ = 0;
};

// Anonymous memory that starts at a huge page, on huge pages where the system has them. `locked` is set to
// false if the limit on locked memory forbids locking. Errors:
// kResourceExhausted naming `what`.
Result<Mapping> take_memory(uint64_t bytes, std::string_view what, bool lock, bool& locked);

// Memory that can grow up to a limit without moving: its addresses are reserved, and what
// is in use of them is taken, locked and touched like take_memory()'s.
// Threading: grow() belongs to one thread; the rest to any.
class GrowingMemory {
 public:
  GrowingMemory() = default;
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;

  // Once. Without addresses for so much more it has the first `bytes` and no more.
  // Errors: those of take_memory().
  Status take(uint64_t bytes, uint64_t growth_bytes_max, std::string_view what, bool lock, bool& locked);
  // Errors: kResourceExhausted, and it stays as it was.
  Status grow(uint64_t bytes, std::string_view what, bool& locked);
  std::byte* data() const { return addresses_.data(); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_acquire); }

 private:
  Mapping addresses_;
  std::atomic<uint64_t> bytes_{0};
  bool lock_ = false;
};

// The page cache: pages that a PageTable can put behind addresses of its choice.
// Owns the memory; a page is at its home here, or moved out into one PageTable.
// Threading: pages are moved by the LOAD executor's thread.
class PageMemory {
 public:
  // The last `spare_pages` are not touched, nor locked, before a PageTable takes them. Errors: kResourceExhausted.
  static Result<std::unique_ptr<PageMemory>> create(uint64_t page_bytes, uint32_t page_count, uint32_t spare_pages,
                                                    bool lock, bool& locked);

  uint64_t page_bytes() const { return page_bytes_; }
  uint32_t page_count() const { return page_count_; }

 private:
  friend class PageTable;
  PageMemory(uint64_t page_bytes, uint32_t page_count) : page_bytes_(page_bytes), page_count_(page_count) {}
  std::byte* home(PageIndex page) const { return homes_.data() + page * page_bytes_; }
  // False, with errno set, if the kernel cannot.
  bool move(std::byte* from, std::byte* to) const;

  uint64_t page_bytes_;
  uint32_t page_count_;
  bool locked_ = false;
  Mapping homes_;
};

// One program's reserved range of addresses, behind which LOAD puts pages:
// addresses of weights stay the same however often pages change. Without pages,
// touching the range faults.
//
// Pages are moved with their entries in the kernel's page table (mremap(), Linux
// 5.7 or later), so memory stays resident, locked and on huge pages, and 16 MiB
// cost some 10 us. Page sizes that are no multiple of 2 MiB work, without huge pages.
class PageTable {
 public:
  // Reserves addresses for `bytes`. `cache` must outlive the table. Errors:
  // kResourceExhausted.
  static Result<PageTable> reserve(const PageMemory& cache, uint64_t bytes);
  PageTable(PageTable&&) noexcept = default;
  PageTable& operator=(PageTable&&) = delete;
  ~PageTable() { unmap(); }

  // REQUIRES: no pages yet; as many as the range has, each within the cache and
  // in no other table.
  Status map(std::span<const PageIndex> pages);
  // Gives the pages back, if there are any.
  void unmap();
  std::byte* data() const { return range_.data(); }
  uint64_t bytes() const { return range_.bytes(); }

 private:
  PageTable(const PageMemory& cache, Mapping range) : cache_(&cache), range_(std::move(range)) {}
  std::byte* address(size_t position) const { return data() + position * cache_->page_bytes(); }

  const PageMemory* cache_;
  Mapping range_;
  std::vector<PageIndex> pages_;  // what is behind the range, in order
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_HOST_MEMORY_H_
