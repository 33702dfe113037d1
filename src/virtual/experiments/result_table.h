// ResultTable: the results of an experiment, row by row, for CSV and JSON.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_RESULT_TABLE_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_RESULT_TABLE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foliot {

class ResultTable {
 public:
  // An object: the value of each column. null: there is none.
  using Row = nlohmann::ordered_json;

  // REQUIRES: the same columns in every row.
  void add(Row row);
  const std::vector<Row>& rows() const { return rows_; }

  // The number in `column` of the one row that agrees with `where`; NaN if there is
  // no such row, or no number.
  double value(const Row& where, const std::string& column) const;

  // A line of column names, then a line per row.
  std::string to_csv() const;

 private:
  std::vector<Row> rows_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_RESULT_TABLE_H_
