// Lane: the queued requests of one model and bucket, earliest deadline first;
// those without a deadline (best effort) come last, in the order of arrival.
#ifndef FOLIOT_SCHED_FOLIOT_LANE_H_
#define FOLIOT_SCHED_FOLIOT_LANE_H_

#include <compare>
#include <cstddef>
#include <vector>

#include "base/time.h"
#include "core/request.h"

namespace foliot::foliot_policy {

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
  // Removes `count` requests from `position` on.
  void erase(size_t position, size_t count);

  size_t size() const { return entries_.size() - begin_; }
  bool empty() const { return size() == 0; }
  const Entry& operator[](size_t position) const { return entries_[begin_ + position]; }
  // Position of the first request with at least this deadline; size() if none.
  size_t first_due_from(TimePoint deadline) const;
  // How many have a deadline; the others follow them.
  size_t with_deadline() const { return size() - best_effort_; }

 private:
  // Those before begin_ are gone: most leave from the front.
  std::vector<Entry> entries_;
  size_t begin_ = 0;
  size_t best_effort_ = 0;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_SCHED_FOLIOT_LANE_H_
