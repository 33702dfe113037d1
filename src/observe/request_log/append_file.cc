#include "observe/request_log/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace foliot {

Result<AppendFile> AppendFile::create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return Status::invalid_argument(
        fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
  }
  return AppendFile(descriptor);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool AppendFile::append(std::string_view bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      // Where even this fails, the reader finds a line cut off and says so.
      [[maybe_unused]] const int truncated = ::ftruncate(descriptor_, static_cast<off_t>(size_));
      return false;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_ += bytes.size();
  return true;
}

}  // namespace foliot
