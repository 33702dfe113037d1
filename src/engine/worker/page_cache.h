// PageCache: the free pages of a device's memory. Pages are all alike, so the number of
// free ones is its whole state (Clockwork, section 5.2).
//
// Threading: belongs to the LOAD executor.
#ifndef FOLIOT_ENGINE_WORKER_PAGE_CACHE_H_
#define FOLIOT_ENGINE_WORKER_PAGE_CACHE_H_

#include <cstdint>
#include <vector>

#include "engine/device/device.h"
#include "foundation/base/check.h"

namespace foliot {

class PageCache {
 public:
  explicit PageCache(uint32_t page_count) : page_count_(page_count) {
    // Lowest first, so that a half-filled cache stays together.
    for (uint32_t page = page_count; page-- > 0;) free_.push_back(page);
  }

  uint32_t page_count() const { return page_count_; }
  uint32_t free_pages() const { return static_cast<uint32_t>(free_.size()); }

  // Moves `count` pages to the end of `pages`. REQUIRES: count <= free_pages().
  void acquire(uint32_t count, std::vector<PageIndex>& pages) {
    FOLIOT_CHECK(count <= free_pages());
    for (uint32_t i = 0; i < count; ++i) {
      pages.push_back(free_.back());
      free_.pop_back();
    }
  }

  // Takes back what acquire() gave, and clears `pages`.
  void release(std::vector<PageIndex>& pages) {
    FOLIOT_CHECK(free_.size() + pages.size() <= page_count_);
    free_.insert(free_.end(), pages.rbegin(), pages.rend());
    pages.clear();
  }

 private:
  uint32_t page_count_;
  std::vector<PageIndex> free_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_PAGE_CACHE_H_
