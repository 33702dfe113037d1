// ComputedItems: the features that one version of a feature model computed, of the items that users observed: the
// weights of users follow from them.
//
// Threading: any. What was added does not change until it is removed; its place may then be that of another item.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_COMPUTED_ITEMS_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_COMPUTED_ITEMS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "answer/personal/items/item_features.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/mutex.h"

namespace foliot {

class ComputedItems : public ItemFeatures {
 public:
  // `features` of 1 to kFeaturesMax; `checksum` of the model, its version and the output.
  ComputedItems(size_t features, uint64_t checksum);

  size_t features() const override { return features_; }
  size_t width() const override { return width_; }
  std::optional<std::span<const float>> features_of(uint64_t item) const override;
  uint64_t checksum() const override { return checksum_; }

  // False: the item has none.
  bool copy(uint64_t item, std::span<float> features) const;
  // Of width() entries. Without effect if the item has some.
  void add(uint64_t item, std::span<const float> features);
  // REQUIRES: nothing reads what features_of() returned.
  void remove(uint64_t item);
  size_t size() const;

 private:
  const size_t features_;
  const size_t width_;
  const uint64_t checksum_;
  mutable SharedMutex mutex_;
  FlatMap<uint64_t, float*> by_item_ GUARDED_BY(mutex_);      // into the blocks
  std::deque<std::vector<float>> blocks_ GUARDED_BY(mutex_);  // of kBlockRows rows each, which do not move
  std::vector<float*> empty_rows_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_COMPUTED_ITEMS_H_
