#include "program/file_weights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error_text.h"
#include "base/memory_lock.h"
#include "program/mapped_copy.h"

namespace foliot {
namespace {

class FileWeights : public WeightsSource {
 public:
  FileWeights(File file, WeightsRange range) : file_(std::move(file)), range_(std::move(range)) {}
  uint64_t bytes() const final { return range_.bytes; }
  Status read(uint64_t offset, std::span<std::byte> to) final {
    FOLIOT_CHECK(offset <= bytes() && to.size() <= bytes() - offset);
    const int error = read_from(range_.offset + offset, to);
    if (error == ENODATA) return Status::internal(fmt::format("{} was cut short while in use", range_.path));
    if (error != 0) return Status::internal(fmt::format("cannot read {}: {}", range_.path, error_text(error)));
    return {};
  }

 protected:
  // Like read_fully().
  virtual int read_from(uint64_t offset, std::span<std::byte> to) { return read_fully(file_, offset, to); }
  const File& file() const { return file_; }
  const WeightsRange& range() const { return range_; }

 private:
  File file_;
  WeightsRange range_;
};

class MemoryWeights final : public FileWeights {
 public:
  using FileWeights::FileWeights;
  ~MemoryWeights() override {
    if (resident_ != MAP_FAILED) ::munmap(resident_, range().bytes);
  }

  Status settle() {
    resident_ =
        ::mmap(nullptr, range().bytes, PROT_READ, MAP_SHARED, file().descriptor(), static_cast<off_t>(range().offset));
    if (resident_ == MAP_FAILED) return failure(errno);
    // What is not in memory yet is then read in pieces of the size of huge pages, where
    // the file system can, and mapped as such. Nothing else depends on it.
    ::madvise(resident_, range().bytes, MADV_HUGEPAGE);
    if (lock_into_memory(resident_, range().bytes)) return {};
    // Not allowed to lock, or the file cannot be read: mlock() reports both alike.
    if (::madvise(resident_, range().bytes, MADV_POPULATE_READ) != 0) return failure(errno);
    return {};
  }

 protected:
  int read_from(uint64_t offset, std::span<std::byte> to) override {
    if (to.empty()) return 0;
    const bool copied = copy_from_mapped_file(to, static_cast<const std::byte*>(resident_) + (offset - range().offset));
    // Asked afterwards: it may have been cut short while it was copied.
    struct stat status {};
    if (::fstat(file().descriptor(), &status) != 0) return errno;
    if (static_cast<uint64_t>(status.st_size) < offset + to.size()) return ENODATA;
    return copied ? 0 : EIO;
  }

 private:
  Status failure(int error) const {
    const bool unreadable = error == EFAULT || error == EIO;  // the former is madvise()'s word for it
    const std::string message = fmt::format("cannot bring {} bytes of weights of {} into memory: {}", range().bytes,
                                            range().path, error_text(unreadable ? EIO : error));
    return unreadable ? Status::internal(message) : Status::resource_exhausted(message);
  }

  void* resident_ = MAP_FAILED;
};

class DiskWeights final : public FileWeights {
 public:
  // `direct` is closed if the file system does not do direct I/O.
  DiskWeights(File file, File direct, WeightsRange range)
      : FileWeights(std::move(file), std::move(range)), direct_(std::move(direct)) {}

 protected:
  int read_from(uint64_t offset, std::span<std::byte> to) override {
    const bool aligned = offset % kBlockBytes == 0 && to.size() % kBlockBytes == 0 &&
                         reinterpret_cast<uintptr_t>(to.data()) % kBlockBytes == 0;
    int error = EINVAL;
    if (direct_.is_open() && aligned) error = read_fully(direct_, offset, to);
    // Some file systems accept O_DIRECT when opening and refuse it when reading.
    return error == EINVAL ? FileWeights::read_from(offset, to) : error;
  }

 private:
  File direct_;
};

}  // namespace

Result<std::shared_ptr<WeightsSource>> weights_in_memory(File file, WeightsRange range) {
  const bool empty = range.bytes == 0;
  auto weights = std::make_shared<MemoryWeights>(std::move(file), std::move(range));
  if (!empty) FOLIOT_RETURN_IF_ERROR(weights->settle());
  return std::shared_ptr<WeightsSource>(std::move(weights));
}

std::shared_ptr<WeightsSource> weights_on_disk(File file, WeightsRange range) {
  // The very file that was checked, though another may have taken its name meanwhile.
  const std::string same = fmt::format("/proc/self/fd/{}", file.descriptor());
  File direct(::open(same.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  return std::make_shared<DiskWeights>(std::move(file), std::move(direct), std::move(range));
}

}  // namespace foliot
