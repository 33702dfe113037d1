#include "edge/requests/json_elements.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

// Which Triton and its clients write all the same, and the number that each is.
constexpr std::pair<std::string_view, double> kNotFinite[] = {
    {"NaN", std::numeric_limits<double>::quiet_NaN()},  {"Infinity", std::numeric_limits<double>::infinity()},
    {"Inf", std::numeric_limits<double>::infinity()},   {"-Infinity", -std::numeric_limits<double>::infinity()},
    {"-Inf", -std::numeric_limits<double>::infinity()},
};

// As a string, as protobuf's JSON writes them, or from quote_not_finite().
bool get_not_finite(element value, double& number) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return false;
  const auto found = std::ranges::find(kNotFinite, text, [](const auto& named) { return named.first; });
  if (found == std::end(kNotFinite)) return false;
  number = found->second;
  return true;
}

template <typename T>
bool get_number(element value, T& number) {
  if constexpr (std::is_floating_point_v<T>) {
    double wide;
    if (get_not_finite(value, wide)) {
      number = static_cast<T>(wide);
      return true;
    }
    if (value.get(wide) != simdjson::SUCCESS) return false;
    number = static_cast<T>(wide);
    return std::isfinite(number);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    Wide wide;
    if (value.get(wide) != simdjson::SUCCESS) return false;
    number = static_cast<T>(wide);
    return wide >= Wide{std::numeric_limits<T>::min()} && wide <= Wide{std::numeric_limits<T>::max()};
  }
}

bool get_bool(element value, uint8_t& flag) {
  bool truth;
  if (value.get(truth) == simdjson::SUCCESS) {
    flag = truth ? 1 : 0;
    return true;
  }
  return get_number(value, flag) && flag <= 1;
}

}  // namespace

std::string quote_not_finite(std::string_view json) {
  std::string quoted;
  size_t copied = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') in_string = !in_string;
    if (in_string) {
      if (json[i] == '\\') ++i;
      continue;
    }
    if (json[i] != 'N' && json[i] != 'I' && json[i] != '-') continue;
    const auto begins = [&](const auto& named) { return json.substr(i).starts_with(named.first); };
    const auto found = std::ranges::find_if(kNotFinite, begins);
    if (found == std::end(kNotFinite)) continue;
    quoted.append(json.substr(copied, i - copied)).append(1, '"').append(found->first).append(1, '"');
    copied = i + found->first.size();
    i = copied - 1;
  }
  return copied == 0 ? std::string() : quoted.append(json.substr(copied));
}

template <typename T, typename Get>
bool JsonElements::add_as(element value, Get get) {
  const auto append = [&](element each) {
    T number;
    if (std::is_floating_point_v<T> && takes_null_ && each.is_null()) {
      number = std::numeric_limits<T>::quiet_NaN();
      has_nulls_ = true;
    } else if (!get(each, number)) {
      return false;
    }
    char raw[sizeof(T)];
    std::memcpy(raw, &number, sizeof(T));
    bytes_.append(raw, sizeof(T));
    return true;
  };
  return visit(value, append, 0);
}

// As the protocol's binary data has them: the length of each, then its bytes.
bool JsonElements::add_string(element value) {
  const auto append = [&](element each) {
    std::string_view text;
    if (each.get(text) != simdjson::SUCCESS) return false;
    append_string(bytes_, text);
    return true;
  };
  return visit(value, append, 0);
}

bool JsonElements::add(element value) {
  switch (type_) {
    case DataType::kBool: return add_as<uint8_t>(value, get_bool);
    case DataType::kUint8: return add_as<uint8_t>(value, get_number<uint8_t>);
    case DataType::kUint16: return add_as<uint16_t>(value, get_number<uint16_t>);
    case DataType::kUint32: return add_as<uint32_t>(value, get_number<uint32_t>);
    case DataType::kUint64: return add_as<uint64_t>(value, get_number<uint64_t>);
    case DataType::kInt8: return add_as<int8_t>(value, get_number<int8_t>);
    case DataType::kInt16: return add_as<int16_t>(value, get_number<int16_t>);
    case DataType::kInt32: return add_as<int32_t>(value, get_number<int32_t>);
    case DataType::kInt64: return add_as<int64_t>(value, get_number<int64_t>);
    case DataType::kFloat32: return add_as<float>(value, get_number<float>);
    case DataType::kFloat64: return add_as<double>(value, get_number<double>);
    case DataType::kBytes: return add_string(value);
    case DataType::kFloat16:
    case DataType::kBfloat16: break;
  }
  return false;
}

bool JsonElements::visit(element value, const auto& append, size_t depth) {
  if (levels_.size() == depth) levels_.emplace_back();
  array nested;
  const bool is_list = value.get(nested) == simdjson::SUCCESS;
  (is_list ? levels_[depth].has_lists : levels_[depth].has_elements) = true;
  is_ragged_ = is_ragged_ || (levels_[depth].has_lists && levels_[depth].has_elements);
  if (is_ragged_) return false;
  if (!is_list) {
    if (append(value)) return true;
    refused_ = value;
    return false;
  }
  size_t length = 0;
  for (element each : nested) {
    ++length;
    if (!visit(each, append, depth + 1)) return false;
  }
  Level& level = levels_[depth];
  if (!level.length) level.length = length;
  is_ragged_ = *level.length != length;
  return !is_ragged_;
}

Shape JsonElements::shape() const {
  Shape shape;
  for (const Level& level : levels_) {
    if (level.length) shape.push_back(static_cast<int64_t>(*level.length));
  }
  return shape;
}

}  // namespace foliot
