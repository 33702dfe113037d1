// RequestQueue: the queued requests of one model and bucket, in the order in which a
// policy serves them: earliest deadline first, or first come first. Equals are in the
// order of arrival, and, where that is the same, of admission. Offline requests come
// after all others.
//
// Clockwork (section 5.3) keeps one queue per batch size, from which requests are
// dropped once a batch of that size would miss their deadline. Ordered by
// deadline, each of those queues is a suffix of one: the batch queue of size b at
// time s is what has a deadline of at least s + L(b).
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_REQUEST_QUEUE_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_REQUEST_QUEUE_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "foundation/base/prefetch.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"

namespace foliot {

// A model and bucket: the name of a queue.
struct QueueKey {
  ModelId model;
  BucketId bucket;
  auto operator<=>(const QueueKey&) const = default;
};

class RequestQueue {
 public:
  enum class Order : uint8_t { kDeadline, kArrival };
  // A request's place in the order of service. No two requests have the same one.
  struct Place {
    bool offline = false;
    TimePoint order;  // the deadline or the arrival
    TimePoint arrival;
    uint64_t sequence = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Entry {
    Place place;
    RequestId id;
    TimePoint deadline;
  };

  explicit RequestQueue(Order order = Order::kDeadline) : order_(order) {}

  void add(const Request& request);
  // Nothing happens if it is not here.
  void remove(const Request& request);

  // Begins to bring what first_due_from() looks at first into the processor's caches.
  void prefetch() const {
    if (entries_.empty()) return;
    const Entry* const first = entries_.data() + first_;
    foliot::prefetch(first);
    foliot::prefetch(first + front_size() / 2);
    foliot::prefetch(entries_.data() + entries_.size() - 1);
  }
  bool empty() const { return size() == 0; }
  size_t size() const { return front_size() + rest_size_; }
  const Entry& operator[](size_t position) const {
    return position < front_size() ? entries_[first_ + position] : in_rest(position - front_size());
  }

  // Position of the first request with at least this deadline; size() if none.
  // In the order of deadlines, all behind it have that too.
  size_t first_due_from(TimePoint deadline) const {
    if (empty() || entries_[first_].deadline >= deadline) return 0;
    if (order_ == Order::kDeadline && last().deadline < deadline) return size();
    return find_due_from(deadline);
  }
  // How many have a deadline. In the order of deadlines those without follow them.
  size_t with_deadline() const { return size() - best_effort_ - offline_; }
  // How many, behind those, have none and are not offline.
  size_t best_effort() const { return best_effort_; }
  // How many, the last ones, are offline.
  size_t offline() const { return offline_; }
  // Removes `count` requests from `position` on.
  void erase(size_t position, size_t count);

 private:
  using Block = std::vector<Entry>;
  Entry entry_of(const Request& request) const;
  size_t front_size() const { return entries_.size() - first_; }
  const Entry& last() const { return rest_.empty() ? entries_.back() : rest_.back().back(); }
  const Entry& in_rest(size_t position) const;
  size_t find_due_from(TimePoint deadline) const;
  Block::iterator begin() { return entries_.begin() + static_cast<std::ptrdiff_t>(first_); }
  // Whether an entry of this place is or belongs in rest_, and in which block of it.
  bool beyond_front(const Place& place) const { return !rest_.empty() && !(place < rest_.front().front().place); }
  std::vector<Block>::iterator block_of(const Place& place);
  void add_to_front(const Entry& entry);
  void add_to_rest(const Entry& entry);
  void erase_from_front(size_t position, size_t count);
  void erase_from_rest(size_t position, size_t count);
  void discount(Block::const_iterator from, Block::const_iterator to);

  Order order_;
  // One block of memory, whose front is given up when it is the larger part: most
  // queues are short, and there are many of them.
  Block entries_;
  size_t first_ = 0;  // entries before it are gone
  // Of a long queue, what follows: short blocks, none of them empty, so that no change
  // moves more than one of them.
  std::vector<Block> rest_;
  size_t rest_size_ = 0;
  size_t best_effort_ = 0;
  size_t offline_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_REQUEST_QUEUE_H_
