// VirtualLoop: time that passes as fast as events can be handled. Events at one
// instant run in the order in which they were scheduled, so a run depends on
// nothing but its inputs.
#ifndef FOLIOT_VIRTUAL_WORLD_VIRTUAL_LOOP_H_
#define FOLIOT_VIRTUAL_WORLD_VIRTUAL_LOOP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <type_traits>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/base/time.h"

namespace foliot {

class VirtualLoop {
 public:
  TimePoint now() const { return now_; }

  // Calls `event` at `when`. It is kept in place, without allocation, so it must be
  // small and trivial: a lambda over pointers and numbers. REQUIRES: when >= now().
  template <typename Event>
  void at(TimePoint when, const Event& event) {
    static_assert(sizeof(Event) <= kEventBytesMax && alignof(Event) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_copyable_v<Event> && std::is_trivially_destructible_v<Event>);
    FOLIOT_CHECK(when >= now_);
    const uint32_t slot = take_slot();
    new (slots_[slot].bytes) Event(event);
    slots_[slot].call = [](std::byte* bytes) { (*std::launder(reinterpret_cast<Event*>(bytes)))(); };
    const Due due{when, next_sequence_++, slot};
    if (when == now_) return at_once_.push_back(due);
    due_.push_back(due);
    std::push_heap(due_.begin(), due_.end(), std::greater<>());
  }

  // Runs events up to and including `end`; returns how many. now() is then `end`,
  // or, if `end` is infinite, the time of the last event. REQUIRES: end >= now().
  uint64_t run_until(TimePoint end) {
    FOLIOT_CHECK(end >= now_);
    uint64_t handled = 0;
    while (const Due* next = first()) {
      if (next->when > end) break;
      const Due due = *next;
      take_first();
      now_ = due.when;
      // The event may schedule others, and so move the slots.
      Slot slot = slots_[due.slot];
      free_.push_back(due.slot);
      slot.call(slot.bytes);
      ++handled;
    }
    if (!end.is_infinite()) now_ = end;
    return handled;
  }

 private:
  static constexpr size_t kEventBytesMax = 48;
  struct Slot {
    alignas(std::max_align_t) std::byte bytes[kEventBytesMax];
    void (*call)(std::byte*);
  };
  struct Due {
    TimePoint when;
    uint64_t sequence;
    uint32_t slot;
    bool operator>(const Due& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  // nullptr if there is none. What was scheduled for this instant before it came is in
  // the heap, with lower sequence numbers.
  const Due* first() const {
    if (at_once_taken_ == at_once_.size()) return due_.empty() ? nullptr : &due_.front();
    const Due& next = at_once_[at_once_taken_];
    return !due_.empty() && next > due_.front() ? &due_.front() : &next;
  }
  // REQUIRES: there is one.
  void take_first() {
    if (first() == due_.data()) {
      std::pop_heap(due_.begin(), due_.end(), std::greater<>());
      due_.pop_back();
    } else if (++at_once_taken_ == at_once_.size()) {
      at_once_.clear();
      at_once_taken_ = 0;
    }
  }
  uint32_t take_slot() {
    if (free_.empty()) {
      slots_.emplace_back();
      return static_cast<uint32_t>(slots_.size() - 1);
    }
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  TimePoint now_;
  uint64_t next_sequence_ = 0;
  std::vector<Due> due_;      // a heap
  std::vector<Due> at_once_;  // what was scheduled for now(), in order
  size_t at_once_taken_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_VIRTUAL_LOOP_H_
