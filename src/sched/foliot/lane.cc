#include "sched/foliot/lane.h"

#include <algorithm>

namespace foliot::foliot_policy {

// Ids grow with arrival, so equal deadlines stay in the order of arrival.
void Lane::add(const Request& request) {
  const Entry entry{request.deadline, request.id};
  if (request.best_effort()) ++best_effort_;
  if (empty() || entries_.back() < entry) {
    entries_.push_back(entry);
    return;
  }
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(begin_);
  entries_.insert(std::upper_bound(begin, entries_.end(), entry), entry);
}

void Lane::remove(const Request& request) {
  const Entry entry{request.deadline, request.id};
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(begin_);
  const auto found = std::lower_bound(begin, entries_.end(), entry);
  if (found != entries_.end() && *found == entry) erase(static_cast<size_t>(found - begin), 1);
}

void Lane::erase(size_t position, size_t count) {
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(begin_ + position);
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  best_effort_ -=
      static_cast<size_t>(std::count_if(first, last, [](const Entry& e) { return e.deadline.is_infinite(); }));
  if (position > 0) {
    entries_.erase(first, last);
    return;
  }
  begin_ += count;
  if (begin_ * 2 < entries_.size()) return;
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
}

size_t Lane::first_due_from(TimePoint deadline) const {
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(begin_);
  const auto found = std::lower_bound(begin, entries_.end(), deadline,
                                      [](const Entry& entry, TimePoint d) { return entry.deadline < d; });
  return static_cast<size_t>(found - begin);
}

}  // namespace foliot::foliot_policy
