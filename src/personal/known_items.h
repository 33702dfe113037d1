// KnownItems: what the items are that users observed, where a model computes their features: the input of each, from
// which another version of that model computes them anew.
//
// An item is claimed while an observation of it is on its way to the disk, and kept once it is there. It has one input:
// another one for the same item is refused.
//
// Threading: not thread-safe.
#ifndef FOLIOT_PERSONAL_KNOWN_ITEMS_H_
#define FOLIOT_PERSONAL_KNOWN_ITEMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "base/status.h"

namespace foliot {

// As item_input.h encodes it.
using ItemInput = std::shared_ptr<const std::string>;

struct KnownItem {
  uint64_t item = 0;
  ItemInput input;
};

class KnownItems {
 public:
  // Of all inputs together, of those that are claimed too.
  explicit KnownItems(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // null: it is not kept.
  ItemInput find(uint64_t item) const;
  // Each needs a release(). Errors: kInvalidArgument if the item has another input, kResourceExhausted over the limit.
  Status claim(uint64_t item, const ItemInput& input);
  void release(uint64_t item);
  // Without effect if it is kept.
  void keep(uint64_t item, ItemInput input);

  // Those that are kept, in the order in which they came.
  const std::vector<KnownItem>& kept() const { return kept_; }
  // Those that are claimed, too, by item.
  std::vector<KnownItem> all() const;
  uint64_t bytes() const { return bytes_; }

 private:
  struct Claim {
    ItemInput input{};
    size_t count = 0;
  };
  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  std::vector<KnownItem> kept_;
  FlatMap<uint64_t, size_t> by_item_;  // places in kept_
  FlatMap<uint64_t, Claim> claims_;
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_KNOWN_ITEMS_H_
