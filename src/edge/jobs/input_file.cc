#include "edge/jobs/input_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "foundation/base/error_text.h"

namespace foliot {
namespace {

// Of what was found there.
std::string identity_of(const std::string& path, const struct stat& found) {
  return fmt::format("{}:{}:{}.{:09}", path, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

// How many there were, at the most that many.
Result<size_t> read_at(int file, std::span<std::byte> bytes, uint64_t offset) {
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count = ::pread(file, bytes.data() + got, bytes.size() - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::internal(error_text(errno));
    if (count == 0) break;
    got += static_cast<size_t>(count);
  }
  return got;
}

}  // namespace

Result<InputFile> InputFile::open(const JobFolder& folder, const std::string& path) {
  const auto context = [&](const Status& status) {
    return Status(status.code(), fmt::format("{} {}", path, status.message()));
  };
  FOLIOT_ASSIGN_OR_RETURN(Descriptor file, folder.open_file(path));
  struct stat found {};
  if (::fstat(file.number(), &found) != 0) return Status::internal(fmt::format("{}: {}", path, error_text(errno)));
  const auto size = static_cast<uint64_t>(found.st_size);
  std::vector<std::byte> begin(std::min<uint64_t>(size, kNpyHeaderBytesMax));
  const Result<size_t> got = read_at(file.number(), begin, 0);
  if (!got.ok()) return context(got.status());
  Result<NpyHeader> header = parse_npy_header(std::span(begin).first(*got));
  if (!header.ok()) return context(header.status());
  if (header->shape.empty() || header->shape.front() == 0)
    return Status::invalid_argument(fmt::format("{} has no rows", path));
  if (size != header->file_bytes()) {
    return Status::invalid_argument(
        fmt::format("{} has {} bytes, and its header says {}: it is damaged, or still being written", path, size,
                    header->file_bytes()));
  }
  return InputFile(path, std::move(file), std::move(header).value(), identity_of(path, found));
}

Status InputFile::check_unchanged() const {
  struct stat found {};
  if (::fstat(file_.number(), &found) != 0) return Status::internal(fmt::format("{}: {}", path_, error_text(errno)));
  if (identity_of(path_, found) == identity_) return Status();
  return Status::invalid_argument(fmt::format(
      "{} was written to while the job read it: write inputs under another name, and submit it again", path_));
}

Status InputFile::read(uint64_t begin, uint64_t end, std::vector<std::byte>& bytes) const {
  bytes.resize((end - begin) * row_bytes_);
  const Result<size_t> got = read_at(file_.number(), bytes, header_.data_offset + begin * row_bytes_);
  if (!got.ok()) return got.status().with_context(path_);
  if (*got == bytes.size()) return Status();
  return Status::invalid_argument(fmt::format("{} has become shorter: rows {} to {} are not there", path_, begin, end));
}

}  // namespace foliot
