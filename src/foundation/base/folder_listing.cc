#include "foundation/base/folder_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace foliot {
namespace {

namespace fs = std::filesystem;

Status cannot_look(const fs::path& path, const std::error_code& error) {
  return Status::invalid_argument(fmt::format("{}: {}", path.string(), error.message()));
}

}  // namespace

Result<std::vector<fs::path>> list_folder(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) {
    const auto code = error == std::errc::no_such_file_or_directory ? StatusCode::kNotFound : StatusCode::kInternal;
    return Status(code, fmt::format("{}: {}", folder.string(), error.message()));
  }
  std::ranges::sort(entries);
  return entries;
}

Result<bool> leads_to_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::none) return cannot_look(path, error);
  if (type != fs::file_type::not_found) return type == fs::file_type::directory;
  std::error_code ignored;
  if (!fs::is_symlink(fs::symlink_status(path, ignored))) return false;
  return Status::invalid_argument(fmt::format("{} is a link that leads to nothing", path.string()));
}

Result<bool> leads_to_file(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::none) return cannot_look(path, error);
  return type == fs::file_type::regular;
}

}  // namespace foliot
