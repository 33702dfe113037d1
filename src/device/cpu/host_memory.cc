#include "device/cpu/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace foliot {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

double mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

Status exhausted(uint64_t bytes, std::string_view what, int error) {
  return Status::resource_exhausted(fmt::format("cannot take {:.0f} MiB for the {}: {}; configure less or free memory",
                                                mebibytes(bytes), what, std::strerror(error)));
}

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// The limit on locked memory is lifted where this process may; where it may not,
// mlock() fails and the caller goes on unlocked.
bool lock_into_memory(void* address, uint64_t bytes) {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &unlimited);
  return mlock(address, bytes) == 0;
}

// Touches every page now, so that no request does. Without enough memory the
// kernel says so here instead of ending the process later.
int populate(void* address, uint64_t bytes) { return madvise(address, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno; }

Status settle(const Mapping& mapping, std::string_view what, bool lock, bool& locked) {
  madvise(mapping.data(), mapping.bytes(), MADV_HUGEPAGE);
  if (const int error = populate(mapping.data(), mapping.bytes()); error != 0)
    return exhausted(mapping.bytes(), what, error);
  if (lock && !lock_into_memory(mapping.data(), mapping.bytes())) locked = false;
  return Status();
}

}  // namespace

Mapping::~Mapping() {
  if (address_ != nullptr) FOLIOT_CHECK(munmap(address_, bytes_) == 0);
}

void Mapping::swap(Mapping& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
}

Result<Mapping> take_memory(uint64_t bytes, std::string_view what, bool lock, bool& locked) {
  if (bytes == 0) return Mapping();
  const uint64_t rounded = round_up(bytes, kHugePageBytes);
  void* address = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return exhausted(rounded, what, errno);
  Mapping mapping(address, rounded);
  FOLIOT_RETURN_IF_ERROR(settle(mapping, what, lock, locked));
  return mapping;
}

Result<std::unique_ptr<PageMemory>> PageMemory::create(uint64_t page_bytes, uint32_t page_count, bool lock,
                                                       bool& locked) {
  constexpr std::string_view kWhat = "page cache";
  const uint64_t bytes = page_bytes * page_count;
  const int file = memfd_create("foliot page cache", MFD_CLOEXEC);
  if (file < 0) return exhausted(bytes, kWhat, errno);
  std::unique_ptr<PageMemory> cache(new PageMemory(page_bytes, page_count, file));
  if (bytes == 0) return cache;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return exhausted(bytes, kWhat, errno);
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) return exhausted(bytes, kWhat, errno);
  cache->whole_ = Mapping(address, bytes);
  FOLIOT_RETURN_IF_ERROR(settle(cache->whole_, kWhat, lock, locked));
  return cache;
}

PageMemory::~PageMemory() { close(file_); }

Result<PageTable> PageTable::reserve(const PageMemory& cache, uint64_t bytes) {
  if (bytes == 0) return PageTable(Mapping());
  // Aligned to huge pages, so that a page of the cache can be mapped with them.
  const uint64_t rounded = round_up(bytes, cache.page_bytes());
  const uint64_t spacious = rounded + kHugePageBytes;
  void* address = mmap(nullptr, spacious, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return exhausted(rounded, "addresses of a program's weights", errno);
  std::byte* start = static_cast<std::byte*>(address);
  const uint64_t skip = round_up(reinterpret_cast<uint64_t>(start), kHugePageBytes) - reinterpret_cast<uint64_t>(start);
  if (skip > 0) FOLIOT_CHECK(munmap(start, skip) == 0);
  if (skip < kHugePageBytes) FOLIOT_CHECK(munmap(start + skip + rounded, kHugePageBytes - skip) == 0);
  return PageTable(Mapping(start + skip, rounded));
}

Status PageTable::map(const PageMemory& cache, std::span<const PageIndex> pages) {
  FOLIOT_CHECK(pages.size() * cache.page_bytes() == bytes());
  for (size_t i = 0; i < pages.size(); ++i) {
    FOLIOT_CHECK(pages[i] < cache.page_count());
    const void* mapped =
        mmap(data() + i * cache.page_bytes(), cache.page_bytes(), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED | MAP_POPULATE, cache.file_, static_cast<off_t>(pages[i] * cache.page_bytes()));
    if (mapped == MAP_FAILED) {
      const int error = errno;
      unmap();
      return Status::resource_exhausted(
          fmt::format("cannot map a page: {}; raise vm.max_map_count", std::strerror(error)));
    }
  }
  return Status();
}

void PageTable::unmap() {
  if (bytes() == 0) return;
  void* reserved = mmap(data(), bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  FOLIOT_CHECK(reserved != MAP_FAILED);
}

}  // namespace foliot
