#include "answer/model_calls/adapted_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "answer/inference/foreign_clients.h"

namespace foliot {
namespace {

using Bytes = std::span<const std::byte>;

template <typename To, typename From>
bool holds(From value) {
  if constexpr (std::is_floating_point_v<To>) {
    const auto wide = static_cast<double>(value);
    return !std::isfinite(wide) || std::abs(wide) <= static_cast<double>(std::numeric_limits<To>::max());
  } else if constexpr (std::is_floating_point_v<From>) {
    // The largest whole numbers round up to a power of two as floating point.
    constexpr From kEnd = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    return value >= static_cast<From>(std::numeric_limits<To>::min()) && value < kEnd && std::trunc(value) == value;
  } else {
    return std::in_range<To>(value);
  }
}

// Calls visit(a number of the type that stands for it); false: there is none.
bool with_number_of(DataType type, const auto& visit) {
  switch (type) {
    case DataType::kBool:
    case DataType::kUint8: return visit(uint8_t());
    case DataType::kUint16: return visit(uint16_t());
    case DataType::kUint32: return visit(uint32_t());
    case DataType::kUint64: return visit(uint64_t());
    case DataType::kInt8: return visit(int8_t());
    case DataType::kInt16: return visit(int16_t());
    case DataType::kInt32: return visit(int32_t());
    case DataType::kInt64: return visit(int64_t());
    case DataType::kFloat32: return visit(float());
    case DataType::kFloat64: return visit(double());
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kBytes: break;
  }
  return false;
}

bool is_convertible(DataType type) {
  return with_number_of(type, [](auto) { return true; });
}

// Appends the elements as another type. `refused`: the first that the type does not hold.
bool convert(Bytes elements, DataType from, DataType to, std::string& bytes, std::string& refused) {
  return with_number_of(from, [&](auto source) {
    return with_number_of(to, [&](auto target) {
      const size_t count = elements.size() / sizeof(source);
      const size_t begin = bytes.size();
      bytes.resize(begin + count * sizeof(target));
      for (size_t i = 0; i < count; ++i) {
        std::memcpy(&source, elements.data() + i * sizeof(source), sizeof(source));
        if (!holds<decltype(target)>(source) || (to == DataType::kBool && source != 0 && source != 1)) {
          refused = fmt::format("{}", source);
          return false;
        }
        target = static_cast<decltype(target)>(source);
        std::memcpy(bytes.data() + begin + i * sizeof(target), &target, sizeof(target));
      }
      return true;
    });
  });
}

bool is_column(const TensorView& input) {
  return input.shape.size() == 1 || (input.shape.size() == 2 && input.shape[1] == 1);
}

class Adapting {
 public:
  Adapting(const ModelInfo& model, const std::vector<TensorView>& inputs) : model_(model), inputs_(inputs) {
    to_.converted.reserve(inputs.size() + 1);
  }

  Result<AdaptedInputs> run() {
    const TensorSpec& first = model_.inputs.front();
    const bool is_free = model_.from_framework || first.name == kUnnamedInput || !first.labels.empty();
    if (is_free && model_.inputs.size() == 1 && inputs_.size() > 1 && !first.bound &&
        first.shape == Shape{static_cast<int64_t>(inputs_.size())}) {
      FOLIOT_RETURN_IF_ERROR(join_columns(first));
      return std::move(to_);
    }
    const bool in_order = is_free && inputs_.size() == model_.inputs.size() &&
                          std::ranges::none_of(inputs_, [&](const TensorView& input) { return find(input.name); });
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorSpec* const spec = in_order ? &model_.inputs[i] : find(inputs_[i].name);
      TensorView& view = to_.views.emplace_back(inputs_[i]);
      if (spec == nullptr) continue;
      view.name = spec->name;
      if (spec->shape == Shape{1} && view.shape.size() == 1) view.shape.push_back(1);
      FOLIOT_RETURN_IF_ERROR(convert_numbers(*spec, view));
    }
    return std::move(to_);
  }

 private:
  const TensorSpec* find(std::string_view name) const {
    const auto spec = std::ranges::find(model_.inputs, name, &TensorSpec::name);
    return spec == model_.inputs.end() ? nullptr : &*spec;
  }
  static Status error(const TensorView& input, std::string_view what) {
    return Status::invalid_argument(fmt::format("input '{}' {}", input.name, what));
  }

  // The elements of a column, or tensor, as the declared type. What is no number is left to later checks.
  Status convert_numbers(const TensorSpec& spec, TensorView& view) {
    const std::optional<DataType> sent = parse_data_type(view.datatype);
    if (!sent || *sent == spec.type || !is_convertible(*sent) || !is_convertible(spec.type)) return Status();
    std::string refused;
    std::string& bytes = to_.converted.emplace_back();
    if (!convert(view.bytes, *sent, spec.type, bytes, refused)) {
      return error(view, fmt::format("has {}, which is not within {}", refused, to_string(spec.type)));
    }
    view.datatype = to_string(spec.type);
    view.bytes = std::as_bytes(std::span(bytes));
    return Status();
  }

  // One tensor for each column, as the rows of the only input.
  Status join_columns(const TensorSpec& spec) {
    const size_t columns = inputs_.size(), element_bytes = size_of(spec.type);
    const int64_t rows = inputs_.front().shape.empty() ? 0 : inputs_.front().shape.front();
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<size_t> places, places_of(spec));
    std::string joined;
    for (size_t i = 0; i < columns; ++i) {
      TensorView column = inputs_[i];
      FOLIOT_RETURN_IF_ERROR(convert_numbers(spec, column));
      if (column.datatype != to_string(spec.type)) {
        return error(column, fmt::format("is {}; a column of numbers is expected", column.datatype));
      }
      if (!is_column(column) || column.shape.front() != rows ||
          column.bytes.size() != static_cast<uint64_t>(rows) * element_bytes) {
        return error(column, fmt::format("has {} bytes and the shape {}; a column of {} rows is expected",
                                         column.bytes.size(), to_string(column.shape), rows));
      }
      joined.resize(column.bytes.size() * columns);
      for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
        std::memcpy(joined.data() + (row * columns + places[i]) * element_bytes,
                    column.bytes.data() + row * element_bytes, element_bytes);
      }
    }
    to_.converted.push_back(std::move(joined));
    to_.views.push_back({.name = spec.name,
                         .datatype = to_string(spec.type),
                         .shape = {rows, static_cast<int64_t>(columns)},
                         .bytes = std::as_bytes(std::span(to_.converted.back()))});
    return Status();
  }

  // Where in a row each of the inputs belongs.
  Result<std::vector<size_t>> places_of(const TensorSpec& spec) const {
    std::vector<size_t> places;
    const auto position = [&](std::string_view name) {
      return static_cast<size_t>(std::ranges::find(spec.labels, name) - spec.labels.begin());
    };
    const bool by_name = std::ranges::any_of(
        inputs_, [&](const TensorView& input) { return position(input.name) < spec.labels.size(); });
    for (const TensorView& input : inputs_) {
      const size_t place = by_name ? position(input.name) : places.size();
      if (by_name && place == spec.labels.size()) {
        return error(input, fmt::format("is no column of the model, whose first is '{}'", spec.labels.front()));
      }
      if (std::ranges::find(places, place) != places.end()) return error(input, "was sent twice");
      places.push_back(place);
    }
    return places;
  }

  const ModelInfo& model_;
  const std::vector<TensorView>& inputs_;
  AdaptedInputs to_;
};

}  // namespace

Result<AdaptedInputs> adapt_inputs(const ModelInfo& model, const std::vector<TensorView>& inputs) {
  return Adapting(model, inputs).run();
}

}  // namespace foliot
