// EventRing<T>: the last events of one thread, for readers that may come too late.
//
// The writer never waits: it overwrites the oldest event. A reader asks for an event by its
// sequence number, from 0, and learns when that was overwritten, also while it was copied. The
// rejected alternative is a queue (foundation/base/spsc_ring.h): it has one reader, and keeps the
// oldest events where viewers want the newest.
//
// Threading: push() from one thread; the others from any. No allocation, lock or system call
// after construction.
#ifndef FOLIOT_OBSERVE_MONITOR_EVENT_RING_H_
#define FOLIOT_OBSERVE_MONITOR_EVENT_RING_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

namespace foliot {

template <typename T>
class EventRing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Holds at least `capacity` events (rounded up to a power of two).
  explicit EventRing(size_t capacity)
      : slots_(std::bit_ceil(capacity < 1 ? size_t{1} : capacity)), mask_(slots_.size() - 1) {}

  void push(const T& event) {
    const uint64_t sequence = written_.load(std::memory_order_relaxed);
    std::array<uint64_t, kWords> words{};
    std::memcpy(words.data(), &event, sizeof(T));
    begun_.store(sequence + 1, std::memory_order_relaxed);
    Slot& slot = slots_[sequence & mask_];
    // A reader of one of these words sees `begun_` too.
    for (size_t i = 0; i < kWords; ++i) slot[i].store(words[i], std::memory_order_release);
    written_.store(sequence + 1, std::memory_order_release);
  }

  size_t capacity() const { return slots_.size(); }
  // So many events were written: the next one has this number.
  uint64_t written() const { return written_.load(std::memory_order_acquire); }
  // The oldest event that is still there, at this instant.
  uint64_t oldest() const {
    const uint64_t end = written();
    return end > slots_.size() ? end - slots_.size() : 0;
  }
  // nullopt: it is not yet written, or no longer there.
  std::optional<T> read(uint64_t sequence) const {
    if (sequence >= written()) return std::nullopt;
    std::array<uint64_t, kWords> words;
    const Slot& slot = slots_[sequence & mask_];
    for (size_t i = 0; i < kWords; ++i) words[i] = slot[i].load(std::memory_order_acquire);
    if (begun_.load(std::memory_order_relaxed) > sequence + slots_.size()) return std::nullopt;
    T event;
    std::memcpy(static_cast<void*>(&event), words.data(), sizeof(T));
    return event;
  }

 private:
  static constexpr size_t kWords = (sizeof(T) + 7) / 8;
  using Slot = std::array<std::atomic<uint64_t>, kWords>;

  std::vector<Slot> slots_;
  size_t mask_;
  alignas(64) std::atomic<uint64_t> begun_{0};  // ahead of written_ while an event is being written
  std::atomic<uint64_t> written_{0};
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_MONITOR_EVENT_RING_H_
