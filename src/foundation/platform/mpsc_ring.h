// MpscRing<T>: a bounded queue from any number of producing threads to one
// consuming thread, after Vyukov's bounded queue: every slot carries the position
// that it is ready for. Items of one producer stay in order. All memory is taken,
// and touched, at construction; no lock or system call afterwards.
//
// When full, push() returns false and the producer decides what that means. After
// close(), push() returns false for good; items pushed before can still be consumed,
// and closed_and_empty() is true when no more can come.
#ifndef FOLIOT_FOUNDATION_PLATFORM_MPSC_RING_H_
#define FOLIOT_FOUNDATION_PLATFORM_MPSC_RING_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace foliot {

template <typename T>
class MpscRing {
 public:
  // Holds `capacity` items, at least two.
  explicit MpscRing(size_t capacity)
      : capacity_(std::max<size_t>(capacity, 2)), slots_(std::make_unique<Slot[]>(capacity_)) {
    for (size_t i = 0; i < capacity_; ++i) slots_[i].ready_for.store(i, std::memory_order_relaxed);
  }
  ~MpscRing() {
    while (consume([](T&) {})) {
    }
  }
  MpscRing(const MpscRing&) = delete;
  MpscRing& operator=(const MpscRing&) = delete;

  // Any thread. Makes the item in place.
  template <typename... Arguments>
  bool push(Arguments&&... arguments) {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    Slot* slot;
    while (true) {
      if (tail & kClosed) return false;
      slot = &slots_[tail % capacity_];
      const uint64_t ready_for = slot->ready_for.load(std::memory_order_acquire);
      if (ready_for == tail) {
        if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) break;
      } else if (ready_for < tail) {
        return false;  // the consumer is a whole round behind
      } else {
        tail = tail_.load(std::memory_order_relaxed);
      }
    }
    new (slot->storage) T(std::forward<Arguments>(arguments)...);
    slot->ready_for.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Any thread; any number of times.
  void close() { tail_.fetch_or(kClosed, std::memory_order_relaxed); }

  // Consumer only. Hands the oldest item to `consumer(T&)`, in place, and then
  // destroys it; false if there is none. An item that is just being pushed hides
  // those behind it until it is complete.
  template <typename Consumer>
  bool consume(Consumer&& consumer) {
    Slot& slot = slots_[head_ % capacity_];
    if (slot.ready_for.load(std::memory_order_acquire) != head_ + 1) return false;
    T& item = *std::launder(reinterpret_cast<T*>(slot.storage));
    consumer(item);
    item.~T();
    slot.ready_for.store(head_ + capacity_, std::memory_order_release);
    ++head_;
    return true;
  }

  // Consumer only. An item that is just being pushed does not count.
  bool empty() const { return slots_[head_ % capacity_].ready_for.load(std::memory_order_acquire) != head_ + 1; }
  // Consumer only.
  bool closed_and_empty() const { return tail_.load(std::memory_order_relaxed) == (head_ | kClosed); }
  size_t capacity() const { return capacity_; }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;
  static constexpr size_t kCacheLine = 64;

  struct alignas(kCacheLine) Slot {
    // == position: free for that push; == position + 1: holds that item.
    std::atomic<uint64_t> ready_for;
    alignas(T) std::byte storage[sizeof(T)];
  };

  const size_t capacity_;
  const std::unique_ptr<Slot[]> slots_;
  alignas(kCacheLine) std::atomic<uint64_t> tail_{0};  // next position to push to, and kClosed
  alignas(kCacheLine) uint64_t head_ = 0;              // next position to consume
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_MPSC_RING_H_
