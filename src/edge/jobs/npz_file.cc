#include "edge/jobs/npz_file.h"

#include <fmt/format.h>
#include <zip.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace foliot {
namespace {

constexpr std::string_view kNpySuffix = ".npy";

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct Close {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

Result<Archive> open_archive(const std::filesystem::path& path) {
  int error = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &error));
  if (archive != nullptr) return archive;
  if (error == ZIP_ER_NOENT || error == ZIP_ER_OPEN) {
    return Status::not_found(fmt::format("cannot read {}", path.string()));
  }
  return Status::invalid_argument(fmt::format("{}: is no .npz file as numpy.savez() writes it", path.string()));
}

// As far as it goes: its size may be a lie. Its checksum is compared at its end.
Result<std::string> content_of(zip_t* archive, zip_uint64_t index, const std::string& where) {
  const std::unique_ptr<zip_file_t, Close> file(zip_fopen_index(archive, index, 0));
  std::string content;
  std::array<char, 64 << 10> part;
  zip_int64_t count = file == nullptr ? -1 : 0;
  while (file != nullptr && (count = zip_fread(file.get(), part.data(), part.size())) > 0) {
    content.append(part.data(), static_cast<size_t>(count));
  }
  if (count < 0) return Status::invalid_argument(where + " is damaged");
  return content;
}

}  // namespace

Result<std::map<std::string, NpyArray>> read_npz(const std::filesystem::path& path) {
  FOLIOT_ASSIGN_OR_RETURN(const Archive archive, open_archive(path));
  std::map<std::string, NpyArray> arrays;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* entry = zip_get_name(archive.get(), index, 0);
    std::string name = entry == nullptr ? "" : entry;
    const std::string where = fmt::format("{}: '{}'", path.string(), name);
    FOLIOT_ASSIGN_OR_RETURN(const std::string content, content_of(archive.get(), index, where));
    FOLIOT_ASSIGN_OR_RETURN(NpyArray array, parse_npy(content, where));
    if (name.ends_with(kNpySuffix)) name.resize(name.size() - kNpySuffix.size());
    arrays.insert_or_assign(std::move(name), std::move(array));
  }
  return arrays;
}

}  // namespace foliot
