#include "foundation/objectstore/download.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "foundation/base/error_text.h"
#include "foundation/base/units.h"
#include "foundation/objectstore/etag_check.h"

namespace foliot {
namespace {

class Download {
 public:
  Download(ObjectStore& store, const StoredObject& object, int file) : store_(store), object_(object), file_(file) {}

  Result<bool> run() {
    if (EtagCheck::is_of_parts(object_)) {
      FOLIOT_ASSIGN_OR_RETURN(part_bytes_, store_.part_bytes(object_));
    }
    FOLIOT_RETURN_IF_ERROR(take_beginning());
    if (object_.bytes == 0) return true;
    for (int damaged = 0; damaged < kDamagedMax; ++damaged) {
      FOLIOT_RETURN_IF_ERROR(load_rest());
      if (!etag_of_content_ || !check_->is_possible()) return false;
      if (check_->matches()) return true;
      FOLIOT_RETURN_IF_ERROR(begin_anew());
    }
    return Status::unavailable(fmt::format(
        "{}/{}: its {} do not match its ETag '{}', {} times in a row; the network damages them, or the store's copy is "
        "damaged: write the object again",
        store_.place(), object_.key, format_bytes(object_.bytes), object_.etag, kDamagedMax));
  }

 private:
  Status file_failure(const char* what) const {
    const int error = errno;
    const std::string text = fmt::format("{}/{}: cannot {} its file of {}: {}", store_.place(), object_.key, what,
                                         format_bytes(object_.bytes), error_text(error));
    const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return is_full ? Status::resource_exhausted(text + "; make room, or choose another folder")
                   : Status::internal(text);
  }

  Status begin_anew() {
    check_.emplace(object_, part_bytes_);
    bytes_ = 0;
    return ::ftruncate(file_, 0) == 0 ? Status() : file_failure("empty");
  }

  Status take_beginning() {
    FOLIOT_RETURN_IF_ERROR(stat_length());
    if (bytes_ > object_.bytes) return begin_anew();
    check_.emplace(object_, part_bytes_);
    std::vector<std::byte> piece(256 << 10);
    for (uint64_t offset = 0; offset < bytes_;) {
      const ssize_t count = ::pread(file_, piece.data(), piece.size(), static_cast<off_t>(offset));
      if (count <= 0) return count == 0 ? begin_anew() : file_failure("read");
      check_->update(std::span(piece).first(static_cast<size_t>(count)));
      offset += static_cast<uint64_t>(count);
    }
    return Status();
  }

  Status stat_length() {
    struct stat about {};
    if (::fstat(file_, &about) != 0) return file_failure("look at");
    bytes_ = static_cast<uint64_t>(about.st_size);
    return Status();
  }

  Status load_rest() {
    for (int fruitless = 0; bytes_ < object_.bytes;) {
      const uint64_t before = bytes_;
      const Result<bool> read = store_.read(object_, bytes_, [this](auto bytes) { return take(bytes); });
      if (read.ok()) etag_of_content_ = *read;
      if (bytes_ >= object_.bytes) return Status();
      if (!read.ok() && read.status().code() != StatusCode::kUnavailable) return read.status();
      fruitless = bytes_ > before ? 0 : fruitless + 1;
      if (fruitless < kFruitlessMax) continue;
      return read.ok() ? Status::unavailable(fmt::format("{}/{}: the store gives {} bytes of {}", store_.place(),
                                                         object_.key, bytes_, object_.bytes))
                       : read.status();
    }
    return Status();
  }

  Status take(std::span<const std::byte> bytes) {
    if (bytes.size() > object_.bytes - bytes_) {
      return Status::not_found(fmt::format("{}/{}: it has more than the {} bytes that were listed", store_.place(),
                                           object_.key, object_.bytes));
    }
    check_->update(bytes);
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_failure("write");
      bytes_ += static_cast<uint64_t>(count);
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return Status();
  }

  ObjectStore& store_;
  const StoredObject& object_;
  const int file_;
  std::optional<uint64_t> part_bytes_;
  std::optional<EtagCheck> check_;
  uint64_t bytes_ = 0;  // of the file
  bool etag_of_content_ = true;
};

}  // namespace

Result<bool> download(ObjectStore& store, const StoredObject& object, int file) {
  return Download(store, object, file).run();
}

}  // namespace foliot
