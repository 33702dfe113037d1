// ListCache: the best items of users, by all that they follow from, within a limit of bytes; those that were found
// lately stay (answer/cache/prediction_shelf.h). For explorations that draw nothing: a list of Thompson is drawn anew
// each time.
//
// Single predictions are not kept: a product of two vectors costs less than a lookup.
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_LIST_CACHE_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_LIST_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "answer/cache/prediction_shelf.h"
#include "answer/personal/items/top_k.h"
#include "foundation/base/hash.h"

namespace foliot {

class ListCache {
 public:
  // What a list follows from.
  struct Source {
    uint64_t user = 0;
    uint64_t first_number = 0;  // of the user (ObservationTable)
    uint64_t observations = 0;
    uint64_t version = 0;  // its fingerprint
    uint64_t k = 0;
    std::span<const float> weights;
  };
  // 0 bytes: keeps none.
  explicit ListCache(uint64_t bytes_max) : shelf_(bytes_max) {}

  Hash128 key(const Source& source) const;
  std::optional<std::vector<ScoredItem>> find(const Hash128& key);
  void insert(const Hash128& key, const std::vector<ScoredItem>& list);

 private:
  const HashSecret secret_;
  PredictionShelf shelf_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_LIST_CACHE_H_
