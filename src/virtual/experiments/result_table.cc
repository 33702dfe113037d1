#include "virtual/experiments/result_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

bool agrees(const ResultTable::Row& row, const ResultTable::Row& where) {
  return std::all_of(where.items().begin(), where.items().end(),
                     [&](const auto& wanted) { return row.at(wanted.key()) == wanted.value(); });
}

std::string cell(const ResultTable::Row& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

void ResultTable::add(Row row) {
  FOLIOT_CHECK(rows_.empty() || rows_.front().size() == row.size());
  rows_.push_back(std::move(row));
}

double ResultTable::value(const Row& where, const std::string& column) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return agrees(row, where); });
  if (found == rows_.end() || !found->at(column).is_number()) return std::numeric_limits<double>::quiet_NaN();
  return found->at(column).get<double>();
}

std::string ResultTable::to_csv() const {
  if (rows_.empty()) return "";
  std::string csv;
  for (const auto& [column, value] : rows_.front().items()) csv += (csv.empty() ? "" : ",") + column;
  for (const Row& row : rows_) {
    std::string line;
    for (const auto& [column, value] : row.items()) line += (line.empty() ? "\n" : ",") + cell(value);
    csv += line;
  }
  return csv + "\n";
}

}  // namespace foliot
