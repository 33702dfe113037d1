#include "edge/jobs/job_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

constexpr size_t kPathBytesMax = 1024;

// Not empty, relative, and of parts that do not begin with a dot.
Status check_path(const std::string& path) {
  const auto wrong = [&](std::string_view why) {
    return Status::invalid_argument(fmt::format("path '{}' {}", path, why));
  };
  if (path.empty() || path.size() > kPathBytesMax) return wrong(fmt::format("must have 1 to {} bytes", kPathBytesMax));
  if (path.find('\0') != std::string::npos) return wrong("must not contain a zero byte");
  if (path.front() == '/') return wrong("must be relative to the folder of jobs (--jobs)");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (begin == end) return wrong("has an empty part");
    if (path[begin] == '.') return wrong("has a part that begins with a dot");
    begin = end + 1;
  }
  return Status();
}

Status path_failure(const std::string& path, int error) {
  const std::string text = fmt::format("path '{}': {}", path, error_text(error));
  switch (error) {
    case ENOENT: return Status::not_found(text);
    case EEXIST: return Status::already_exists(text + "; name a new folder");
    case ENOSPC:
    case EDQUOT: return Status::resource_exhausted(text);
    case EXDEV:
      return Status::invalid_argument(fmt::format("path '{}' leads out of the folder of jobs (--jobs)", path));
    case ENOSYS: return Status::unimplemented(fmt::format("path '{}': paths of jobs need Linux 5.6 (openat2)", path));
    default: return Status::invalid_argument(text);
  }
}

}  // namespace

Result<JobFolder> JobFolder::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder / ".foliot", error);
  if (error) {
    return Status::invalid_argument(
        fmt::format("--jobs {}: cannot be used as a folder: {}", folder.string(), error.message()));
  }
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.is_open()) {
    return Status::invalid_argument(fmt::format("--jobs {}: {}", folder.string(), error_text(errno)));
  }
  return JobFolder(folder, std::move(descriptor));
}

Result<Descriptor> JobFolder::open_below(const std::string& path, int flags) const {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long number = ::syscall(SYS_openat2, descriptor_.number(), path.c_str(), &how, sizeof how);
  if (number < 0) return path_failure(path, errno);
  return Descriptor(static_cast<int>(number));
}

Result<Descriptor> JobFolder::open_file(const std::string& path) const {
  FOLIOT_RETURN_IF_ERROR(check_path(path));
  // Without waiting, where it is a pipe.
  FOLIOT_ASSIGN_OR_RETURN(Descriptor file, open_below(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat found {};
  if (::fstat(file.number(), &found) != 0) return path_failure(path, errno);
  if (!S_ISREG(found.st_mode)) return Status::invalid_argument(fmt::format("path '{}' is no file", path));
  return file;
}

Status JobFolder::make_folder(const std::string& path) const {
  FOLIOT_RETURN_IF_ERROR(check_path(path));
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const bool is_last = end == std::string::npos;
    // The folder that it lies in is looked up by the same rules.
    const size_t slash = part.rfind('/');
    Result<Descriptor> parent =
        open_below(slash == std::string::npos ? "." : part.substr(0, slash), O_RDONLY | O_DIRECTORY);
    if (!parent.ok()) return parent.status();
    const std::string name = slash == std::string::npos ? part : part.substr(slash + 1);
    const bool made = ::mkdirat(parent->number(), name.c_str(), 0777) == 0;
    if (!made && (is_last || errno != EEXIST)) return path_failure(path, errno);
    if (made && ::fsync(parent->number()) != 0) return path_failure(path, errno);
    if (is_last) return Status();
  }
}

Result<Descriptor> JobFolder::open_folder(const std::string& path) const {
  FOLIOT_RETURN_IF_ERROR(check_path(path));
  return open_below(path, O_RDONLY | O_DIRECTORY);
}

bool JobFolder::is_same_folder(const std::string& path, const std::string& other) const {
  const Result<Descriptor> one = open_folder(path), two = open_folder(other);
  struct stat first {
  }, second{};
  return one.ok() && two.ok() && ::fstat(one->number(), &first) == 0 && ::fstat(two->number(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool JobFolder::is_empty_folder(const std::string& path) const {
  Result<Descriptor> folder = open_folder(path);
  if (!folder.ok()) return false;
  DIR* const opened = ::fdopendir(folder->number());
  if (opened == nullptr) return false;
  folder->release();
  bool is_empty = true;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing else reads this stream
  while (const dirent* const entry = ::readdir(opened)) {
    const std::string_view name = entry->d_name;
    is_empty = is_empty && (name == "." || name == "..");
  }
  ::closedir(opened);
  return is_empty;
}

void JobFolder::remove_folder(const std::string& path) const {
  const size_t slash = path.rfind('/');
  const Result<Descriptor> parent =
      open_below(slash == std::string::npos ? "." : path.substr(0, slash), O_RDONLY | O_DIRECTORY);
  if (parent.ok()) ::unlinkat(parent->number(), path.substr(slash + 1).c_str(), AT_REMOVEDIR);
}

}  // namespace foliot
