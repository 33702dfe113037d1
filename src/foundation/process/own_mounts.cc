#include "foundation/process/own_mounts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

// Of linux/mount.h, which cannot be included beside sys/mount.h; from Linux 5.12 on.
struct MountAttributes {
  uint64_t set = 0;
  uint64_t cleared = 0;
  uint64_t propagation = 0;
  uint64_t user_namespace = 0;
};
constexpr uint64_t kReadOnly = 1;
constexpr unsigned kRecursive = 0x8000;
constexpr long kMountSetattr = 442;  // the same on all architectures

// Of files in memory: names and inodes are the kernel's memory, which no size counts.
constexpr uint64_t kBytesPerFile = 16 << 10;

bool set_attributes(const char* path, unsigned flags, const MountAttributes& attributes) {
  return ::syscall(kMountSetattr, AT_FDCWD, path, flags, &attributes, sizeof attributes) == 0;
}

std::string no_mount(std::string_view what) { return fmt::format("{}: {}", what, error_text(errno)); }

}  // namespace

std::optional<std::string> keep_mounts_apart() {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return std::nullopt;
  return no_mount("no mounts of its own");
}

std::optional<std::string> mount_all_read_only(std::span<const std::filesystem::path> writable) {
  constexpr std::string_view kWhat = "no read-only view of the machine's files";
  for (const std::filesystem::path& folder : writable) {
    if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) return no_mount(kWhat);
  }
  if (!set_attributes("/", kRecursive, {.set = kReadOnly})) return no_mount(kWhat);
  for (const std::filesystem::path& folder : writable) {
    if (!set_attributes(folder.c_str(), 0, {.cleared = kReadOnly})) return no_mount(kWhat);
  }
  return std::nullopt;
}

std::optional<std::string> mount_memory(const std::filesystem::path& folder, uint64_t bytes) {
  const std::string options = fmt::format("size={},nr_inodes={},mode=0700", bytes, 1024 + bytes / kBytesPerFile);
  if (::mount("foliot", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0) return std::nullopt;
  return no_mount("no file system of its own for temporary files");
}

std::optional<std::string> mount_own_processes(bool writable) {
  const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | (writable ? 0 : MS_RDONLY);
  if (::mount("foliot", "/proc", "proc", flags, nullptr) == 0) return std::nullopt;
  return no_mount("no /proc of its own");
}

}  // namespace foliot
