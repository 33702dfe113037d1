#include "answer/cache/prediction_shelf.h"

#include <utility>

namespace foliot {
namespace {

// Of the list, the map and the allocator, for each prediction.
constexpr size_t kEntryBytes = 160;

}  // namespace

std::shared_ptr<const Prediction> PredictionShelf::find(const PredictionKey& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  found->second->found = true;
  return found->second->prediction;
}

void PredictionShelf::insert(const PredictionKey& key, std::shared_ptr<const Prediction> prediction) {
  const size_t bytes = prediction->byte_size() + kEntryBytes;
  if (bytes > bytes_max_ / 2 || by_key_.contains(key)) return;
  make_room(bytes);
  entries_.push_back({key, std::move(prediction), bytes});
  by_key_.emplace(key, std::prev(entries_.end()));
  bytes_ += bytes;
}

void PredictionShelf::make_room(size_t bytes) {
  while (bytes_ + bytes > bytes_max_) {
    Entry& next = entries_.front();
    if (std::exchange(next.found, false)) {
      entries_.splice(entries_.end(), entries_, entries_.begin());
      continue;
    }
    bytes_ -= next.bytes;
    by_key_.erase(next.key);
    entries_.pop_front();
    ++evictions_;
  }
}

}  // namespace foliot
