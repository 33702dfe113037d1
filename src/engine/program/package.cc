#include "engine/program/package.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/program/file.h"
#include "engine/program/file_weights.h"
#include "engine/program/intact_mark.h"
#include "engine/program/metadata.h"
#include "foundation/base/error_text.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

constexpr uint64_t kMetadataBytesMax = uint64_t{1} << 30;
constexpr std::array<char, 8> kMagic{'F', 'o', 'l', 'i', 'o', 't', 'P', '\n'};
constexpr uint32_t kVersion = 2;
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

uint64_t round_up(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

std::string reason() { return error_text(errno); }

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
  const std::string message = fmt::format("cannot write {}: {}", path.string(), error_text(error));
  if (error == ENOSPC || error == EDQUOT) {
    return Status::resource_exhausted(message + "; free some space or choose another folder");
  }
  return Status::internal(message);
}

Result<Header> read_header(const File& file, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return Status::invalid_argument("not a file");
  Header header;
  const int error = read_fully(file, 0, std::as_writable_bytes(std::span(&header, 1)));
  if (error != 0 && error != ENODATA) return Status::internal(error_text(error));
  if (error == ENODATA || header.magic != kMagic) return Status::invalid_argument("not a package of Foliot");
  if (header.version != kVersion) {
    return Status::invalid_argument(
        fmt::format("written by another version of Foliot (format {}, this one reads {}); compile the model again",
                    header.version, kVersion));
  }
  if (hash_of(header) != header.header_hash) return Status::invalid_argument("the header is damaged");
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  if (header.metadata_bytes > kMetadataBytesMax || header.weights_bytes > file_bytes ||
      header.weights_offset != round_up(kBlockBytes + header.metadata_bytes) ||
      header.weights_offset + header.weights_bytes != file_bytes) {
    return Status::invalid_argument("the file is truncated or damaged");
  }
  return header;
}

Result<Program> read_program(const File& file, const Header& header) {
  std::vector<std::byte> bytes(header.metadata_bytes);
  if (const int error = read_fully(file, kBlockBytes, bytes)) return Status::internal(error_text(error));
  if (hash64(bytes) != header.metadata_hash) return Status::invalid_argument("the metadata is damaged");
  FOLIOT_ASSIGN_OR_RETURN(Program program, decode_metadata(bytes));
  if (program.weights_bytes != header.weights_bytes) {
    return Status::invalid_argument("the metadata belongs to other weights");
  }
  return program;
}

Result<Package> open_checked(const std::filesystem::path& path, File file, WeightsTier tier) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return Status::internal(reason());
  FOLIOT_ASSIGN_OR_RETURN(const Header header, read_header(file, status));
  FOLIOT_ASSIGN_OR_RETURN(Program program, read_program(file, header));
  WeightsRange range{.path = path.string(),
                     .offset = header.weights_offset,
                     .bytes = header.weights_bytes,
                     .hash = header.weights_hash};
  if (!is_marked_intact(file, status)) {
    FOLIOT_RETURN_IF_ERROR(check_weights(file, range));
    mark_intact(file, status);
  }
  Package package;
  package.program = std::make_shared<const Program>(std::move(program));
  package.file = std::make_shared<PackageFile>(std::move(file), status, std::move(range));
  if (tier == WeightsTier::kDisk) {
    package.weights = weights_on_disk(package.file);
  } else {
    FOLIOT_ASSIGN_OR_RETURN(package.weights, weights_in_memory(package.file));
  }
  return package;
}

}  // namespace

Status write_package(const File& file, const Program& program, std::span<const std::byte> weights) {
  FOLIOT_CHECK(weights.size() == program.weights_bytes);
  const std::string metadata = encode_metadata(program);
  if (metadata.size() > kMetadataBytesMax) {
    return Status::resource_exhausted(
        fmt::format("{} bytes of metadata are too many; use fewer batch sizes or buckets", metadata.size()));
  }
  Header header;
  header.metadata_bytes = metadata.size();
  header.metadata_hash = hash64(std::as_bytes(std::span(metadata)));
  header.weights_offset = round_up(kBlockBytes + metadata.size());
  header.weights_bytes = weights.size();
  StreamHash weights_hash;
  weights_hash.update(weights);
  header.weights_hash = weights_hash.digest64();
  header.header_hash = hash_of(header);

  std::vector<std::byte> front(header.weights_offset);
  std::memcpy(front.data(), &header, sizeof(header));
  std::memcpy(front.data() + kBlockBytes, metadata.data(), metadata.size());
  return write_fully(file, 0, front) && write_fully(file, front.size(), weights) ? Status()
                                                                                 : write_failure("the package");
}

Status write_package(const std::filesystem::path& path, const Program& program, std::span<const std::byte> weights) {
  TemporaryFile temporary(path);
  if (!temporary.file().is_open()) return write_failure(path);
  FOLIOT_RETURN_IF_ERROR(write_package(temporary.file(), program, weights).with_context(path.string()));
  const int descriptor = temporary.file().descriptor();
  struct stat status {};
  if (::fchmod(descriptor, 0644) != 0 || ::fstat(descriptor, &status) != 0) return write_failure(path);
  mark_intact(temporary.file(), status);
  if (::fsync(descriptor) != 0 || !temporary.rename_to(path) || !sync_folder(path.parent_path())) {
    return write_failure(path);
  }
  return {};
}

Result<Package> open_package(const std::filesystem::path& path, WeightsTier tier) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    const int error = errno;
    const std::string message = fmt::format("cannot open {}: {}", path.string(), error_text(error));
    return error == ENOENT ? Status::not_found(message) : Status::internal(message);
  }
  Result<Package> package = open_checked(path, std::move(file), tier);
  if (!package.ok()) return package.status().with_context(path.string());
  return package;
}

}  // namespace foliot
