// Lane: the queued requests of one model and bucket, earliest deadline first.
//
// Clockwork (section 5.3) keeps one queue per batch size, from which requests are
// dropped once a batch of that size would miss their deadline. Ordered by
// deadline, each of those queues is a suffix of one: the batch queue of size b at
// time s is what has a deadline of at least s + L(b).
#ifndef FOLIOT_SCHED_CLOCKWORK_LANE_H_
#define FOLIOT_SCHED_CLOCKWORK_LANE_H_

#include <cstdint>
#include <deque>
#include <span>

#include "base/time.h"
#include "core/request.h"

namespace foliot::clockwork {

class Lane {
 public:
  struct Entry {
    TimePoint deadline;
    RequestId id;
    auto operator<=>(const Entry&) const = default;
  };

  void add(const Request& request);
  // Nothing happens if it is not here.
  void remove(const Request& request);

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const Entry& operator[](size_t position) const { return entries_[position]; }

  // Position of the first request with at least this deadline; size() if none.
  size_t first_due_from(TimePoint deadline) const;
  // Removes `count` requests from `position` on.
  void erase(size_t position, size_t count);

 private:
  std::deque<Entry> entries_;
};

}  // namespace foliot::clockwork

#endif  // FOLIOT_SCHED_CLOCKWORK_LANE_H_
