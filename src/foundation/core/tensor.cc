#include "foundation/core/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>

#include "foundation/base/check.h"

namespace foliot {
namespace {

struct TypeRow {
  DataType type;
  uint64_t size;
  std::string_view name;
};

// In the order of the enumeration.
constexpr std::array kTypes{
    TypeRow{DataType::kBool, 1, "BOOL"},     TypeRow{DataType::kUint8, 1, "UINT8"},
    TypeRow{DataType::kUint16, 2, "UINT16"}, TypeRow{DataType::kUint32, 4, "UINT32"},
    TypeRow{DataType::kUint64, 8, "UINT64"}, TypeRow{DataType::kInt8, 1, "INT8"},
    TypeRow{DataType::kInt16, 2, "INT16"},   TypeRow{DataType::kInt32, 4, "INT32"},
    TypeRow{DataType::kInt64, 8, "INT64"},   TypeRow{DataType::kFloat16, 2, "FP16"},
    TypeRow{DataType::kBfloat16, 2, "BF16"}, TypeRow{DataType::kFloat32, 4, "FP32"},
    TypeRow{DataType::kFloat64, 8, "FP64"},  TypeRow{DataType::kBytes, 0, "BYTES"},
};

const TypeRow& row(DataType type) {
  const auto index = static_cast<size_t>(type);
  FOLIOT_CHECK(index < kTypes.size() && kTypes[index].type == type);
  return kTypes[index];
}

}  // namespace

uint64_t size_of(DataType type) {
  FOLIOT_CHECK(type != DataType::kBytes);
  return row(type).size;
}
std::string_view to_string(DataType type) { return row(type).name; }

std::optional<DataType> parse_data_type(std::string_view name) {
  for (const TypeRow& candidate : kTypes)
    if (candidate.name == name) return candidate.type;
  return std::nullopt;
}

uint64_t element_count(const Shape& shape) {
  uint64_t count = 1;
  for (int64_t extent : shape) {
    FOLIOT_CHECK(extent >= 0);
    count *= static_cast<uint64_t>(extent);
  }
  return count;
}

uint64_t byte_size(DataType type, const Shape& shape) { return element_count(shape) * size_of(type); }

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

Status check_labels(const std::vector<std::string>& labels) {
  if (labels.size() > kLabelsMax) {
    return Status::invalid_argument(fmt::format("{} classes have names, at most {} may", labels.size(), kLabelsMax));
  }
  for (const std::string& label : labels) {
    if (label.size() <= kLabelBytesMax) continue;
    return Status::invalid_argument(
        fmt::format("the name of a class has {} bytes, at most {} are possible", label.size(), kLabelBytesMax));
  }
  return {};
}

void fill(std::span<std::byte> elements, DataType type, double value) {
  const auto with = [&](auto element) {
    FOLIOT_CHECK(elements.size() % sizeof(element) == 0);
    for (size_t at = 0; at < elements.size(); at += sizeof(element)) {
      std::memcpy(elements.data() + at, &element, sizeof(element));
    }
  };
  switch (type) {
    case DataType::kBool: return with(static_cast<uint8_t>(value != 0));
    case DataType::kUint8: return with(static_cast<uint8_t>(value));
    case DataType::kUint16: return with(static_cast<uint16_t>(value));
    case DataType::kUint32: return with(static_cast<uint32_t>(value));
    case DataType::kUint64: return with(static_cast<uint64_t>(value));
    case DataType::kInt8: return with(static_cast<int8_t>(value));
    case DataType::kInt16: return with(static_cast<int16_t>(value));
    case DataType::kInt32: return with(static_cast<int32_t>(value));
    case DataType::kInt64: return with(static_cast<int64_t>(value));
    case DataType::kFloat16:
    case DataType::kBfloat16: FOLIOT_CHECK(value == 0); return with(uint16_t{0});
    case DataType::kFloat32: return with(static_cast<float>(value));
    case DataType::kFloat64: return with(value);
    case DataType::kBytes: break;
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
