#include "answer/personal/items/item_table.h"

namespace foliot {
namespace {

constexpr RowsFormat kItemsFormat = {.magic = 0x736d657469'6c6f66,
                                     .keys = 1,
                                     .table = "table of items",
                                     .row = "item",
                                     .value = "feature"};  // "folitems"

}  // namespace

Result<std::shared_ptr<const ItemTable>> ItemTable::open(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<const MappedRows> rows, MappedRows::open(file, kItemsFormat));
  return std::shared_ptr<const ItemTable>(new ItemTable(std::move(rows)));
}

Status ItemTable::write(const std::filesystem::path& file, size_t features, std::span<const uint64_t> items,
                        std::span<const float> rows) {
  return MappedRows::write(file, kItemsFormat, features, items, rows);
}

}  // namespace foliot
