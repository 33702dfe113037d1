// KnownItems: what the items are that users observed, where a model computes their features: the input of each, from
// which another version of that model computes them anew.
//
// An item is claimed while an observation of it is on its way to the disk, kept once it is there, and used by each
// observation that a user has of it. It has one input: another one for the same item is refused. It leaves with the
// last observation of it, unless it is claimed: what claims it is on the way to the disk without its input.
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_KNOWN_ITEMS_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_KNOWN_ITEMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/flat_map.h"
#include "foundation/base/status.h"

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
  // `input` may be null for an item that is kept. Each needs a release(). Errors: kNotFound if it is null and the item
  // is not kept, kInvalidArgument if the item has another input, kResourceExhausted over the limit.
  Status claim(uint64_t item, const ItemInput& input);
  // Replaces the input that it had: users who observed it with that are gone.
  void keep(uint64_t item, ItemInput input);
  // By an observation of it, whether it is kept or not.
  void use(uint64_t item);
  // REQUIRES: a claim() or use() before. True: the item was kept and has left.
  bool release(uint64_t item);
  bool stop_using(uint64_t item);
  // Those that are kept and neither used nor claimed leave.
  void remove_unused();

  // Of those that are kept: they stay where they are. One that leaves makes a place empty, for one that comes.
  size_t places() const { return places_.size(); }
  // nullopt: the place is empty.
  std::optional<KnownItem> at(size_t place) const;
  bool has_kept() const { return places_.size() > empty_places_.size(); }
  // Those that are claimed, too, by item.
  std::vector<KnownItem> all() const;
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Entry {
    ItemInput input{};       // null: neither kept nor claimed
    uint32_t place = kNone;  // if it is kept
    uint32_t claims = 0;
    uint64_t uses = 0;
  };
  // After a release or an end of use.
  bool settle(uint64_t item);

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  FlatMap<uint64_t, Entry> entries_;
  std::vector<std::optional<uint64_t>> places_;
  std::vector<uint32_t> empty_places_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_KNOWN_ITEMS_H_
