#include "app/commands/npz_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace foliot {
namespace {

// Of the ZIP format: what begins with these, and the lengths of their fixed parts.
constexpr uint32_t kZipEnd = 0x06054b50, kZipEntry = 0x02014b50, kZipLocalEntry = 0x04034b50;
constexpr size_t kZipEndBytes = 22, kZipEntryBytes = 46, kZipLocalEntryBytes = 30;
constexpr size_t kZipCommentBytesMax = 65535;
constexpr uint16_t kZipStored = 0, kZipDeflated = 8;
constexpr std::string_view kNpySuffix = ".npy";

// A number of the file, little-endian. REQUIRES: it is within.
template <typename Number>
Number zip_number(std::string_view file, size_t at) {
  Number number{};
  std::memcpy(&number, file.data() + at, sizeof(number));
  return number;
}

struct ZipEntry {
  std::string name;
  uint16_t method = 0;
  uint32_t checksum = 0;
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;
  uint64_t local = 0;  // where its local header begins
};

// Where the end of the central directory begins.
std::optional<size_t> find_zip_end(std::string_view file) {
  if (file.size() < kZipEndBytes) return std::nullopt;
  const size_t last = file.size() - kZipEndBytes;
  for (size_t back = 0; back <= std::min(last, kZipCommentBytesMax); ++back) {
    if (zip_number<uint32_t>(file, last - back) == kZipEnd) return last - back;
  }
  return std::nullopt;
}

// nullopt: damaged, or larger than 4 GB.
std::optional<std::vector<ZipEntry>> zip_entries(std::string_view file) {
  const std::optional<size_t> end = find_zip_end(file);
  if (!end) return std::nullopt;
  const auto count = zip_number<uint16_t>(file, *end + 10);
  size_t at = zip_number<uint32_t>(file, *end + 16);
  std::vector<ZipEntry> entries;
  for (uint32_t i = 0; i < count; ++i) {
    if (at > file.size() || file.size() - at < kZipEntryBytes || zip_number<uint32_t>(file, at) != kZipEntry) {
      return std::nullopt;
    }
    const auto name_bytes = zip_number<uint16_t>(file, at + 28);
    ZipEntry entry{.name = std::string(file.substr(at + kZipEntryBytes, name_bytes)),
                   .method = zip_number<uint16_t>(file, at + 10),
                   .checksum = zip_number<uint32_t>(file, at + 16),
                   .packed_bytes = zip_number<uint32_t>(file, at + 20),
                   .bytes = zip_number<uint32_t>(file, at + 24),
                   .local = zip_number<uint32_t>(file, at + 42)};
    at += kZipEntryBytes + name_bytes + zip_number<uint16_t>(file, at + 30) + zip_number<uint16_t>(file, at + 32);
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool inflate_zip(std::string_view packed, std::string& to) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  return result == Z_STREAM_END && stream.avail_out == 0;
}

// nullopt: damaged, or packed in another way.
std::optional<std::string> zip_content(std::string_view file, const ZipEntry& entry) {
  if (entry.local > file.size() || file.size() - entry.local < kZipLocalEntryBytes ||
      zip_number<uint32_t>(file, entry.local) != kZipLocalEntry) {
    return std::nullopt;
  }
  const uint64_t begin = entry.local + kZipLocalEntryBytes + zip_number<uint16_t>(file, entry.local + 26) +
                         zip_number<uint16_t>(file, entry.local + 28);
  if (begin > file.size() || file.size() - begin < entry.packed_bytes) return std::nullopt;
  const std::string_view packed = file.substr(begin, entry.packed_bytes);
  std::string content;
  if (entry.method == kZipStored && entry.packed_bytes == entry.bytes) {
    content = packed;
  } else if (entry.method == kZipDeflated) {
    content.resize(entry.bytes);
    if (!inflate_zip(packed, content)) return std::nullopt;
  } else {
    return std::nullopt;
  }
  const uLong checksum = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  return checksum == entry.checksum ? std::optional(std::move(content)) : std::nullopt;
}

}  // namespace

Result<std::map<std::string, NpyArray>> read_npz(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Status::not_found(fmt::format("cannot read {}", path.string()));
  const std::string file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto entries = zip_entries(file);
  if (!entries) {
    return Status::invalid_argument(
        fmt::format("{}: is no .npz file as numpy.savez() writes it, of at most 4 GB", path.string()));
  }
  std::map<std::string, NpyArray> arrays;
  for (const ZipEntry& entry : *entries) {
    const std::string where = fmt::format("{}: '{}'", path.string(), entry.name);
    const auto content = zip_content(file, entry);
    if (!content) return Status::invalid_argument(where + " is damaged");
    FOLIOT_ASSIGN_OR_RETURN(NpyArray array, parse_npy(*content, where));
    std::string name = entry.name;
    if (name.ends_with(kNpySuffix)) name.resize(name.size() - kNpySuffix.size());
    arrays.insert_or_assign(std::move(name), std::move(array));
  }
  return arrays;
}

}  // namespace foliot
