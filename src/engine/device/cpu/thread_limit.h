// Which operators run on one thread although the device has more: sharing one costs
// 2 to 3 us, to wake another thread and to wait for it, which the shortest do not save.
// Lowering and prepare() both ask, since oneDNN's kernels are made for a number of threads.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_THREAD_LIMIT_H_
#define FOLIOT_ENGINE_DEVICE_CPU_THREAD_LIMIT_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/device/cpu/operator_view.h"
#include "engine/device/operator.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Whether oneDNN's kernel of this kind is too short to be shared, by the shapes of its
// first two operands (the second empty if there is none) and of its result alone.
bool is_short(OperatorKind kind, const Shape& left, const Shape& right, const Shape& result);
bool is_short(const OperatorView& view);

// How many threads an EXEC can have on a part of the lanes of a device of so many threads, for any number
// of lanes that divides them (foundation/core/lanes.h); ascending, each below `threads`.
std::vector<uint32_t> threads_of_fewer_lanes(uint32_t threads);

// While it lives, what the calling thread makes or runs with oneDNN has one thread if
// `alone`, or at most so many, else as many as before.
class ThreadLimit {
 public:
  explicit ThreadLimit(bool alone) : ThreadLimit(alone ? 1 : kUnlimited) {}
  static ThreadLimit at_most(uint32_t threads) { return ThreadLimit(static_cast<int>(threads)); }
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  static constexpr int kUnlimited = std::numeric_limits<int>::max();
  explicit ThreadLimit(int threads_max);

  int before_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_THREAD_LIMIT_H_
