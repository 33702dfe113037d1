// MappedRows: rows of float32 with keys, as a file that is mapped into memory, and checked when it is opened.
//
//   magic, columns, rows, checksum of all that follows   (8 bytes each, little-endian)
//   rows x keys x 8 bytes     the first key of a row is its id, ascending
//   up to a multiple of 64 bytes: zero
//   rows x padded_rows(columns) x 4 bytes     float32, those beyond the columns zero
//
// A file that was opened is replaced by renaming another, never written to.
//
// Threading: any; it does not change.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_MAPPED_ROWS_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_MAPPED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

// What rows are, for the file's format and its errors.
struct RowsFormat {
  uint64_t magic;
  size_t keys;        // of a row
  const char* table;  // "table of items"
  const char* row;    // "item"
  const char* value;  // "feature"
};

class MappedRows {
 public:
  // Errors: kNotFound; kInvalidArgument naming the file and what is wrong: damaged, columns not 1 to
  // kFeaturesMax, a value that is not finite, ids that are not ascending.
  static Result<std::unique_ptr<const MappedRows>> open(const std::filesystem::path& file, const RowsFormat& format);
  // Writes a file. `values`: of `columns` entries a row. Errors: as open(), and kInternal if it cannot be
  // written.
  static Status write(const std::filesystem::path& file, const RowsFormat& format, size_t columns,
                      std::span<const uint64_t> keys, std::span<const float> values);

  MappedRows(const MappedRows&) = delete;
  MappedRows& operator=(const MappedRows&) = delete;
  ~MappedRows();

  size_t columns() const { return columns_; }
  size_t width() const { return width_; }  // entries of a row
  size_t rows() const { return values_.size() / width_; }
  std::span<const uint64_t> keys() const { return keys_; }
  std::span<const float> values() const { return values_; }
  std::span<const float> row(size_t index) const { return values_.subspan(index * width_, width_); }
  // The row with this id; nullopt: there is none.
  std::optional<size_t> find(uint64_t id) const;
  // Of its content.
  uint64_t checksum() const { return checksum_; }

 private:
  MappedRows(std::span<std::byte> mapped, const RowsFormat& format) : mapped_(mapped), format_(format) {}
  // Empty: all is well.
  std::string read();
  uint64_t id(size_t row) const { return keys_[row * format_.keys]; }

  const std::span<std::byte> mapped_;
  const RowsFormat format_;
  size_t columns_ = 0;
  size_t width_ = 0;
  uint64_t checksum_ = 0;
  std::span<const uint64_t> keys_;
  std::span<const float> values_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_MAPPED_ROWS_H_
