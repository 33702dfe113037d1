#include "engine/program/intact_mark.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <array>
#include <string>
#include <string_view>

namespace foliot {
namespace {

constexpr const char* kAttribute = "user.foliot.intact";

std::string mark_of(const struct stat& status) {
  return fmt::format("{} {}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace

bool is_marked_intact(const File& file, const struct stat& status) {
  std::array<char, 64> mark;
  const ssize_t size = ::fgetxattr(file.descriptor(), kAttribute, mark.data(), mark.size());
  return size >= 0 && std::string_view(mark.data(), static_cast<size_t>(size)) == mark_of(status);
}

void mark_intact(const File& file, const struct stat& status) {
  const std::string mark = mark_of(status);
  // Nothing depends on whether this succeeds.
  [[maybe_unused]] const int ignored = ::fsetxattr(file.descriptor(), kAttribute, mark.data(), mark.size(), 0);
}

}  // namespace foliot
