// ItemFeatures: the features of items, f(x, theta): those of a table that a trainer wrote (ItemTable), or those that a
// model computed from what items are (ComputedItems).
//
// Threading: as its implementation says; reading by any thread.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_FEATURES_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_FEATURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace foliot {

// Items and their features, one row of `width` entries after the other.
struct ItemRows {
  std::span<const uint64_t> items;
  std::span<const float> values;
  size_t width = 0;

  std::span<const float> row(size_t index) const { return values.subspan(index * width, width); }
};

class ItemFeatures {
 public:
  virtual ~ItemFeatures() = default;

  virtual size_t features() const = 0;
  virtual size_t width() const = 0;  // entries of a row
  // width() entries, valid as long as this is; nullopt: the item is unknown.
  virtual std::optional<std::span<const float>> features_of(uint64_t item) const = 0;
  // Weights that follow from features of one checksum are the same.
  virtual uint64_t checksum() const = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_FEATURES_H_
