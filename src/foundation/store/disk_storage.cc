#include "foundation/store/disk_storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "foundation/base/error_text.h"
#include "foundation/base/folder_listing.h"

namespace foliot {
namespace {

constexpr const char* kLockName = "lock";

Status file_error(const char* what, const std::string& path) {
  const int error = errno;
  const std::string message = fmt::format("{}: cannot {}: {}", path, what, error_text(error));
  if (error == ENOSPC || error == EDQUOT) {
    return Status::resource_exhausted(message + "; free space on its disk");
  }
  return error == ENOENT ? Status::not_found(message) : Status::internal(message);
}

class DiskFile : public StorageFile {
 public:
  DiskFile(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_.number(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return file_error("write", path_);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return Status();
  }
  Status sync() override { return ::fdatasync(descriptor_.number()) == 0 ? Status() : file_error("sync", path_); }

 private:
  const std::string path_;
  Descriptor descriptor_;
};

}  // namespace

Result<std::unique_ptr<DiskStorage>> DiskStorage::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (error == std::errc::no_space_on_device) {
    return Status::resource_exhausted(
        fmt::format("{}: cannot be made: {}; free space on its disk", folder.string(), error.message()));
  }
  if (!descriptor.is_open()) {
    return Status::invalid_argument(fmt::format("{}: cannot be used as a folder: {}", folder.string(),
                                                error ? error.message() : error_text(errno)));
  }
  const std::filesystem::path file = folder / kLockName;
  Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.is_open()) return file_error("open", file.string());
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
    return Status::already_exists(
        fmt::format("{}: another process uses this folder; stop it or name another folder", folder.string()));
  }
  return std::unique_ptr<DiskStorage>(new DiskStorage(folder, std::move(descriptor), std::move(lock)));
}

Result<std::unique_ptr<DiskStorage>> DiskStorage::open_to_read(const std::filesystem::path& folder) {
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.is_open())
    return Status::not_found(fmt::format("{}: cannot read: {}", folder.string(), error_text(errno)));
  return std::unique_ptr<DiskStorage>(new DiskStorage(folder, std::move(descriptor), Descriptor()));
}

Status DiskStorage::sync_folder() {
  return ::fsync(descriptor_.number()) == 0 ? Status() : file_error("sync", folder_.string());
}

Result<std::unique_ptr<StorageFile>> DiskStorage::create(std::string_view name) {
  Descriptor file(::open(path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open()) return file_error("create", path(name));
  FOLIOT_RETURN_IF_ERROR(sync_folder());
  return std::unique_ptr<StorageFile>(std::make_unique<DiskFile>(path(name), std::move(file)));
}

Result<std::vector<std::byte>> DiskStorage::read(std::string_view name) { return read(name, 0, SIZE_MAX); }

Result<std::vector<std::byte>> DiskStorage::read(std::string_view name, uint64_t offset, size_t bytes_max) {
  const Descriptor file(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat attributes {};
  if (!file.is_open() || ::fstat(file.number(), &attributes) != 0) return file_error("read", path(name));
  const auto file_bytes = static_cast<uint64_t>(attributes.st_size);
  std::vector<std::byte> bytes(std::min<uint64_t>(bytes_max, file_bytes - std::min(offset, file_bytes)));
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count =
        ::pread(file.number(), bytes.data() + size, bytes.size() - size, static_cast<off_t>(offset + size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path(name));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  bytes.resize(size);
  return bytes;
}

Status DiskStorage::sync(std::string_view name) {
  const Descriptor file(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() || ::fdatasync(file.number()) != 0) return file_error("sync", path(name));
  return Status();
}

Status DiskStorage::rename(std::string_view from, std::string_view to) {
  if (::rename(path(from).c_str(), path(to).c_str()) != 0) return file_error("rename", path(from));
  return sync_folder();
}

Status DiskStorage::remove(std::string_view name) {
  if (::unlink(path(name).c_str()) != 0) return file_error("remove", path(name));
  return sync_folder();
}

Result<std::vector<std::string>> DiskStorage::list() {
  const auto files = list_folder(folder_);
  if (!files.ok()) return Status::internal(files.status().message());
  std::vector<std::string> names;
  for (const std::filesystem::path& file : *files) {
    if (file.filename() != kLockName) names.push_back(file.filename().string());
  }
  return names;
}

}  // namespace foliot
