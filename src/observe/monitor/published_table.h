// PublishedTable<T>: values by small integers, which one thread makes and any thread reads.
//
// A value stays where it is. Its members are atomics of their own, so a reader sees each of them
// as it was at some instant, and not all of one instant.
//
// Threading: make() from one thread, find() from any. Only make() of a new value allocates, for
// kChunk of them at a time.
#ifndef FOLIOT_OBSERVE_MONITOR_PUBLISHED_TABLE_H_
#define FOLIOT_OBSERVE_MONITOR_PUBLISHED_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace foliot {

template <typename T>
class PublishedTable {
 public:
  static constexpr size_t kChunk = 64;
  static constexpr size_t kSizeMax = kChunk * 1024;

  // nullptr: `index` is not below kSizeMax.
  T* make(uint32_t index) {
    if (index >= kSizeMax) return nullptr;
    std::atomic<Chunk*>& chunk = chunks_[index / kChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      owned_.push_back(std::make_unique<Chunk>());
      chunk.store(owned_.back().get(), std::memory_order_release);
    }
    return find(index);
  }
  // nullptr: neither it nor a neighbour was made.
  T* find(uint32_t index) const {
    if (index >= kSizeMax) return nullptr;
    Chunk* const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunk];
  }
  // Of all that were made, and of their neighbours, in ascending order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t i = 0; i < chunks_.size(); ++i) {
      const Chunk* const chunk = chunks_[i].load(std::memory_order_acquire);
      if (chunk == nullptr) continue;
      for (size_t k = 0; k < kChunk; ++k) visit(static_cast<uint32_t>(i * kChunk + k), (*chunk)[k]);
    }
  }

 private:
  using Chunk = std::array<T, kChunk>;
  std::array<std::atomic<Chunk*>, kSizeMax / kChunk> chunks_{};
  std::vector<std::unique_ptr<Chunk>> owned_;  // of the thread that makes them
};

// Counts on one thread, and is read on any.
class PublishedCount {
 public:
  void add(int64_t number) { set(value() + number); }
  void set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_MONITOR_PUBLISHED_TABLE_H_
