#include "program/package.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "program/metadata.h"

namespace foliot {
namespace {

constexpr uint64_t kBlock = 4096;  // what direct I/O aligns to
constexpr uint64_t kChunkBytes = uint64_t{8} << 20;
constexpr uint64_t kMetadataBytesMax = uint64_t{1} << 30;
constexpr std::array<char, 8> kMagic{'F', 'o', 'l', 'i', 'o', 't', 'P', '\n'};
constexpr uint32_t kVersion = 1;
static_assert(std::endian::native == std::endian::little, "packages are little-endian");

// The first bytes of the file; the rest of its block is zeros.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t reserved = 0;
  uint64_t metadata_bytes = 0;
  uint64_t metadata_hash = 0;
  uint64_t weights_offset = 0;
  uint64_t weights_bytes = 0;
  uint64_t weights_hash = 0;
  uint64_t header_hash = 0;  // of all before it
};
static_assert(sizeof(Header) == 64);

uint64_t hash_of(const Header& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_hash)));
}

uint64_t round_up(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

std::string reason() { return std::strerror(errno); }

// A file descriptor that closes itself.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// Zero, or the errno of what went wrong; ENODATA when the file ends early.
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

bool write_fully(const File& file, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t put = ::write(file.descriptor(), from.data(), std::min<uint64_t>(from.size(), kChunkBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    from = from.subspan(static_cast<size_t>(put));
  }
  return true;
}

// Removes the temporary file unless it became the package.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target) : path_(target.string() + ".XXXXXX") {
    file_ = File(::mkostemp(path_.data(), O_CLOEXEC));
  }
  ~TemporaryFile() {
    if (file_.is_open() && !kept_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const File& file() const { return file_; }
  bool rename_to(const std::filesystem::path& target) {
    kept_ = ::rename(path_.c_str(), target.c_str()) == 0;
    return kept_;
  }

 private:
  std::string path_;
  File file_;
  bool kept_ = false;
};

// So that the rename survives a power failure.
bool sync_folder(const std::filesystem::path& folder) {
  const File file(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return file.is_open() && ::fsync(file.descriptor()) == 0;
}

Status write_failure(const std::filesystem::path& path) {
  const int error = errno;
  const std::string message = fmt::format("cannot write {}: {}", path.string(), std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) {
    return Status::resource_exhausted(message + "; free some space or choose another folder");
  }
  return Status::internal(message);
}

// Memory that starts at a block, as direct I/O wants it.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  // Empty if there is not enough memory.
  explicit AlignedBytes(uint64_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(kBlock, round_up(std::max<uint64_t>(bytes, 1)))), &std::free),
        size_(data_ == nullptr ? 0 : bytes) {}
  bool is_allocated() const { return data_ != nullptr; }
  std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> data_{nullptr, &std::free};
  uint64_t size_ = 0;
};

class MemoryWeights final : public WeightsSource {
 public:
  explicit MemoryWeights(AlignedBytes bytes) : bytes_(std::move(bytes)) {}
  uint64_t bytes() const override { return bytes_.span().size(); }
  Status read(uint64_t offset, std::span<std::byte> to) override {
    FOLIOT_CHECK(offset <= bytes() && to.size() <= bytes() - offset);
    if (!to.empty()) std::memcpy(to.data(), bytes_.span().data() + offset, to.size());
    return {};
  }

 private:
  AlignedBytes bytes_;
};

class DiskWeights final : public WeightsSource {
 public:
  // `direct` may be closed: the file system does not do direct I/O.
  DiskWeights(std::string path, File buffered, File direct, uint64_t offset, uint64_t bytes)
      : path_(std::move(path)),
        buffered_(std::move(buffered)),
        direct_(std::move(direct)),
        offset_(offset),
        bytes_(bytes) {}

  uint64_t bytes() const override { return bytes_; }

  Status read(uint64_t offset, std::span<std::byte> to) override {
    FOLIOT_CHECK(offset <= bytes_ && to.size() <= bytes_ - offset);
    const bool aligned =
        offset % kBlock == 0 && to.size() % kBlock == 0 && reinterpret_cast<uintptr_t>(to.data()) % kBlock == 0;
    int error = EINVAL;
    if (direct_.is_open() && aligned) error = read_fully(direct_, offset_ + offset, to);
    // Some file systems accept O_DIRECT when opening and refuse it when reading.
    if (error == EINVAL) error = read_fully(buffered_, offset_ + offset, to);
    if (error == ENODATA) return Status::internal(fmt::format("{} was cut short while in use", path_));
    if (error != 0) return Status::internal(fmt::format("cannot read {}: {}", path_, std::strerror(error)));
    return {};
  }

 private:
  std::string path_;
  File buffered_;
  File direct_;
  uint64_t offset_;
  uint64_t bytes_;
};

Result<Header> read_header(const File& file) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return Status::internal(reason());
  if (!S_ISREG(status.st_mode)) return Status::invalid_argument("not a file");
  Header header;
  const int error = read_fully(file, 0, std::as_writable_bytes(std::span(&header, 1)));
  if (error != 0 && error != ENODATA) return Status::internal(std::strerror(error));
  if (error == ENODATA || header.magic != kMagic) return Status::invalid_argument("not a package of Foliot");
  if (header.version != kVersion) {
    return Status::invalid_argument(
        fmt::format("written by another version of Foliot (format {}, this one reads {}); compile the model again",
                    header.version, kVersion));
  }
  if (hash_of(header) != header.header_hash) return Status::invalid_argument("the header is damaged");
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  if (header.metadata_bytes > kMetadataBytesMax || header.weights_bytes > file_bytes ||
      header.weights_offset != round_up(kBlock + header.metadata_bytes) ||
      header.weights_offset + header.weights_bytes != file_bytes) {
    return Status::invalid_argument("the file is truncated or damaged");
  }
  return header;
}

Result<Program> read_program(const File& file, const Header& header) {
  std::vector<std::byte> bytes(header.metadata_bytes);
  if (const int error = read_fully(file, kBlock, bytes)) return Status::internal(std::strerror(error));
  if (hash64(bytes) != header.metadata_hash) return Status::invalid_argument("the metadata is damaged");
  FOLIOT_ASSIGN_OR_RETURN(Program program, decode_metadata(bytes));
  if (program.weights_bytes != header.weights_bytes) {
    return Status::invalid_argument("the metadata belongs to other weights");
  }
  return program;
}

Result<AlignedBytes> read_weights(const File& file, const Header& header) {
  AlignedBytes bytes(header.weights_bytes);
  if (!bytes.is_allocated()) {
    return Status::resource_exhausted(fmt::format("no memory for {} bytes of weights", header.weights_bytes));
  }
  if (const int error = read_fully(file, header.weights_offset, bytes.span())) {
    return Status::internal(std::strerror(error));
  }
  if (hash64(bytes.span()) != header.weights_hash) return Status::invalid_argument("the weights are damaged");
  return bytes;
}

Result<Package> open_checked(const std::filesystem::path& path, File file, WeightsTier tier, bool verify) {
  FOLIOT_ASSIGN_OR_RETURN(const Header header, read_header(file));
  FOLIOT_ASSIGN_OR_RETURN(Program program, read_program(file, header));
  Package package;
  package.program = std::make_shared<const Program>(std::move(program));
  if (tier == WeightsTier::kMemory || verify) {
    FOLIOT_ASSIGN_OR_RETURN(AlignedBytes weights, read_weights(file, header));
    if (tier == WeightsTier::kMemory) package.weights = std::make_shared<MemoryWeights>(std::move(weights));
  }
  if (tier == WeightsTier::kDisk) {
    // The very file that was checked, though another may have taken its name meanwhile.
    const std::string same = fmt::format("/proc/self/fd/{}", file.descriptor());
    File direct(::open(same.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    package.weights = std::make_shared<DiskWeights>(path.string(), std::move(file), std::move(direct),
                                                    header.weights_offset, header.weights_bytes);
  }
  return package;
}

}  // namespace

Status write_package(const std::filesystem::path& path, const Program& program, std::span<const std::byte> weights) {
  FOLIOT_CHECK(weights.size() == program.weights_bytes);
  const std::string metadata = encode_metadata(program);
  if (metadata.size() > kMetadataBytesMax) {
    return Status::resource_exhausted(
        fmt::format("cannot write {}: {} bytes of metadata are too many; use fewer "
                    "batch sizes or buckets",
                    path.string(), metadata.size()));
  }
  Header header;
  header.metadata_bytes = metadata.size();
  header.metadata_hash = hash64(std::as_bytes(std::span(metadata)));
  header.weights_offset = round_up(kBlock + metadata.size());
  header.weights_bytes = weights.size();
  header.weights_hash = hash64(weights);
  header.header_hash = hash_of(header);

  std::vector<std::byte> front(header.weights_offset);
  std::memcpy(front.data(), &header, sizeof(header));
  std::memcpy(front.data() + kBlock, metadata.data(), metadata.size());

  TemporaryFile temporary(path);
  if (!temporary.file().is_open()) return write_failure(path);
  if (!write_fully(temporary.file(), front) || !write_fully(temporary.file(), weights) ||
      ::fchmod(temporary.file().descriptor(), 0644) != 0 || ::fsync(temporary.file().descriptor()) != 0 ||
      !temporary.rename_to(path) || !sync_folder(path.parent_path())) {
    return write_failure(path);
  }
  return {};
}

Result<Package> open_package(const std::filesystem::path& path, WeightsTier tier, bool verify) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    const int error = errno;
    const std::string message = fmt::format("cannot open {}: {}", path.string(), std::strerror(error));
    return error == ENOENT ? Status::not_found(message) : Status::internal(message);
  }
  Result<Package> package = open_checked(path, std::move(file), tier, verify);
  if (!package.ok()) return package.status().with_context(path.string());
  return package;
}

}  // namespace foliot
