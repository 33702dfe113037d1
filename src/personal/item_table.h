// ItemTable: the materialised features of items, f(x, theta): a file that is mapped into memory, and
// checked when it is opened.
//
//   "folitems", features, items, checksum of all that follows   (8 bytes each, little-endian)
//   items x 8 bytes     their ids, ascending
//   up to a multiple of 64 bytes: zero
//   items x padded_rows(features) x 4 bytes     float32, those beyond the features zero
//
// A file that a table was opened from is replaced by renaming another, never written to.
//
// Threading: any; it does not change.
#ifndef FOLIOT_PERSONAL_ITEM_TABLE_H_
#define FOLIOT_PERSONAL_ITEM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"

namespace foliot {

class ItemTable {
 public:
  // Errors: kNotFound; kInvalidArgument naming the file and what is wrong: damaged, features not 1 to
  // kFeaturesMax, a value that is not finite, ids that are not ascending.
  static Result<std::shared_ptr<const ItemTable>> open(const std::filesystem::path& file);
  // Writes a file. `rows`: of `features` entries each. Errors: as open(), and kInternal if it cannot be
  // written.
  static Status write(const std::filesystem::path& file, size_t features, std::span<const uint64_t> items,
                      std::span<const float> rows);

  ItemTable(const ItemTable&) = delete;
  ItemTable& operator=(const ItemTable&) = delete;
  ~ItemTable();

  size_t features() const { return features_; }
  size_t width() const { return width_; }  // entries of a row
  std::span<const uint64_t> items() const { return items_; }
  // Of all items, in the order of items().
  std::span<const float> rows() const { return rows_; }
  std::span<const float> row(size_t index) const { return rows_.subspan(index * width_, width_); }
  // nullopt: it is unknown.
  std::optional<size_t> find(uint64_t item) const;
  // Of its content.
  uint64_t checksum() const { return checksum_; }

 private:
  explicit ItemTable(std::span<std::byte> mapped) : mapped_(mapped) {}
  // Empty: all is well.
  std::string read();

  const std::span<std::byte> mapped_;
  size_t features_ = 0;
  size_t width_ = 0;
  uint64_t checksum_ = 0;
  std::span<const uint64_t> items_;
  std::span<const float> rows_;
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_ITEM_TABLE_H_
