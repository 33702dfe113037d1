// BatchedQueue: the centralised queue of one stage and its replicas (InferLine, section 4.3).
// An idle replica takes the queries that wait, oldest first and at most one batch of them, and
// never waits for more. At an instant, arrivals come first, then replicas take.
//
// The number of replicas may change: one that is added takes queries from that instant on; of
// those that are removed, the first to be idle go, after their batch. All may stand still from a
// change on, as a system does that stops in order to be reconfigured.
//
// Threading: one owner.
#ifndef FOLIOT_PLANNING_PIPELINES_BATCHED_QUEUE_H_
#define FOLIOT_PLANNING_PIPELINES_BATCHED_QUEUE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "foundation/base/check.h"

namespace foliot {

struct ReplicaChange {
  int64_t at_ns = 0;
  uint32_t replicas = 1;        // from then on
  int64_t halted_until_ns = 0;  // none takes queries before; batches that run go on

  bool operator==(const ReplicaChange&) const = default;
};

class BatchedQueue {
 public:
  // REQUIRES: replicas > 0; `changes` ascending and never to 0; both spans outlive the queue.
  BatchedQueue(std::span<const int64_t> durations_ns, uint32_t batch, uint32_t replicas,
               std::span<const ReplicaChange> changes = {})
      : durations_ns_(durations_ns), batch_(batch), changes_(changes) {
    uint32_t most = replicas;
    for (const ReplicaChange& change : changes) most = std::max(most, change.replicas);
    FOLIOT_CHECK(replicas > 0 && batch > 0 && batch < durations_ns.size());
    free_ns_.resize(std::bit_ceil(size_t{most} + 1));
    std::fill_n(free_ns_.begin(), replicas, std::numeric_limits<int64_t>::min());
    tail_ = replicas;
  }

  // Serves the queries [begin, until) of `count` and those that go into the same batch as the
  // last of them; returns the first that was not served. Queries<>::ready_ns(i) never falls;
  // finish(i, at_ns) is called once for each, in order of i. Where there is a
  // fitting(i, start_ns, batch, whole), a batch that begins with i has at most so many queries; where this is 0, or a
  // `whole` batch waits and i would make it smaller, i is refused instead, refuse(i, start_ns).
  template <typename Queries>
  size_t serve(Queries& queries, size_t begin, size_t until, size_t count) {
    const size_t mask = free_ns_.size() - 1;
    int64_t* const free_ns = free_ns_.data();
    const int64_t* const durations_ns = durations_ns_.data();
    size_t i = begin;
    while (i < until) {
      const int64_t start_ns = std::max(queries.ready_ns(i), free_ns[head_ & mask]);
      if (start_ns >= next_change_ns()) [[unlikely]] {
        apply_change();
        continue;
      }
      size_t most = batch_;
      if constexpr (requires { queries.refuse(i, start_ns); }) {
        const bool whole = i + batch_ <= count && queries.ready_ns(i + batch_ - 1) <= start_ns;
        most = queries.fitting(i, start_ns, batch_, whole);
        if (most == 0 || (whole && most < batch_)) {
          queries.refuse(i++, start_ns);
          continue;
        }
      }
      const size_t end = std::min(i + most, count);
      size_t next = i + 1;
      while (next < end && queries.ready_ns(next) <= start_ns) ++next;
      const int64_t finish_ns = start_ns + durations_ns[next - i];
      for (; i < next; ++i) queries.finish(i, finish_ns);
      ++head_;
      insert(finish_ns);
    }
    return i;
  }

 private:
  int64_t next_change_ns() const {
    return changes_.empty() ? std::numeric_limits<int64_t>::max() : changes_.front().at_ns;
  }

  // From the end: a batch that starts last mostly ends last.
  void insert(int64_t free_at_ns) {
    const size_t mask = free_ns_.size() - 1;
    size_t slot = tail_++;
    for (; slot != head_ && free_ns_[(slot - 1) & mask] > free_at_ns; --slot) {
      free_ns_[slot & mask] = free_ns_[(slot - 1) & mask];
    }
    free_ns_[slot & mask] = free_at_ns;
  }

  void apply_change() {
    const ReplicaChange change = changes_.front();
    changes_ = changes_.subspan(1);
    FOLIOT_CHECK(change.replicas > 0);
    while (tail_ - head_ < change.replicas) insert(change.at_ns);
    head_ = tail_ - change.replicas;
    const size_t mask = free_ns_.size() - 1;
    for (size_t i = head_; i != tail_; ++i) {
      free_ns_[i & mask] = std::max(free_ns_[i & mask], change.halted_until_ns);
    }
  }

  const std::span<const int64_t> durations_ns_;
  const size_t batch_;
  std::span<const ReplicaChange> changes_;
  // When each replica is idle, ascending: a ring from head_ to tail_.
  std::vector<int64_t> free_ns_;
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_BATCHED_QUEUE_H_
