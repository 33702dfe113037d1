#include "sched/clockwork/lane.h"

#include <algorithm>

namespace foliot::clockwork {
namespace {

auto iterator_at(std::deque<Lane::Entry>& entries, size_t position) {
  return entries.begin() + static_cast<std::ptrdiff_t>(position);
}

}  // namespace

// Ids grow with arrival, so equal deadlines stay in the order of arrival.
void Lane::add(const Request& request) {
  const Entry entry{request.deadline, request.id};
  if (entries_.empty() || entries_.back() < entry) {
    entries_.push_back(entry);
  } else {
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry), entry);
  }
}

void Lane::remove(const Request& request) {
  const Entry entry{request.deadline, request.id};
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), entry);
  if (found != entries_.end() && *found == entry) entries_.erase(found);
}

size_t Lane::first_due_from(TimePoint deadline) const {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), deadline,
                                      [](const Entry& entry, TimePoint d) { return entry.deadline < d; });
  return static_cast<size_t>(found - entries_.begin());
}

void Lane::erase(size_t position, size_t count) {
  entries_.erase(iterator_at(entries_, position), iterator_at(entries_, position + count));
}

}  // namespace foliot::clockwork
