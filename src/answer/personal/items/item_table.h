// ItemTable: the materialised features of items, f(x, theta): a file of rows with the magic "folitems"
// and the item's id as key (mapped_rows.h).
//
// Threading: any; it does not change.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_TABLE_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "answer/personal/items/item_features.h"
#include "answer/personal/weights/mapped_rows.h"
#include "foundation/base/status.h"

namespace foliot {

class ItemTable : public ItemFeatures {
 public:
  // Errors: as MappedRows.
  static Result<std::shared_ptr<const ItemTable>> open(const std::filesystem::path& file);
  // `rows`: of `features` entries each.
  static Status write(const std::filesystem::path& file, size_t features, std::span<const uint64_t> items,
                      std::span<const float> rows);

  size_t features() const override { return rows_->columns(); }
  size_t width() const override { return rows_->width(); }
  std::optional<std::span<const float>> features_of(uint64_t item) const override {
    const std::optional<size_t> place = find(item);
    return place ? std::optional(row(*place)) : std::nullopt;
  }
  std::span<const uint64_t> items() const { return rows_->keys(); }
  // Of all items, in the order of items().
  std::span<const float> rows() const { return rows_->values(); }
  std::span<const float> row(size_t index) const { return rows_->row(index); }
  // nullopt: it is unknown.
  std::optional<size_t> find(uint64_t item) const { return rows_->find(item); }
  // Of its content.
  uint64_t checksum() const override { return rows_->checksum(); }
  ItemRows all() const { return {items(), rows(), width()}; }

 private:
  explicit ItemTable(std::unique_ptr<const MappedRows> rows) : rows_(std::move(rows)) {}
  const std::unique_ptr<const MappedRows> rows_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_ITEM_TABLE_H_
