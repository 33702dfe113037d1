#include "engine/program/file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace foliot {

File::~File() {
  if (is_open()) ::close(descriptor_);
}

int read_fully(const File& file, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got =
        ::pread(file.descriptor(), to.data(), std::min<uint64_t>(to.size(), kChunkBytes), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ENODATA;
    offset += static_cast<uint64_t>(got);
    to = to.subspan(static_cast<size_t>(got));
  }
  return 0;
}

bool write_fully(const File& file, uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const uint64_t bytes = std::min<uint64_t>(from.size(), kChunkBytes - offset % kChunkBytes);
    const ssize_t put = ::pwrite(file.descriptor(), from.data(), bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    offset += static_cast<uint64_t>(put);
    from = from.subspan(static_cast<size_t>(put));
  }
  return true;
}

}  // namespace foliot
