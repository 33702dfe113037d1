#include "app/commands/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "jobs/npy_header.h"

namespace foliot {

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  const auto error = [&](std::string_view what) {
    return Status::invalid_argument(fmt::format("{}: {}", path.string(), what));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::not_found(fmt::format("cannot read {}", path.string()));
  const uint64_t size = std::filesystem::file_size(path);
  std::vector<std::byte> begin(std::min<uint64_t>(size, kNpyHeaderBytesMax));
  file.read(reinterpret_cast<char*>(begin.data()), static_cast<std::streamsize>(begin.size()));
  const Result<NpyHeader> header = parse_npy_header(begin);
  if (!header.ok()) return error(header.status().message());
  const uint64_t expected = byte_size(header->type, header->shape);
  const uint64_t held = size - header->data_offset;
  if (held != expected)
    return error(fmt::format("holds {} bytes of elements, not the {} of its shape", held, expected));
  NpyArray array{.type = header->type, .shape = header->shape, .bytes = std::vector<std::byte>(expected)};
  file.clear();
  file.seekg(static_cast<std::streamoff>(header->data_offset));
  file.read(reinterpret_cast<char*>(array.bytes.data()), static_cast<std::streamsize>(expected));
  return file ? Result<NpyArray>(std::move(array)) : error("cannot be read");
}

Status write_npy(const std::filesystem::path& path, const NpyArray& array) {
  std::ofstream file(path, std::ios::binary);
  file << npy_header(array.type, array.shape);
  file.write(reinterpret_cast<const char*>(array.bytes.data()), static_cast<std::streamsize>(array.bytes.size()));
  file.flush();
  return file ? Status() : Status::internal(fmt::format("cannot write {}", path.string()));
}

}  // namespace foliot
