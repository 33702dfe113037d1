#include "engine/program/file_weights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "engine/program/mapped_copy.h"
#include "foundation/base/error_text.h"
#include "foundation/base/memory_lock.h"

namespace foliot {
namespace {

// A file that is written to without end is not read again and again.
constexpr int kReadsMax = 3;

class FileWeights : public WeightsSource {
 public:
  explicit FileWeights(std::shared_ptr<PackageFile> file) : file_(std::move(file)) {}
  uint64_t bytes() const final { return range().bytes; }
  Status read(uint64_t offset, std::span<std::byte> to) final {
    FOLIOT_CHECK(offset <= bytes() && to.size() <= bytes() - offset);
    for (int i = 0; i < kReadsMax; ++i) {
      FOLIOT_RETURN_IF_ERROR(file_->check());
      if (const int error = read_from(range().offset + offset, to)) {
        return file_->fail(error == ENODATA ? "it was cut short" : error_text(error));
      }
      if (file_->is_unchanged()) return {};
    }
    return Status::internal(fmt::format("{} is written to while in use", range().path));
  }

 protected:
  // Like read_fully().
  virtual int read_from(uint64_t offset, std::span<std::byte> to) { return read_fully(file(), offset, to); }
  const File& file() const { return file_->file(); }
  const WeightsRange& range() const { return file_->range(); }

 private:
  const std::shared_ptr<PackageFile> file_;
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
  DiskWeights(std::shared_ptr<PackageFile> file, File direct)
      : FileWeights(std::move(file)), direct_(std::move(direct)) {}

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

Result<std::shared_ptr<WeightsSource>> weights_in_memory(std::shared_ptr<PackageFile> file) {
  auto weights = std::make_shared<MemoryWeights>(std::move(file));
  if (weights->bytes() > 0) FOLIOT_RETURN_IF_ERROR(weights->settle());
  return std::shared_ptr<WeightsSource>(std::move(weights));
}

std::shared_ptr<WeightsSource> weights_on_disk(std::shared_ptr<PackageFile> file) {
  // The very file that was checked, though another may have taken its name meanwhile.
  const std::string same = fmt::format("/proc/self/fd/{}", file->file().descriptor());
  File direct(::open(same.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  return std::make_shared<DiskWeights>(std::move(file), std::move(direct));
}

}  // namespace foliot
