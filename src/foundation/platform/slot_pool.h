// SlotPool<T>: memory for so many T at a time. The slot that was given back last is taken first, so that no more memory
// is touched than was in use at once, however large the pool is. A Treiber stack, whose head counts its changes so that
// a slot which was taken and given back meanwhile is noticed. No lock, allocation or system call after construction,
// but for the page faults of slots that are used for the first time.
//
// Threading: any thread. The pool outlives what is held of it.
#ifndef FOLIOT_FOUNDATION_PLATFORM_SLOT_POOL_H_
#define FOLIOT_FOUNDATION_PLATFORM_SLOT_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {

template <typename T>
class SlotPool {
 public:
  // A T of the pool, or nothing; gives its slot back when it is destroyed.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (pool_ != nullptr) pool_->destroy(slot_);
    }

    explicit operator bool() const { return pool_ != nullptr; }
    T& operator*() const { return pool_->item(slot_); }

   private:
    friend class SlotPool;
    Held(SlotPool* pool, uint32_t slot) : pool_(pool), slot_(slot) {}

    SlotPool* pool_ = nullptr;
    uint32_t slot_ = 0;
  };

  explicit SlotPool(uint32_t capacity)
      : capacity_(capacity),
        slots_(std::make_unique_for_overwrite<Slot[]>(capacity)),
        below_(std::make_unique<std::atomic<uint32_t>[]>(capacity)) {}

  // Nothing if all slots are in use.
  template <typename... Arguments>
  Held make(Arguments&&... arguments) {
    const uint32_t slot = take();
    if (slot == capacity_) return Held();
    new (slots_[slot].storage) T(std::forward<Arguments>(arguments)...);
    return Held(this, slot);
  }

  // Slots that were ever in use.
  uint32_t touched() const { return touched_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    alignas(T) std::byte storage[sizeof(T)];
  };

  // The slot on top of the stack, from 1 on; 0: none.
  static constexpr uint32_t top_of(uint64_t head) { return static_cast<uint32_t>(head); }
  static constexpr uint64_t changed(uint64_t head, uint32_t top) { return ((head >> 32) + 1) << 32 | top; }

  T& item(uint32_t slot) { return *std::launder(reinterpret_cast<T*>(slots_[slot].storage)); }

  uint32_t take() {
    uint64_t head = head_.load(std::memory_order_acquire);
    while (top_of(head) != 0) {
      const uint32_t below = below_[top_of(head) - 1].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, changed(head, below), std::memory_order_acquire)) return top_of(head) - 1;
    }
    uint32_t slot = touched_.load(std::memory_order_relaxed);
    while (slot < capacity_ && !touched_.compare_exchange_weak(slot, slot + 1, std::memory_order_relaxed)) {
    }
    return slot;
  }

  void destroy(uint32_t slot) {
    item(slot).~T();
    uint64_t head = head_.load(std::memory_order_relaxed);
    do {
      below_[slot].store(top_of(head), std::memory_order_relaxed);
    } while (!head_.compare_exchange_weak(head, changed(head, slot + 1), std::memory_order_release,
                                          std::memory_order_relaxed));
  }

  const uint32_t capacity_;
  const std::unique_ptr<Slot[]> slots_;
  const std::unique_ptr<std::atomic<uint32_t>[]> below_;  // by slot on the stack: as in top_of()
  std::atomic<uint64_t> head_{0};                         // changes << 32 | top
  std::atomic<uint32_t> touched_{0};
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_SLOT_POOL_H_
