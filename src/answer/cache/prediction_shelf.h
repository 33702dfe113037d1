// PredictionShelf: predictions by their key, within a limit of bytes. Where there is no room
// for another, those go that were not found since the last look at them, in the order in which
// they came (CLOCK).
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_CACHE_PREDICTION_SHELF_H_
#define FOLIOT_ANSWER_CACHE_PREDICTION_SHELF_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "answer/cache/prediction_key.h"
#include "answer/inference/prediction.h"

namespace foliot {

class PredictionShelf {
 public:
  explicit PredictionShelf(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  std::shared_ptr<const Prediction> find(const PredictionKey& key);  // null: it is not here
  // Without effect if it is here, or takes more than half of all bytes.
  void insert(const PredictionKey& key, std::shared_ptr<const Prediction> prediction);

  uint64_t bytes() const { return bytes_; }
  size_t size() const { return by_key_.size(); }
  // Predictions that went for others, so far.
  uint64_t evictions() const { return evictions_; }

 private:
  struct Entry {
    PredictionKey key;
    std::shared_ptr<const Prediction> prediction;
    size_t bytes = 0;
    bool found = false;  // since the last look
  };
  void make_room(size_t bytes);

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  uint64_t evictions_ = 0;
  std::list<Entry> entries_;  // the next to be looked at first
  std::unordered_map<PredictionKey, std::list<Entry>::iterator, Hash128Hash> by_key_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_CACHE_PREDICTION_SHELF_H_
