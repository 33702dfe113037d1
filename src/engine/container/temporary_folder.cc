#include "engine/container/temporary_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "foundation/base/error_text.h"
#include "foundation/process/own_id.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "foliot-container-";
constexpr uint64_t kFileBytesMin = 4096;

fs::path parent_folder() {
  std::error_code error;
  fs::path parent = fs::temp_directory_path(error);
  return error ? "/tmp" : parent;
}

bool is_ours(uid_t owner) {
  return owner == ::geteuid() || (::geteuid() == 0 && kOwnIdsBegin <= owner && owner < kOwnIdsEnd);
}

// Not open: it is no folder, or not ours, or its owner lives.
Descriptor lock_of(const fs::path& folder) {
  Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (lock.is_open() && ::fstat(lock.number(), &status) == 0 && is_ours(status.st_uid) &&
      ::flock(lock.number(), LOCK_EX | LOCK_NB) == 0) {
    return lock;
  }
  return {};
}

}  // namespace

// Between the two calls another server may take it for abandoned; then it is gone, and the next one is made. Where a
// file system has no locks, none is abandoned.
Result<TemporaryFolder> TemporaryFolder::make() {
  constexpr int kAttempts = 8;
  const fs::path parent = parent_folder();
  for (int i = 0; i < kAttempts; ++i) {
    std::string name = parent / (std::string(kPrefix) + "XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) break;
    Descriptor lock(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool is_taken = ::flock(lock.number(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EBADF);
    std::error_code error;
    if (!is_taken && fs::exists(name, error)) return TemporaryFolder(name, std::move(lock));
  }
  return Status::resource_exhausted(fmt::format("cannot make a folder in {}: {}", parent.string(), error_text(errno)));
}

size_t TemporaryFolder::remove_abandoned() {
  size_t removed = 0;
  std::error_code error;
  for (fs::directory_iterator each(parent_folder(), fs::directory_options::skip_permission_denied, error), end;
       !error && each != end; each.increment(error)) {
    if (!each->path().filename().string().starts_with(kPrefix)) continue;
    const Descriptor lock = lock_of(each->path());
    std::error_code failed;
    if (lock.is_open() && fs::remove_all(each->path(), failed) != static_cast<uintmax_t>(-1) && !failed) ++removed;
  }
  return removed;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // the process may have made folders that it cannot change
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

uint64_t TemporaryFolder::bytes(uint64_t enough) const {
  uint64_t sum = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator each(path_, fs::directory_options::skip_permission_denied, error), end;
       !error && each != end && sum <= enough; each.increment(error)) {
    std::error_code gone;
    const bool is_file = each->is_regular_file(gone) && !each->is_symlink(gone);
    const uintmax_t size = is_file ? each->file_size(gone) : 0;
    sum += gone ? kFileBytesMin : std::max<uint64_t>(size, kFileBytesMin);
  }
  return sum;
}

}  // namespace foliot
