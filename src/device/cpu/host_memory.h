// Host memory as the device holds it: taken, locked and pre-faulted once.
#ifndef FOLIOT_DEVICE_CPU_HOST_MEMORY_H_
#define FOLIOT_DEVICE_CPU_HOST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "device/device.h"

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

// Anonymous memory, on huge pages where the system has them. `locked` is set to
// false if the limit on locked memory forbids locking. Errors:
// kResourceExhausted naming `what`.
Result<Mapping> take_memory(uint64_t bytes, std::string_view what, bool lock, bool& locked);

// The page cache: pages that a PageTable can put behind addresses of its choice.
// Threading: owned by the device; map() is called by the LOAD executor's thread.
class PageMemory {
 public:
  // Errors: kResourceExhausted.
  static Result<std::unique_ptr<PageMemory>> create(uint64_t page_bytes, uint32_t page_count, bool lock, bool& locked);
  ~PageMemory();
  PageMemory(const PageMemory&) = delete;
  PageMemory& operator=(const PageMemory&) = delete;

  uint64_t page_bytes() const { return page_bytes_; }
  uint32_t page_count() const { return page_count_; }

 private:
  friend class PageTable;
  PageMemory(uint64_t page_bytes, uint32_t page_count, int file)
      : page_bytes_(page_bytes), page_count_(page_count), file_(file) {}

  uint64_t page_bytes_;
  uint32_t page_count_;
  int file_;       // the memory, as a file without a name
  Mapping whole_;  // keeps all of it resident and locked
};

// One program's reserved range of addresses, behind which LOAD puts pages:
// addresses of weights stay the same however often pages change. Without pages,
// touching the range faults.
class PageTable {
 public:
  // Reserves addresses for `bytes`. Errors: kResourceExhausted.
  static Result<PageTable> reserve(const PageMemory& cache, uint64_t bytes);

  // REQUIRES: as many pages as the range has, each within the cache.
  Status map(const PageMemory& cache, std::span<const PageIndex> pages);
  void unmap();
  std::byte* data() const { return range_.data(); }
  uint64_t bytes() const { return range_.bytes(); }

 private:
  explicit PageTable(Mapping range) : range_(std::move(range)) {}
  Mapping range_;
};

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_HOST_MEMORY_H_
