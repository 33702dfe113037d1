// SpscRing<T>: a bounded queue from one producing thread to one consuming thread.
// No allocation, lock or system call after construction.
//
// When full, push() returns false and the producer decides what that means.
#ifndef FOLIOT_FOUNDATION_BASE_SPSC_RING_H_
#define FOLIOT_FOUNDATION_BASE_SPSC_RING_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace foliot {

template <typename T>
class SpscRing {
 public:
  // Holds at least `capacity` items (rounded up to a power of two).
  explicit SpscRing(size_t capacity)
      : slots_(std::bit_ceil(capacity < 1 ? size_t{1} : capacity)), mask_(slots_.size() - 1) {}

  // Producer only.
  bool push(T item) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == slots_.size()) return false;
    slots_[tail & mask_] = std::move(item);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Producer only. All of them, or none if there is not enough room.
  bool push_all(std::span<const T> items) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (slots_.size() - (tail - head_.load(std::memory_order_acquire)) < items.size()) return false;
    for (size_t i = 0; i < items.size(); ++i) slots_[(tail + i) & mask_] = items[i];
    tail_.store(tail + items.size(), std::memory_order_release);
    return true;
  }
  // Producer only. Whether push() would fail.
  bool full() const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) == slots_.size();
  }

  // Consumer only.
  std::optional<T> pop() {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    std::optional<T> item(std::move(slots_[head & mask_]));
    head_.store(head + 1, std::memory_order_release);
    return item;
  }

  // Either side; exact only when the other is still.
  bool empty() const { return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire); }
  size_t capacity() const { return slots_.size(); }

 private:
  std::vector<T> slots_;
  size_t mask_;
  alignas(64) std::atomic<size_t> head_{0};
  alignas(64) std::atomic<size_t> tail_{0};
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_SPSC_RING_H_
