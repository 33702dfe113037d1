#include "edge/requests/json_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "answer/inference/foreign_clients.h"
#include "edge/requests/json_elements.h"

namespace foliot {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// Of what an error quotes.
constexpr size_t kCellShownBytesMax = 64;
constexpr size_t kNamesShownMax = 16;

std::string shown_cell(std::string_view text) {
  return fmt::format("'{}'{}", text.substr(0, kCellShownBytesMax), text.size() > kCellShownBytesMax ? "..." : "");
}

std::string shown_cell(element value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return shown_cell(text);
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return simdjson::minify(value);
}

std::string kind_of(DataType type) {
  return type == DataType::kBytes ? "a string" : fmt::format("a number within {}", to_string(type));
}

// Gathers the rows of all inputs.
class TableRows {
 public:
  using Cells = std::vector<std::optional<element>>;  // by name, in the order of names()

  TableRows(std::string_view member, const ModelInfo& model) : member_(member), model_(model) {
    const TensorSpec& only = model.inputs.front();
    has_columns_ = model.inputs.size() == 1 && !only.labels.empty() && !only.bound;
    if (has_columns_) {
      names_.assign(only.labels.begin(), only.labels.end());
    } else {
      for (const TensorSpec& input : model.inputs) names_.emplace_back(input.name);
    }
    converted_.resize(names_.size());
    for (size_t i = 0; i < names_.size(); ++i) {
      inputs_.emplace_back(spec(i).type, converted_[i], takes_other_forms(model));
      index_[names_[i]] = i;
    }
  }

  const std::vector<std::string_view>& names() const { return names_; }
  // Whether these names can only be those of the values in a row of the one input, which then count by their order.
  bool takes_in_order(const std::vector<std::string_view>& names) const {
    return model_.inputs.size() == 1 && model_.inputs[0].shape.size() == 1 &&
           std::ranges::none_of(names, [&](std::string_view name) { return index_.contains(name); });
  }
  Cells no_cells() const { return Cells(names_.size()); }

  Status put(Cells& cells, std::string_view name, element value) const {
    const auto found = index_.find(name);
    if (found == index_.end()) {
      return error(fmt::format("has the column {}, which model '{}' does not have; it has {}", shown_cell(name),
                               model_.name, all_names()));
    }
    if (cells[found->second]) return error(fmt::format("has the column {} twice; leave one out", shown_cell(name)));
    cells[found->second] = value;
    return Status();
  }

  // A row by names. Errors: kInvalidArgument for a column that is missing, or a value.
  Status add_row(const Cells& cells) {
    const auto missing = std::ranges::find_if(cells, [](const auto& cell) { return !cell; });
    if (missing != cells.end()) {
      return error(fmt::format("lacks the column '{}'; model '{}' has {}", names_[missing - cells.begin()], model_.name,
                               all_names()));
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!inputs_[i].add(*cells[i])) return value_error(fmt::format("column '{}'", names_[i]), *cells[i], inputs_[i]);
    }
    ++rows_;
    return Status();
  }

  // A row of the only input.
  Status add_row(element row) {
    array values;
    if (has_columns_ && row.get(values) == simdjson::SUCCESS && values.size() == names_.size()) {
      return add_row(Cells(values.begin(), values.end()));
    }
    if (has_columns_) return error(fmt::format("must be a list of {} numbers, or an object of them", names_.size()));
    if (inputs_.size() != 1) {
      return error(fmt::format("is no object; model '{}' has the inputs {}: send an object with a value for each",
                               model_.name, all_names()));
    }
    if (!inputs_[0].add(row)) return value_error(fmt::format("input '{}'", model_.inputs[0].name), row, inputs_[0]);
    ++rows_;
    return Status();
  }

  Result<JsonTable> take() {
    if (rows_ == 0) return Status::invalid_argument(fmt::format("'{}' has no rows; send one at least", member_));
    if (!model_.batching && rows_ != 1) {
      return Status::invalid_argument(
          fmt::format("'{}' has {} rows, and model '{}' has no batch dimension: send one for each request", member_,
                      rows_, model_.name));
    }
    JsonTable table;
    if (has_columns_) {
      const TensorSpec& only = model_.inputs.front();
      table.converted.push_back(joined_columns(size_of(only.type)));
      table.inputs.push_back({.name = only.name,
                              .datatype = to_string(only.type),
                              .shape = {static_cast<int64_t>(rows_), static_cast<int64_t>(names_.size())},
                              .bytes = std::as_bytes(std::span(table.converted.back()))});
      return table;
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorSpec& spec = model_.inputs[i];
      table.inputs.push_back({.name = spec.name, .datatype = to_string(spec.type), .shape = shape_of(i), .bytes = {}});
      // A heap buffer stays where it is when it is moved; a short string's does not.
      converted_[i].reserve(sizeof(std::string));
    }
    table.converted = std::move(converted_);
    for (size_t i = 0; i < table.inputs.size(); ++i)
      table.inputs[i].bytes = std::as_bytes(std::span(table.converted[i]));
    return table;
  }

  Status error(std::string_view what) const {
    return Status::invalid_argument(fmt::format("{}[{}] {}", member_, rows_, what));
  }

 private:
  // Of one of names().
  const TensorSpec& spec(size_t i) const { return model_.inputs[has_columns_ ? 0 : i]; }

  std::string joined_columns(size_t element_bytes) const {
    std::string joined;
    joined.reserve(rows_ * converted_.size() * element_bytes);
    for (size_t row = 0; row < rows_; ++row) {
      for (const std::string& column : converted_) joined.append(column, row * element_bytes, element_bytes);
    }
    return joined;
  }

  Status value_error(std::string_view where, element value, const JsonElements& input) const {
    const DataType type = spec(static_cast<size_t>(&input - inputs_.data())).type;
    if (input.is_ragged() && !value.is_array()) {
      return error(fmt::format("has {} in {}, where the rows before it have a list", shown_cell(value), where));
    }
    if (input.is_ragged()) {
      return error(fmt::format("has another shape in {} than the rows before it; all rows must have one", where));
    }
    return error(fmt::format("has {} in {}, which must be {}",
                             input.refused() ? shown_cell(*input.refused()) : "a value", where, kind_of(type)));
  }

  // The shape of a value alone, which may lack or have a dimension of 1 at its end, as tables have it.
  Shape shape_of(size_t i) const {
    const Shape& wanted = model_.inputs[i].shape;
    Shape shape = inputs_[i].shape();
    if (shape.size() + 1 == wanted.size() && wanted.back() == 1) shape.push_back(1);
    if (shape.size() == wanted.size() + 1 && shape.back() == 1) shape.pop_back();
    if (model_.batching) shape.insert(shape.begin(), static_cast<int64_t>(rows_));
    return shape;
  }

  std::string all_names() const {
    const size_t count = std::min(names_.size(), kNamesShownMax);
    return fmt::format("'{}'{}", fmt::join(std::span(names_).first(count), "', '"),
                       count < names_.size() ? fmt::format(" and {} more", names_.size() - count) : "");
  }

  const std::string_view member_;
  const ModelInfo& model_;
  bool has_columns_ = false;  // of the one input, whose rows they are the numbers of
  std::vector<std::string_view> names_;
  std::map<std::string_view, size_t> index_;
  std::vector<std::string> converted_;
  std::vector<JsonElements> inputs_;
  size_t rows_ = 0;
};

Status wrong_form(std::string_view member, element value, std::string_view wanted) {
  return Status::invalid_argument(fmt::format("'{}' is {}; it must be {}", member, shown_cell(value), wanted));
}

Status read_rows(array rows, TableRows& table) {
  for (element row : rows) {
    object members;
    if (row.get(members) != simdjson::SUCCESS) {
      FOLIOT_RETURN_IF_ERROR(table.add_row(row));
      continue;
    }
    TableRows::Cells cells = table.no_cells();
    for (const auto& [name, value] : members) FOLIOT_RETURN_IF_ERROR(table.put(cells, name, value));
    FOLIOT_RETURN_IF_ERROR(table.add_row(cells));
  }
  return Status();
}

Status read_columns(std::string_view member, object columns, TableRows& table) {
  TableRows::Cells lists = table.no_cells();
  for (const auto& [name, values] : columns) FOLIOT_RETURN_IF_ERROR(table.put(lists, name, values));
  std::vector<array> values;
  std::vector<array::iterator> next;
  for (size_t i = 0; i < lists.size(); ++i) {
    array list;
    if (!lists[i] || lists[i]->get(list) != simdjson::SUCCESS) {
      return Status::invalid_argument(fmt::format(
          "'{}' has no list for the column '{}'; each has a value for every row", member, table.names()[i]));
    }
    if (!values.empty() && list.size() != values[0].size()) {
      return Status::invalid_argument(
          fmt::format("'{}' has {} rows in the column '{}' and {} in '{}'; send as many in each", member, list.size(),
                      table.names()[i], values[0].size(), table.names()[0]));
    }
    values.push_back(list);
    next.push_back(list.begin());
  }
  for (; !values.empty() && next[0] != values[0].end();) {
    TableRows::Cells cells;
    for (array::iterator& each : next) {
      cells.emplace_back(*each);
      ++each;
    }
    FOLIOT_RETURN_IF_ERROR(table.add_row(cells));
  }
  return Status();
}

Status read_split(std::string_view member, element value, TableRows& table) {
  array columns, data;
  if (value["data"].get(data) != simdjson::SUCCESS) {
    return wrong_form(member, value, R"(an object such as {"columns": ["a", "b"], "data": [[1, 2], [3, 4]]})");
  }
  element given;
  if (value["columns"].get(given) == simdjson::NO_SUCH_FIELD) return read_rows(data, table);
  if (given.get(columns) != simdjson::SUCCESS) {
    return Status::invalid_argument(
        fmt::format("'columns' of '{}' is {}; it must be a list of names", member, shown_cell(given)));
  }
  std::vector<std::string_view> names;
  for (element each : columns) {
    std::string_view name;
    if (each.get(name) != simdjson::SUCCESS) {
      return Status::invalid_argument(
          fmt::format("'columns' of '{}' has {}; names must be strings", member, shown_cell(each)));
    }
    if (std::ranges::find(names, name) != names.end()) {
      return Status::invalid_argument(fmt::format("'columns' of '{}' has {} twice", member, shown_cell(name)));
    }
    names.push_back(name);
  }
  const bool in_order = table.takes_in_order(names);
  for (element row : data) {
    array values;
    if (row.get(values) != simdjson::SUCCESS || values.size() != names.size()) {
      return table.error(fmt::format("of 'data' must be a list of {} values, as 'columns' has", names.size()));
    }
    if (in_order) {
      FOLIOT_RETURN_IF_ERROR(table.add_row(row));
      continue;
    }
    TableRows::Cells cells = table.no_cells();
    size_t i = 0;
    for (element each : values) FOLIOT_RETURN_IF_ERROR(table.put(cells, names[i++], each));
    FOLIOT_RETURN_IF_ERROR(table.add_row(cells));
  }
  return Status();
}

}  // namespace

Result<JsonTable> read_json_table(std::string_view member, element value, const ModelInfo& model) {
  for (const TensorSpec& input : model.inputs) {
    if (input.type != DataType::kFloat16 && input.type != DataType::kBfloat16) continue;
    return Status::invalid_argument(
        fmt::format("input '{}' is {}, which JSON does not have; send it as binary data to "
                    "/v2/models/{}/infer",
                    input.name, to_string(input.type), model.name));
  }
  TableRows table(member, model);
  object columns;
  array rows;
  if (member == "dataframe_split") {
    FOLIOT_RETURN_IF_ERROR(read_split(member, value, table));
  } else if (value.get(rows) == simdjson::SUCCESS) {
    FOLIOT_RETURN_IF_ERROR(read_rows(rows, table));
  } else if (member == "inputs" && value.get(columns) == simdjson::SUCCESS) {
    FOLIOT_RETURN_IF_ERROR(read_columns(member, columns, table));
  } else {
    return wrong_form(member, value, member == "inputs" ? "a list of rows, or an object of columns" : "a list of rows");
  }
  return table.take();
}

}  // namespace foliot
