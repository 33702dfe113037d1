#include "answer/personal/weights/mapped_rows.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <vector>

#include "answer/personal/weights/cholesky.h"
#include "answer/personal/weights/user_weights.h"
#include "foundation/base/error_text.h"
#include "foundation/base/hash.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kRowsAlignment = 64;

size_t rows_offset(size_t keys) {
  return (kHeaderBytes + keys * sizeof(uint64_t) + kRowsAlignment - 1) / kRowsAlignment * kRowsAlignment;
}

}  // namespace

Result<std::unique_ptr<const MappedRows>> MappedRows::open(const std::filesystem::path& file,
                                                           const RowsFormat& format) {
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat attributes {};
  if (!descriptor.is_open() || ::fstat(descriptor.number(), &attributes) != 0) {
    return Status::not_found(fmt::format("{}: cannot read: {}", file.string(), error_text(errno)));
  }
  const auto size = static_cast<size_t>(attributes.st_size);
  if (size < kHeaderBytes) return Status::invalid_argument(fmt::format("{}: is no {}", file.string(), format.table));
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.number(), 0);
  if (address == MAP_FAILED) {
    return Status::resource_exhausted(fmt::format("{}: cannot map: {}", file.string(), error_text(errno)));
  }
  std::unique_ptr<MappedRows> rows(new MappedRows(std::span(static_cast<std::byte*>(address), size), format));
  if (const std::string wrong = rows->read(); !wrong.empty()) {
    return Status::invalid_argument(fmt::format("{}: {}; write the table anew", file.string(), wrong));
  }
  return std::unique_ptr<const MappedRows>(std::move(rows));
}

MappedRows::~MappedRows() { ::munmap(mapped_.data(), mapped_.size()); }

std::string MappedRows::read() {
  std::array<uint64_t, 4> header;
  std::memcpy(header.data(), mapped_.data(), sizeof header);
  const auto [magic, columns, rows, checksum] = header;
  if (magic != format_.magic) return fmt::format("is no {}", format_.table);
  if (columns < 1 || columns > kFeaturesMax) {
    return fmt::format("has {} {}s, limits 1 and {}", columns, format_.value, kFeaturesMax);
  }
  const size_t width = padded_rows(columns);
  const size_t keys = rows * format_.keys;
  if (rows > mapped_.size() || mapped_.size() != rows_offset(keys) + rows * width * sizeof(float)) {
    return fmt::format("is damaged: {} bytes are not the size of {} {}s of {} {}s", mapped_.size(), rows, format_.row,
                       columns, format_.value);
  }
  if (checksum != hash64(mapped_.subspan(kHeaderBytes))) return "is damaged: its checksum differs";
  columns_ = columns;
  width_ = width;
  checksum_ = checksum;
  keys_ = {reinterpret_cast<const uint64_t*>(mapped_.data() + kHeaderBytes), keys};
  values_ = {reinterpret_cast<const float*>(mapped_.data() + rows_offset(keys)), rows * width};
  for (size_t i = 1; i < rows; ++i) {
    if (id(i - 1) < id(i)) continue;
    return fmt::format("{} {} is not below {} {} after it: ids must ascend, each once", format_.row, id(i - 1),
                       format_.row, id(i));
  }
  for (size_t i = 0; i < rows; ++i) {
    const std::span<const float> values = row(i);
    for (size_t j = 0; j < width; ++j) {
      if (!std::isfinite(values[j]))
        return fmt::format("{} {} of {} {} is not finite", format_.value, j, format_.row, id(i));
      if (j >= columns && values[j] != 0) {
        return fmt::format("{} {} has more than {} {}s", format_.row, id(i), columns, format_.value);
      }
    }
  }
  return "";
}

Status MappedRows::write(const std::filesystem::path& file, const RowsFormat& format, size_t columns,
                         std::span<const uint64_t> keys, std::span<const float> values) {
  const size_t rows = keys.size() / format.keys;
  if (columns < 1 || columns > kFeaturesMax || values.size() != rows * columns || keys.size() != rows * format.keys) {
    return Status::invalid_argument(fmt::format("{}: {} values are not {} {}s of {} {}s (1 to {})", file.string(),
                                                values.size(), rows, format.row, columns, format.value, kFeaturesMax));
  }
  const size_t width = padded_rows(columns);
  const size_t offset = rows_offset(keys.size());
  std::vector<std::byte> bytes(offset + rows * width * sizeof(float));
  if (!keys.empty()) std::memcpy(bytes.data() + kHeaderBytes, keys.data(), keys.size_bytes());
  for (size_t i = 0; i < rows; ++i) {
    std::memcpy(bytes.data() + offset + i * width * sizeof(float), values.data() + i * columns,
                columns * sizeof(float));
  }
  const std::array<uint64_t, 4> header = {format.magic, columns, rows, hash64(std::span(bytes).subspan(kHeaderBytes))};
  std::memcpy(bytes.data(), header.data(), sizeof header);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return Status::internal(fmt::format("{}: cannot write", file.string()));
  return open(file, format).status();
}

std::optional<size_t> MappedRows::find(uint64_t id_wanted) const {
  size_t begin = 0;
  size_t end = rows();
  while (begin < end) {
    const size_t middle = (begin + end) / 2;
    id(middle) < id_wanted ? begin = middle + 1 : end = middle;
  }
  return begin < rows() && id(begin) == id_wanted ? std::optional(begin) : std::nullopt;
}

}  // namespace foliot
