#include "app/commands/npy_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace foliot {
namespace {

// Magic, version 1.0, length of the header in two bytes; then the header, a
// Python dictionary, up to a multiple of 64 bytes; then the elements.
constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kPreambleBytes = 10;
constexpr size_t kHeaderAlignment = 64;

struct TypeName {
  std::string_view name;
  DataType type;
};
constexpr TypeName kTypeNames[] = {
    {"|b1", DataType::kBool},    {"|u1", DataType::kUint8},   {"<u2", DataType::kUint16},  {"<u4", DataType::kUint32},
    {"<u8", DataType::kUint64},  {"|i1", DataType::kInt8},    {"<i2", DataType::kInt16},   {"<i4", DataType::kInt32},
    {"<i8", DataType::kInt64},   {"<f2", DataType::kFloat16}, {"<f4", DataType::kFloat32}, {"<f8", DataType::kFloat64},
    {"<u2", DataType::kBfloat16}};

// What stands behind 'key': in the header, without leading spaces.
std::optional<std::string_view> find_value(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return std::nullopt;
  header.remove_prefix(at + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

std::optional<DataType> parse_type(std::string_view header) {
  const auto value = find_value(header, "descr");
  if (!value) return std::nullopt;
  const auto found = std::ranges::find_if(
      kTypeNames, [&](const TypeName& known) { return value->starts_with(fmt::format("'{}'", known.name)); });
  return found == std::end(kTypeNames) ? std::nullopt : std::optional(found->type);
}

// "(3, 224, 224)", "(3,)" or "()". Extents stay so small that no size overflows.
std::optional<Shape> parse_shape(std::string_view header) {
  const auto value = find_value(header, "shape");
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

std::string_view name_of(DataType type) { return std::ranges::find(kTypeNames, type, &TypeName::type)->name; }

}  // namespace

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::not_found(fmt::format("cannot read {}", path.string()));
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_npy(content, path.string());
}

Result<NpyArray> parse_npy(std::string_view content, const std::string& name) {
  const auto error = [&](std::string_view what) { return Status::invalid_argument(fmt::format("{}: {}", name, what)); };
  if (content.size() < kPreambleBytes || !content.starts_with(kMagic) || content[6] != 1) {
    return error("is no .npy file of version 1");
  }
  const size_t header_bytes = static_cast<uint8_t>(content[8]) + 256u * static_cast<uint8_t>(content[9]);
  if (content.size() - kPreambleBytes < header_bytes) return error("ends within its header");
  const std::string_view header = content.substr(kPreambleBytes, header_bytes);

  const auto type = parse_type(header);
  if (!type) return error("its element type is not one that a tensor can have");
  const auto shape = parse_shape(header);
  if (!shape) return error("its shape cannot be read");
  const auto fortran_order = find_value(header, "fortran_order");
  if (!fortran_order || !fortran_order->starts_with("False")) {
    return error("is in Fortran's order; save numpy.ascontiguousarray() of it");
  }
  const std::string_view elements = content.substr(kPreambleBytes + header_bytes);
  const uint64_t expected = byte_size(*type, *shape);
  if (elements.size() != expected) {
    return error(fmt::format("holds {} bytes of elements, not the {} of its shape", elements.size(), expected));
  }
  const auto bytes = std::as_bytes(std::span(elements));
  return NpyArray{.type = *type, .shape = *shape, .bytes = {bytes.begin(), bytes.end()}};
}

Status write_npy(const std::filesystem::path& path, const NpyArray& array) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", name_of(array.type),
                                   fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  const size_t unpadded = kPreambleBytes + header.size() + 1;
  header.append((kHeaderAlignment - unpadded % kHeaderAlignment) % kHeaderAlignment, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << kMagic << '\x01' << '\0' << static_cast<char>(header.size() % 256) << static_cast<char>(header.size() / 256)
       << header;
  file.write(reinterpret_cast<const char*>(array.bytes.data()), static_cast<std::streamsize>(array.bytes.size()));
  file.flush();
  return file ? Status() : Status::internal(fmt::format("cannot write {}", path.string()));
}

}  // namespace foliot
