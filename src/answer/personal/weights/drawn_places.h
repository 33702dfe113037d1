// DrawnPlaces: which places of answers were drawn for the validation pool, so that the observation that
// follows can be recognised. Keeps the last kPlacesMax; each is taken once.
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_DRAWN_PLACES_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_DRAWN_PLACES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/flat_map.h"
#include "foundation/base/hash.h"

namespace foliot {

class DrawnPlaces {
 public:
  static constexpr size_t kPlacesMax = 65536;

  void add(uint64_t query, uint64_t user, uint64_t item, double probability) {
    const uint64_t key = key_of(query, user, item);
    if (!probabilities_.insert(key, static_cast<float>(probability))) return;
    if (order_.size() < kPlacesMax) return order_.push_back(key);
    probabilities_.erase(order_[oldest_]);
    order_[oldest_] = key;
    oldest_ = (oldest_ + 1) % kPlacesMax;
  }
  // The probability; 0: it is none of them.
  float take(uint64_t query, uint64_t user, uint64_t item) {
    const uint64_t key = key_of(query, user, item);
    const float* const found = probabilities_.find(key);
    const float probability = found == nullptr ? 0 : *found;
    if (found != nullptr) probabilities_.erase(key);
    return probability;
  }
  size_t size() const { return probabilities_.size(); }

 private:
  static uint64_t key_of(uint64_t query, uint64_t user, uint64_t item) {
    const std::array<uint64_t, 3> parts = {query, user, item};
    return hash64(std::as_bytes(std::span(parts)));
  }
  FlatMap<uint64_t, float> probabilities_;
  std::vector<uint64_t> order_;
  size_t oldest_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_DRAWN_PLACES_H_
