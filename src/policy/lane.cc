#include "policy/lane.h"

#include <algorithm>

namespace foliot {
namespace {

auto iterator_at(std::deque<Lane::Entry>& entries, size_t position) {
  return entries.begin() + static_cast<std::ptrdiff_t>(position);
}

}  // namespace

Lane::Entry Lane::entry_of(const Request& request) const {
  return {order_ == Order::kDeadline ? request.deadline : request.arrival, request.id, request.deadline};
}

// Ids grow with arrival, so equal deadlines stay in the order of arrival.
void Lane::add(const Request& request) {
  const Entry entry = entry_of(request);
  if (entries_.empty() || entries_.back() < entry) {
    entries_.push_back(entry);
  } else {
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry), entry);
  }
}

void Lane::remove(const Request& request) {
  const Entry entry = entry_of(request);
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), entry);
  if (found != entries_.end() && *found == entry) entries_.erase(found);
}

size_t Lane::first_due_from(TimePoint deadline) const {
  if (entries_.empty() || entries_.front().deadline >= deadline) return 0;
  if (order_ == Order::kDeadline && entries_.back().deadline < deadline) return entries_.size();
  const auto found = order_ == Order::kDeadline
                         ? std::lower_bound(entries_.begin(), entries_.end(), deadline,
                                            [](const Entry& entry, TimePoint d) { return entry.deadline < d; })
                         : std::find_if(entries_.begin(), entries_.end(),
                                        [&](const Entry& entry) { return entry.deadline >= deadline; });
  return static_cast<size_t>(found - entries_.begin());
}

void Lane::erase(size_t position, size_t count) {
  entries_.erase(iterator_at(entries_, position), iterator_at(entries_, position + count));
}

}  // namespace foliot
