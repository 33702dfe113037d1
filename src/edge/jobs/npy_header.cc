#include "edge/jobs/npy_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace foliot {
namespace {

// Magic, the version in two bytes, and the length of the header in two bytes (1.0) or four (2.0); then the header, a
// Python dictionary, up to a multiple of 64 bytes; then the elements.
constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr size_t kNpyAlignment = 64;

struct NpyTypeName {
  std::string_view name;
  DataType type;
};
constexpr NpyTypeName kNpyTypeNames[] = {
    {"|b1", DataType::kBool},    {"|u1", DataType::kUint8},   {"<u2", DataType::kUint16},  {"<u4", DataType::kUint32},
    {"<u8", DataType::kUint64},  {"|i1", DataType::kInt8},    {"<i2", DataType::kInt16},   {"<i4", DataType::kInt32},
    {"<i8", DataType::kInt64},   {"<f2", DataType::kFloat16}, {"<f4", DataType::kFloat32}, {"<f8", DataType::kFloat64},
    {"<u2", DataType::kBfloat16}};

// What stands behind 'key': in the header, without leading spaces.
std::optional<std::string_view> find_npy_value(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return std::nullopt;
  header.remove_prefix(at + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

std::optional<DataType> parse_npy_type(std::string_view header) {
  const auto value = find_npy_value(header, "descr");
  if (!value) return std::nullopt;
  const auto found = std::ranges::find_if(
      kNpyTypeNames, [&](const NpyTypeName& known) { return value->starts_with(fmt::format("'{}'", known.name)); });
  return found == std::end(kNpyTypeNames) ? std::nullopt : std::optional(found->type);
}

// "(3, 224, 224)", "(3,)" or "()". Extents stay so small that no size overflows.
std::optional<Shape> parse_npy_shape(std::string_view header) {
  const auto value = find_npy_value(header, "shape");
  if (!value || !value->starts_with('(')) return std::nullopt;
  const char* at = value->data() + 1;
  const char* const end = value->data() + value->size();
  Shape shape;
  int64_t left = std::numeric_limits<int64_t>::max() / 16;
  while (at < end && *at != ')') {
    int64_t extent = 0;
    const auto parsed = std::from_chars(at, end, extent);
    if (parsed.ec != std::errc() || extent < 0 || extent > left) return std::nullopt;
    left /= std::max<int64_t>(extent, 1);
    shape.push_back(extent);
    at = parsed.ptr;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return at < end ? std::optional(shape) : std::nullopt;
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const bool is_npy = text.starts_with(kNpyMagic) && text.size() >= 8 && (text[6] == 1 || text[6] == 2) && text[7] == 0;
  if (!is_npy) return Status::invalid_argument("is no .npy file of version 1.0 or 2.0");
  const size_t begin = text[6] == 1 ? 10 : 12;
  if (text.size() < begin) return Status::invalid_argument("ends within its header");
  const auto byte_at = [&](size_t i) { return uint64_t{static_cast<uint8_t>(text[i])}; };
  uint64_t length = byte_at(8) | byte_at(9) << 8;
  if (begin == 12) length |= byte_at(10) << 16 | byte_at(11) << 24;
  if (length > kNpyHeaderBytesMax - begin) {
    return Status::invalid_argument(
        fmt::format("has a header of {} bytes; at most {} are read", length, kNpyHeaderBytesMax - begin));
  }
  if (begin + length > text.size()) return Status::invalid_argument("ends within its header");
  const std::string_view header = text.substr(begin, length);
  const auto type = parse_npy_type(header);
  if (!type) return Status::invalid_argument("has an element type that no tensor has");
  const auto shape = parse_npy_shape(header);
  if (!shape) return Status::invalid_argument("has a shape that cannot be read");
  const auto order = find_npy_value(header, "fortran_order");
  if (!order || !order->starts_with("False")) {
    return Status::invalid_argument("is in Fortran's order; save numpy.ascontiguousarray() of it");
  }
  return NpyHeader{.type = *type, .shape = *shape, .data_offset = begin + length};
}

std::string npy_header(DataType type, const Shape& shape) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   std::ranges::find(kNpyTypeNames, type, &NpyTypeName::type)->name,
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const size_t unpadded = kNpyMagic.size() + 4 + header.size() + 1;
  header.append((kNpyAlignment - unpadded % kNpyAlignment) % kNpyAlignment, ' ');
  header += '\n';
  std::string all(kNpyMagic);
  all += '\x01';
  all += '\0';
  all += static_cast<char>(header.size() % 256);
  all += static_cast<char>(header.size() / 256);
  return all + header;
}

}  // namespace foliot
