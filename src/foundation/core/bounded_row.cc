#include "foundation/core/bounded_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "foundation/base/check.h"

namespace foliot {
namespace {

static_assert(std::endian::native == std::endian::little, "extents and lengths are little-endian");

constexpr uint64_t kAlignment = 8;

uint64_t extents_bytes(const TensorSpec& tensor) {
  return static_cast<uint64_t>(std::ranges::count(tensor.shape, -1)) * sizeof(uint64_t);
}

// Of all but the bytes of strings.
uint64_t element_bytes(DataType type) { return type == DataType::kBytes ? kStringLengthBytes : size_of(type); }

// The number of elements of a row; nullopt: an extent is above its bound.
std::optional<uint64_t> read_count(const TensorSpec& tensor, std::span<const std::byte> memory) {
  uint64_t count = 1;
  size_t variable = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    uint64_t extent = static_cast<uint64_t>(tensor.bound->shape[i]);
    if (tensor.shape[i] < 0) {
      uint64_t given = 0;
      std::memcpy(&given, memory.data() + variable++ * sizeof(given), sizeof(given));
      if (given > extent) return std::nullopt;
      extent = given;
    }
    count *= extent;
  }
  return count;
}

}  // namespace

Status check_bound(const TensorSpec& tensor) {
  const auto wrong = [&](std::string_view why) {
    return Status::invalid_argument(fmt::format("tensor '{}' {}", tensor.name, why));
  };
  if (!tensor.bound) {
    return tensor.type == DataType::kBytes ? wrong("is BYTES, without a bound for a row") : Status();
  }
  const bool strings = tensor.type == DataType::kBytes;
  const RowBound& bound = *tensor.bound;
  if (bound.shape.size() != tensor.shape.size()) return wrong("has a bound of another rank");
  if (!strings && bound.string_bytes > 0) return wrong("has a bound for strings, and none");
  bool variable = strings;
  uint64_t bytes = element_bytes(tensor.type);
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    variable = variable || tensor.shape[i] < 0;
    if (tensor.shape[i] >= 0 ? bound.shape[i] != tensor.shape[i] : bound.shape[i] < 0) {
      return wrong("has a bound of another shape");
    }
    const auto extent = static_cast<uint64_t>(bound.shape[i]);
    if (extent > kBoundedRowBytesMax / std::max<uint64_t>(bytes, 1)) return wrong("has rows that are too large");
    bytes *= extent;
  }
  if (!variable) return wrong("has a bound, and rows of one size");
  if (bytes + bound.string_bytes < bytes || bytes + bound.string_bytes + extents_bytes(tensor) > kBoundedRowBytesMax) {
    return wrong("has rows that are too large");
  }
  return Status();
}

uint64_t bounded_row_bytes(const TensorSpec& tensor) {
  const uint64_t bytes = extents_bytes(tensor) + element_count(tensor.bound->shape) * element_bytes(tensor.type) +
                         tensor.bound->string_bytes;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::optional<uint64_t> used_bytes(const TensorSpec& tensor, std::span<const std::byte> memory) {
  const uint64_t header = extents_bytes(tensor);
  if (memory.size() < header) return std::nullopt;
  const std::optional<uint64_t> count = read_count(tensor, memory);
  if (!count) return std::nullopt;
  const std::span<const std::byte> rest = memory.subspan(header);
  if (tensor.type == DataType::kBytes) {
    const std::optional<uint64_t> bytes = strings_bytes(rest, *count);
    return bytes ? std::optional(header + *bytes) : std::nullopt;
  }
  const uint64_t bytes = *count * size_of(tensor.type);
  return bytes <= rest.size() ? std::optional(header + bytes) : std::nullopt;
}

Shape extents_of(const TensorSpec& tensor, std::span<const std::byte> memory) {
  Shape extents = tensor.shape;
  size_t variable = 0;
  for (int64_t& extent : extents) {
    if (extent < 0) std::memcpy(&extent, memory.data() + variable++ * sizeof(extent), sizeof(extent));
  }
  return extents;
}

std::span<const std::byte> elements_of(const TensorSpec& tensor, std::span<const std::byte> memory) {
  const std::optional<uint64_t> used = used_bytes(tensor, memory);
  FOLIOT_CHECK(used);
  return memory.first(*used).subspan(extents_bytes(tensor));
}

bool write_row(const TensorSpec& tensor, const Shape& extents, std::span<const std::byte> elements,
               std::span<std::byte> memory) {
  const uint64_t header = extents_bytes(tensor);
  FOLIOT_CHECK(memory.size() >= header && extents.size() == tensor.shape.size());
  if (elements.size() > memory.size() - header) return false;
  size_t variable = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (tensor.shape[i] >= 0) continue;
    std::memcpy(memory.data() + variable++ * sizeof(extents[i]), &extents[i], sizeof(extents[i]));
  }
  std::ranges::copy(elements, memory.begin() + static_cast<std::ptrdiff_t>(header));
  return true;
}

void write_zeros(const TensorSpec& tensor, std::span<std::byte> memory) {
  std::ranges::fill(memory, std::byte{0});
  FOLIOT_CHECK(write_row(tensor, tensor.bound->shape, {}, memory));
}

std::optional<uint64_t> strings_bytes(std::span<const std::byte> bytes, uint64_t count) {
  uint64_t end = 0;
  for (; count > 0; --count) {
    uint32_t length = 0;
    if (bytes.size() - end < sizeof(length)) return std::nullopt;
    std::memcpy(&length, bytes.data() + end, sizeof(length));
    end += sizeof(length);
    if (bytes.size() - end < length) return std::nullopt;
    end += length;
  }
  return end;
}

}  // namespace foliot
