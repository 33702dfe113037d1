#include "policy/lane.h"

#include <algorithm>

namespace foliot {
Lane::Entry Lane::entry_of(const Request& request) const {
  const TimePoint order = order_ == Order::kDeadline ? request.deadline : request.arrival;
  return {{order, request.arrival, request.sequence}, request.id, request.deadline};
}

void Lane::add(const Request& request) {
  const Entry entry = entry_of(request);
  if (empty() || entries_.back().place < entry.place) {
    entries_.push_back(entry);
  } else {
    entries_.insert(std::ranges::upper_bound(begin(), entries_.end(), entry.place, {}, &Entry::place), entry);
  }
}

void Lane::remove(const Request& request) {
  const Entry entry = entry_of(request);
  const auto found = std::ranges::lower_bound(begin(), entries_.end(), entry.place, {}, &Entry::place);
  if (found != entries_.end() && found->place == entry.place) erase(static_cast<size_t>(found - begin()), 1);
}

size_t Lane::find_due_from(TimePoint deadline) const {
  const auto front = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto found =
      order_ == Order::kDeadline
          ? std::lower_bound(front, entries_.end(), deadline,
                             [](const Entry& entry, TimePoint d) { return entry.deadline < d; })
          : std::find_if(front, entries_.end(), [&](const Entry& entry) { return entry.deadline >= deadline; });
  return static_cast<size_t>(found - front);
}

void Lane::erase(size_t position, size_t count) {
  if (position > 0) {
    const auto from = begin() + static_cast<std::ptrdiff_t>(position);
    entries_.erase(from, from + static_cast<std::ptrdiff_t>(count));
    return;
  }
  first_ += count;
  if (2 * first_ < entries_.size()) return;
  entries_.erase(entries_.begin(), begin());
  first_ = 0;
}

}  // namespace foliot
