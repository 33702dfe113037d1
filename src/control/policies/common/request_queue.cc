#include "control/policies/common/request_queue.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Entries of one block.
constexpr size_t kBlockMax = 256;

}  // namespace

RequestQueue::Entry RequestQueue::entry_of(const Request& request) const {
  const TimePoint order = order_ == Order::kDeadline ? request.deadline : request.arrival;
  return {{request.offline, order, request.arrival, request.sequence}, request.id, request.deadline};
}

const RequestQueue::Entry& RequestQueue::in_rest(size_t position) const {
  auto block = rest_.begin();
  for (; position >= block->size(); ++block) position -= block->size();
  return (*block)[position];
}

std::vector<RequestQueue::Block>::iterator RequestQueue::block_of(const Place& place) {
  const auto behind = std::ranges::upper_bound(rest_, place, {},
                                               [](const Block& block) -> const Place& { return block.front().place; });
  return behind - 1;
}

// ---- Adding ----

void RequestQueue::add(const Request& request) {
  const Entry entry = entry_of(request);
  if (entry.deadline.is_infinite()) ++(entry.place.offline ? offline_ : best_effort_);
  beyond_front(entry.place) ? add_to_rest(entry) : add_to_front(entry);
}

// A block that is full is halved, but for what only follows all others: that begins a
// new one, so blocks that are filled in order are full.
void RequestQueue::add_to_front(const Entry& entry) {
  const bool follows = front_size() == 0 || entries_.back().place < entry.place;
  entries_.insert(
      follows ? entries_.end() : std::ranges::upper_bound(begin(), entries_.end(), entry.place, {}, &Entry::place),
      entry);
  if (front_size() <= kBlockMax) return;
  const size_t moved = follows && rest_.empty() ? 1 : front_size() / 2;
  const auto from = entries_.end() - static_cast<std::ptrdiff_t>(moved);
  rest_.emplace(rest_.begin(), from, entries_.end());
  rest_size_ += moved;
  entries_.erase(from, entries_.end());
}

void RequestQueue::add_to_rest(const Entry& entry) {
  const auto block = block_of(entry.place);
  const bool follows = block->back().place < entry.place;
  block->insert(follows ? block->end() : std::ranges::upper_bound(*block, entry.place, {}, &Entry::place), entry);
  ++rest_size_;
  if (block->size() <= kBlockMax) return;
  const size_t moved = follows && block + 1 == rest_.end() ? 1 : block->size() / 2;
  const auto from = block->end() - static_cast<std::ptrdiff_t>(moved);
  Block next(from, block->end());
  block->erase(from, block->end());
  rest_.insert(block + 1, std::move(next));
}

// ---- Finding ----

size_t RequestQueue::find_due_from(TimePoint deadline) const {
  size_t position = 0;
  const auto find = [&](Block::const_iterator begin, Block::const_iterator end) {
    const auto found = order_ == Order::kDeadline
                           ? std::ranges::lower_bound(begin, end, deadline, {}, &Entry::deadline)
                           : std::find_if(begin, end, [&](const Entry& entry) { return entry.deadline >= deadline; });
    position += static_cast<size_t>(found - begin);
    return found != end;
  };
  const auto front = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
  if (find(front, entries_.end())) return position;
  for (const Block& block : rest_) {
    if (order_ == Order::kDeadline && block.back().deadline < deadline) {
      position += block.size();
    } else if (find(block.begin(), block.end())) {
      return position;
    }
  }
  return position;
}

// ---- Removing ----

void RequestQueue::remove(const Request& request) {
  const Place place = entry_of(request).place;
  const bool beyond = beyond_front(place);
  const auto block = beyond ? block_of(place) : rest_.begin();
  const auto begin = beyond ? block->begin() : this->begin();
  const auto end = beyond ? block->end() : entries_.end();
  const auto found = std::ranges::lower_bound(begin, end, place, {}, &Entry::place);
  if (found == end || found->place != place) return;
  size_t position = static_cast<size_t>(found - begin);
  if (beyond) position += front_size();
  for (auto before = rest_.begin(); before < block; ++before) position += before->size();
  erase(position, 1);
}

void RequestQueue::erase(size_t position, size_t count) {
  FOLIOT_CHECK(position + count <= size());
  const size_t beyond = position + count <= front_size() ? 0 : position + count - std::max(position, front_size());
  if (beyond > 0) erase_from_rest(std::max(position, front_size()) - front_size(), beyond);
  if (count > beyond) erase_from_front(position, count - beyond);
  if (front_size() > 0 || rest_.empty()) return;
  entries_ = std::move(rest_.front());
  first_ = 0;
  rest_size_ -= entries_.size();
  rest_.erase(rest_.begin());
}

void RequestQueue::discount(Block::const_iterator from, Block::const_iterator to) {
  for (; from != to; ++from) {
    if (from->deadline.is_infinite()) --(from->place.offline ? offline_ : best_effort_);
  }
}

void RequestQueue::erase_from_front(size_t position, size_t count) {
  const auto from = begin() + static_cast<std::ptrdiff_t>(position);
  const auto to = from + static_cast<std::ptrdiff_t>(count);
  discount(from, to);
  if (position > 0) {
    entries_.erase(from, to);
    return;
  }
  first_ += count;
  if (2 * first_ < entries_.size()) return;
  entries_.erase(entries_.begin(), begin());
  first_ = 0;
}

void RequestQueue::erase_from_rest(size_t position, size_t count) {
  auto block = rest_.begin();
  for (; position >= block->size(); ++block) position -= block->size();
  for (; count > 0; position = 0) {
    const size_t here = std::min(count, block->size() - position);
    const auto from = block->begin() + static_cast<std::ptrdiff_t>(position);
    const auto to = from + static_cast<std::ptrdiff_t>(here);
    discount(from, to);
    block->erase(from, to);
    count -= here;
    rest_size_ -= here;
    block = block->empty() ? rest_.erase(block) : block + 1;
  }
}

}  // namespace foliot
