// FlatMap: an unordered map from integers or ids (foundation/base/id.h) to small values, in one
// block of memory: every request and every action is looked up several times.
//
// Open addressing with linear probing; erasing moves what follows back, so nothing
// is left behind. Its order means nothing: whatever comes of for_each() is to be
// sorted, or not to depend on it.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_FOUNDATION_BASE_FLAT_MAP_H_
#define FOLIOT_FOUNDATION_BASE_FLAT_MAP_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "foundation/base/prefetch.h"

namespace foliot {

template <typename Key, typename Value>
class FlatMap {
 public:
  FlatMap() : slots_(kSlotsMin) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // False, and nothing changes, if the key is there.
  bool insert(Key key, Value value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    const size_t at = place(key);
    if (slots_[at].used) return false;
    slots_[at] = {key, true, std::move(value)};
    ++size_;
    return true;
  }

  // The value of the key, a new one if there was none. What is returned holds until
  // the next change of the map.
  Value& operator[](Key key) {
    size_t at = place(key);
    if (!slots_[at].used) {
      insert(key, {});
      at = place(key);
    }
    return slots_[at].value;
  }

  // nullptr if absent; holds until the next change of the map.
  const Value* find(Key key) const {
    const Slot& slot = slots_[place(key)];
    return slot.used ? &slot.value : nullptr;
  }
  Value* find(Key key) {
    Slot& slot = slots_[place(key)];
    return slot.used ? &slot.value : nullptr;
  }

  // Begins to bring what find() reads into the processor's caches.
  void prefetch(Key key) const { foliot::prefetch(&slots_[home(key)]); }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.used) visit(slot.key, slot.value);
    }
  }

  void clear() {
    slots_.assign(kSlotsMin, Slot());
    size_ = 0;
  }

  bool erase(Key key) {
    size_t hole = place(key);
    if (!slots_[hole].used) return false;
    slots_[hole].used = false;
    --size_;
    for (size_t at = next(hole); slots_[at].used; at = next(at)) {
      // What would be found without the hole may stay; the rest moves into it.
      const size_t distance_from_home = (at - home(slots_[at].key)) & (slots_.size() - 1);
      const size_t distance_from_hole = (at - hole) & (slots_.size() - 1);
      if (distance_from_home < distance_from_hole) continue;
      slots_[hole] = std::move(slots_[at]);
      slots_[at].used = false;
      hole = at;
    }
    return true;
  }

 private:
  static constexpr size_t kSlotsMin = 64;  // a power of two, as every size
  struct Unaligned {
    Key key;
    bool used;
    Value value;
  };
  // Small slots do not lie across two lines of the processor's caches.
  static constexpr size_t kAlignment =
      sizeof(Unaligned) <= 64 ? std::max(std::bit_ceil(sizeof(Unaligned)), alignof(Unaligned)) : alignof(Unaligned);
  struct alignas(kAlignment) Slot {
    Key key{};
    bool used = false;
    Value value{};
  };

  // Keys are mostly consecutive numbers: spread them.
  size_t home(Key key) const { return (number(key) * 0x9e3779b97f4a7c15U >> 20) & (slots_.size() - 1); }
  static uint64_t number(Key key) {
    if constexpr (std::is_integral_v<Key>) {
      return static_cast<uint64_t>(key);
    } else {
      return key.value();
    }
  }
  size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  // Where the key is, or would be put.
  size_t place(Key key) const {
    size_t at = home(key);
    while (slots_[at].used && slots_[at].key != key) at = next(at);
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.used) slots_[place(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_FLAT_MAP_H_
