#include "edge/jobs/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "edge/jobs/npy_header.h"

namespace foliot {

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::not_found(fmt::format("cannot read {}", path.string()));
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_npy(content, path.string());
}

Result<NpyArray> parse_npy(std::string_view content, const std::string& name) {
  const auto error = [&](std::string_view what) { return Status::invalid_argument(fmt::format("{}: {}", name, what)); };
  const auto bytes = std::as_bytes(std::span(content));
  const Result<NpyHeader> header = parse_npy_header(bytes.first(std::min<size_t>(bytes.size(), kNpyHeaderBytesMax)));
  if (!header.ok()) return error(header.status().message());
  const auto elements = bytes.subspan(header->data_offset);
  const uint64_t expected = byte_size(header->type, header->shape);
  if (elements.size() != expected) {
    return error(fmt::format("holds {} bytes of elements, not the {} of its shape", elements.size(), expected));
  }
  return NpyArray{.type = header->type, .shape = header->shape, .bytes = {elements.begin(), elements.end()}};
}

Status write_npy(const std::filesystem::path& path, const NpyArray& array) {
  std::ofstream file(path, std::ios::binary);
  file << npy_header(array.type, array.shape);
  file.write(reinterpret_cast<const char*>(array.bytes.data()), static_cast<std::streamsize>(array.bytes.size()));
  file.flush();
  return file ? Status() : Status::internal(fmt::format("cannot write {}", path.string()));
}

}  // namespace foliot
