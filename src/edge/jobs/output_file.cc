#include "edge/jobs/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <vector>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

constexpr size_t kOutputNameBytesMax = 200;

Status output_failure(const std::string& file, std::string_view what, int error) {
  std::string text = fmt::format("output {}: cannot {}: {}", file, what, error_text(error));
  if (error == ENOSPC || error == EDQUOT) return Status::resource_exhausted(text + "; free space on its disk");
  return Status::internal(std::move(text));
}

int write_at(int file, std::span<const std::byte> bytes, uint64_t offset) {
  for (size_t put = 0; put < bytes.size();) {
    const ssize_t count = ::pwrite(file, bytes.data() + put, bytes.size() - put, static_cast<off_t>(offset + put));
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) put += static_cast<size_t>(count);
  }
  return 0;
}

Status check_output_name(const std::string& name) {
  const bool is_fit = !name.empty() && name.size() <= kOutputNameBytesMax && name.front() != '.' &&
                      name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (is_fit) return Status();
  return Status::invalid_argument(fmt::format("output '{}' cannot be the name of a file", name));
}

// The file of an earlier run.
Status check_begun(const std::string& file_name, int file, const std::string& header, uint64_t bytes) {
  struct stat found {};
  std::string begin(header.size(), '\0');
  const bool same = ::fstat(file, &found) == 0 && static_cast<uint64_t>(found.st_size) == bytes &&
                    ::pread(file, begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) &&
                    begin == header;
  if (same) return Status();
  return Status::invalid_argument(
      fmt::format("output {} is not the array that the job began: submit it again with another 'output'", file_name));
}

// Room for all of it, its header, and then its name.
Result<Descriptor> make_output(const Descriptor& folder, const std::string& file_name, const std::string& header,
                               uint64_t bytes) {
  const std::string made = "." + file_name + ".new";
  Descriptor file(::openat(folder.number(), made.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file.is_open()) return output_failure(file_name, "be made", errno);
  const auto fail = [&](std::string_view what, int error) {
    ::unlinkat(folder.number(), made.c_str(), 0);
    return output_failure(file_name, what, error);
  };
  if (const int error = ::posix_fallocate(file.number(), 0, static_cast<off_t>(bytes)); error != 0) {
    return fail(fmt::format("have its {} bytes", bytes), error);
  }
  if (const int error = write_at(file.number(), std::as_bytes(std::span(header)), 0); error != 0) {
    return fail("be written", error);
  }
  if (::fsync(file.number()) != 0) return fail("be written", errno);
  if (::renameat(folder.number(), made.c_str(), folder.number(), file_name.c_str()) != 0) {
    return fail("be named", errno);
  }
  if (::fsync(folder.number()) != 0) return output_failure(file_name, "be named", errno);
  return file;
}

}  // namespace

Result<OutputFile> OutputFile::open(const Descriptor& folder, const std::string& name, DataType type, Shape row_shape,
                                    uint64_t rows, bool is_begun) {
  FOLIOT_RETURN_IF_ERROR(check_output_name(name));
  if (type == DataType::kBytes) {
    return Status::invalid_argument(fmt::format("output '{}' has strings, which .npy files of jobs cannot have", name));
  }
  const std::string file_name = name + ".npy";
  Shape shape = row_shape;
  shape.insert(shape.begin(), static_cast<int64_t>(rows));
  const std::string header = npy_header(type, shape);
  const uint64_t bytes = header.size() + byte_size(type, shape);
  Descriptor file(::openat(folder.number(), file_name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.is_open()) {
    FOLIOT_RETURN_IF_ERROR(check_begun(file_name, file.number(), header, bytes));
  } else if (is_begun) {
    return output_failure(file_name, "be continued", errno);
  } else {
    FOLIOT_ASSIGN_OR_RETURN(file, make_output(folder, file_name, header, bytes));
  }
  return OutputFile(file_name, std::move(file), type, std::move(row_shape), header.size());
}

Status OutputFile::write(uint64_t begin, std::span<const std::byte> bytes) {
  const int error = write_at(file_.number(), bytes, data_offset_ + begin * row_bytes_);
  return error == 0 ? Status() : output_failure(file_name_, "be written", error);
}

bool OutputFile::is_in(const Descriptor& folder) const {
  struct stat ours {
  }, found{};
  return ::fstat(file_.number(), &ours) == 0 &&
         ::fstatat(folder.number(), file_name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         ours.st_dev == found.st_dev && ours.st_ino == found.st_ino;
}

Status OutputFile::sync() {
  return ::fdatasync(file_.number()) == 0 ? Status() : output_failure(file_name_, "be synced", errno);
}

}  // namespace foliot
