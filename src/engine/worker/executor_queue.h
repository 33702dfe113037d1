// ExecutorQueue: the order in which an executor takes its actions (Clockwork,
// section 5.2): by `earliest`, then in the order of arrival. The head waits until
// its window opens and is refused once it has closed.
//
// Pure logic with time as an argument; never allocates after construction.
// Threading: belongs to its executor.
#ifndef FOLIOT_ENGINE_WORKER_EXECUTOR_QUEUE_H_
#define FOLIOT_ENGINE_WORKER_EXECUTOR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/base/time.h"

namespace foliot {

// What to do with the head of a queue at one instant.
enum class HeadState { kNone, kWaiting, kOpen, kTooLate };

template <typename Work>
class ExecutorQueue {
 public:
  explicit ExecutorQueue(size_t capacity) : capacity_(capacity) { heap_.reserve(capacity); }

  bool full() const { return heap_.size() == capacity_; }
  bool empty() const { return heap_.empty(); }

  // REQUIRES: !full().
  void push(Work work, TimePoint earliest, TimePoint latest) {
    FOLIOT_CHECK(!full());
    heap_.push_back({earliest, next_sequence_++, latest, std::move(work)});
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }

  HeadState head_state(TimePoint now) const {
    if (heap_.empty()) return HeadState::kNone;
    if (now > heap_.front().latest) return HeadState::kTooLate;
    return now < heap_.front().earliest ? HeadState::kWaiting : HeadState::kOpen;
  }

  // When the head's window opens. REQUIRES: !empty().
  TimePoint head_earliest() const {
    FOLIOT_CHECK(!empty());
    return heap_.front().earliest;
  }

  // REQUIRES: !empty().
  const Work& head() const {
    FOLIOT_CHECK(!empty());
    return heap_.front().work;
  }

  // REQUIRES: !empty().
  Work pop() {
    FOLIOT_CHECK(!empty());
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    Work work = std::move(heap_.back().work);
    heap_.pop_back();
    return work;
  }

 private:
  struct Entry {
    TimePoint earliest;
    uint64_t sequence;
    TimePoint latest;
    Work work;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::pair(a.earliest, a.sequence) > std::pair(b.earliest, b.sequence);
    }
  };

  size_t capacity_;
  uint64_t next_sequence_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_EXECUTOR_QUEUE_H_
