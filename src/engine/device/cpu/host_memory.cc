#include "engine/device/cpu/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/error_text.h"
#include "foundation/base/memory_lock.h"

namespace foliot {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

double mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

Status exhausted(uint64_t bytes, std::string_view what, int error) {
  return Status::resource_exhausted(fmt::format("cannot take {:.0f} MiB for the {}: {}; configure less or free memory",
                                                mebibytes(bytes), what, error_text(error)));
}

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Of all, in use or not.
uint64_t machine_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Touches the first `touched` of these bytes now, so that no request does. Without enough memory the
// kernel says so here instead of ending the process later. A kernel that promises any amount
// (vm.overcommit_memory = 1, as nodes of Kubernetes have it) would end processes here.
int populate(std::span<std::byte> memory, uint64_t touched) {
  if (memory.size() > machine_bytes()) return ENOMEM;
  if (touched == 0) return 0;
  return madvise(memory.data(), touched, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
}

// Addresses for `bytes` that start at a huge page.
Result<Mapping> map_aligned(uint64_t bytes, int protection, int flags, std::string_view what) {
  const uint64_t spacious = bytes + kHugePageBytes;
  void* address = mmap(nullptr, spacious, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (address == MAP_FAILED) return exhausted(bytes, what, errno);
  std::byte* start = static_cast<std::byte*>(address);
  const uint64_t skip = round_up(reinterpret_cast<uint64_t>(start), kHugePageBytes) - reinterpret_cast<uint64_t>(start);
  if (skip > 0) FOLIOT_CHECK(munmap(start, skip) == 0);
  if (skip < kHugePageBytes) FOLIOT_CHECK(munmap(start + skip + bytes, kHugePageBytes - skip) == 0);
  return Mapping(start + skip, bytes);
}

Status settle(std::span<std::byte> memory, uint64_t touched, std::string_view what, bool lock, bool& locked) {
  if (const int error = populate(memory, touched); error != 0) return exhausted(memory.size(), what, error);
  if (lock && !lock_into_memory(memory.data(), memory.size())) locked = false;
  return Status();
}

Status settle(const Mapping& mapping, std::string_view what, bool lock, bool& locked) {
  return settle(std::span(mapping.data(), mapping.bytes()), mapping.bytes(), what, lock, locked);
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
  FOLIOT_ASSIGN_OR_RETURN(Mapping mapping,
                          map_aligned(round_up(bytes, kHugePageBytes), PROT_READ | PROT_WRITE, 0, what));
  madvise(mapping.data(), mapping.bytes(), MADV_HUGEPAGE);
  FOLIOT_RETURN_IF_ERROR(settle(mapping, what, lock, locked));
  return mapping;
}

Status GrowingMemory::take(uint64_t bytes, uint64_t growth_bytes_max, std::string_view what, bool lock, bool& locked) {
  lock_ = lock;
  if (growth_bytes_max > 0) {
    const uint64_t limit = round_up(bytes, kHugePageBytes) + round_up(growth_bytes_max, kHugePageBytes);
    if (Result<Mapping> addresses = map_aligned(limit, PROT_NONE, MAP_NORESERVE, what); addresses.ok()) {
      addresses_ = std::move(addresses).value();
      madvise(addresses_.data(), addresses_.bytes(), MADV_HUGEPAGE);
      return grow(bytes, what, locked);
    }
  }
  FOLIOT_ASSIGN_OR_RETURN(addresses_, take_memory(bytes, what, lock, locked));
  bytes_.store(addresses_.bytes(), std::memory_order_release);
  return Status();
}

Status GrowingMemory::grow(uint64_t bytes, std::string_view what, bool& locked) {
  const uint64_t had = this->bytes();
  const uint64_t wanted = round_up(bytes, kHugePageBytes);
  if (wanted <= had) return Status();
  if (wanted > addresses_.bytes()) return exhausted(wanted, what, ENOMEM);
  const std::span<std::byte> added(data() + had, wanted - had);
  if (mprotect(added.data(), added.size(), PROT_READ | PROT_WRITE) != 0) return exhausted(wanted, what, errno);
  if (Status status = settle(added, added.size(), what, lock_, locked); !status.ok()) {
    madvise(added.data(), added.size(), MADV_DONTNEED);
    return status;
  }
  bytes_.store(wanted, std::memory_order_release);
  return Status();
}

Result<std::unique_ptr<PageMemory>> PageMemory::create(uint64_t page_bytes, uint32_t page_count, uint32_t spare_pages,
                                                       bool lock, bool& locked) {
  FOLIOT_CHECK(spare_pages <= page_count);
  constexpr std::string_view kWhat = "page cache";
  std::unique_ptr<PageMemory> cache(new PageMemory(page_bytes, page_count));
  if (page_count == 0) return cache;
  FOLIOT_ASSIGN_OR_RETURN(cache->homes_, map_aligned(page_bytes * page_count, PROT_READ | PROT_WRITE, 0, kWhat));
  // A huge page that two pages share would have to be split when one of them moves.
  const bool whole = page_bytes % kHugePageBytes == 0;
  madvise(cache->homes_.data(), cache->homes_.bytes(), whole ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  cache->locked_ = lock;
  const std::span<std::byte> all(cache->homes_.data(), cache->homes_.bytes());
  FOLIOT_RETURN_IF_ERROR(settle(all, (page_count - spare_pages) * page_bytes, kWhat, lock, cache->locked_));
  locked = locked && cache->locked_ == lock;
  return cache;
}

// The origin keeps its addresses, empty, so that no other mapping takes them. The
// kernel counts locked memory twice when such a move takes it along.
bool PageMemory::move(std::byte* from, std::byte* to) const {
  if (locked_) munlock(from, page_bytes_);
  constexpr int kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (mremap(from, page_bytes_, page_bytes_, kFlags, to) == MAP_FAILED) return false;
  if (locked_) mlock(to, page_bytes_);
  return true;
}

Result<PageTable> PageTable::reserve(const PageMemory& cache, uint64_t bytes) {
  if (bytes == 0) return PageTable(cache, Mapping());
  FOLIOT_ASSIGN_OR_RETURN(Mapping range, map_aligned(round_up(bytes, cache.page_bytes()), PROT_NONE, MAP_NORESERVE,
                                                     "addresses of a program's weights"));
  PageTable table(cache, std::move(range));
  table.pages_.reserve(table.bytes() / cache.page_bytes());
  return table;
}

Status PageTable::map(std::span<const PageIndex> pages) {
  FOLIOT_CHECK(pages_.empty() && pages.size() * cache_->page_bytes() == bytes());
  for (size_t i = 0; i < pages.size(); ++i) {
    FOLIOT_CHECK(pages[i] < cache_->page_count());
    if (!cache_->move(cache_->home(pages[i]), address(i))) {
      const int error = errno;
      unmap();
      return Status::resource_exhausted(
          fmt::format("cannot map a page: {}; raise vm.max_map_count", error_text(error)));
    }
    pages_.push_back(pages[i]);
  }
  return Status();
}

void PageTable::unmap() {
  if (pages_.empty()) return;
  for (size_t i = 0; i < pages_.size(); ++i) FOLIOT_CHECK(cache_->move(address(i), cache_->home(pages_[i])));
  pages_.clear();
  void* reserved = mmap(data(), bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  FOLIOT_CHECK(reserved != MAP_FAILED);
}

}  // namespace foliot
