// FeatureCache: features of items that models computed, within a limit of bytes; those that were found lately stay
// (answer/cache/prediction_shelf.h). Of an input and a version of its model: another version finds none of them.
//
// Threading: any.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_CACHE_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "answer/cache/prediction_shelf.h"
#include "foundation/base/hash.h"
#include "foundation/base/mutex.h"

namespace foliot {

class FeatureCache {
 public:
  explicit FeatureCache(uint64_t bytes_max) : shelf_(bytes_max) {}

  // `version`: checksum of the model that computes them.
  Hash128 key(uint64_t version, std::string_view input) const {
    StreamHash hash(secret_);
    hash.update(std::as_bytes(std::span(&version, 1)));
    hash.update(std::as_bytes(std::span(input)));
    return hash.digest();
  }
  // Appends them to `rows`. False: they are not here.
  bool find(const Hash128& key, std::vector<float>& rows);
  void insert(const Hash128& key, std::span<const float> features);

  uint64_t bytes() const;

 private:
  const HashSecret secret_;
  mutable Mutex mutex_;
  PredictionShelf shelf_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_CACHE_H_
