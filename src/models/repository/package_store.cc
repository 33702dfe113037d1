#include "models/repository/package_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foundation/base/error_text.h"
#include "foundation/base/hash.h"
#include "foundation/platform/descriptor.h"
#include "models/repository/model_hash.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// How often one that waits for another's compilation looks whether it is cancelled.
constexpr Duration kCancelInterval = Duration::milliseconds(50);

}  // namespace

// A file beside the package, removed unless it becomes the package.
class PackageStore::Draft {
 public:
  explicit Draft(const fs::path& package)
      : package_(package), path_(package.string() + ".XXXXXX"), file_(::mkostemp(path_.data(), O_CLOEXEC)) {}
  ~Draft() {
    if (file_.is_open() && !published_) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  const Descriptor& file() const { return file_; }
  const std::string& path() const { return path_; }
  bool publish() {
    published_ = ::fchmod(file_.number(), 0644) == 0 && ::fsync(file_.number()) == 0 &&
                 ::rename(path_.c_str(), package_.c_str()) == 0;
    return published_;
  }

 private:
  const fs::path package_;
  std::string path_;
  Descriptor file_;
  bool published_ = false;
};

// The right to compile a key, which one thread at a time has.
class PackageStore::Turn {
 public:
  Turn(PackageStore& store, std::string key) : store_(store), key_(std::move(key)) {}
  ~Turn() {
    if (!has_it_) return;
    {
      const MutexLock lock(store_.mutex_);
      store_.compiling_.erase(key_);
    }
    store_.turned_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  // Errors: kUnavailable if cancelled.
  Status wait(const CompileWatch& watch) {
    MutexLock lock(store_.mutex_);
    while (!(has_it_ = store_.compiling_.insert(key_).second)) {
      if (watch.cancelled && watch.cancelled()) return Status::unavailable("compiling was cancelled");
      store_.turned_.wait_for(store_.mutex_, kCancelInterval);
    }
    return {};
  }

 private:
  PackageStore& store_;
  const std::string key_;
  bool has_it_ = false;
};

PackageStore::PackageStore(fs::path folder, WeightsTier tier, std::string device, Compile compile,
                           std::shared_ptr<PackageShare> share)
    : folder_(std::move(folder)),
      tier_(tier),
      device_(std::move(device)),
      compile_(std::move(compile)),
      share_(std::move(share)) {}

fs::path PackageStore::file_of(const std::string& key) const { return folder_ / (key + ".foliot"); }

Result<std::string> PackageStore::key_of(const fs::path& model, const CompileOptions& options) const {
  FOLIOT_ASSIGN_OR_RETURN(Hashes hashes, hash(model, options));
  return std::move(hashes.key);
}

Result<PackageStore::Hashes> PackageStore::hash(const fs::path& model, const CompileOptions& options) const {
  StreamHash hash;
  FOLIOT_RETURN_IF_ERROR(add_model_files(model, hash, options.owns_folder));
  const std::string how = compile_fingerprint(options) + "\n";
  hash.update(std::as_bytes(std::span(how)));
  Hashes hashes{.content = hash.digest_hex(), .key = {}};
  hash.update(std::as_bytes(std::span(device_)));
  hashes.key = hash.digest_hex();
  return hashes;
}

Status PackageStore::cannot_write(const std::string& reason) const {
  return Status::internal(
      fmt::format("cannot write into the folder for compiled models {}: {}; make it writable, or choose another "
                  "with --cache",
                  folder_.string(), reason));
}

Status PackageStore::check_writable() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return cannot_write(error.message());
  if (const Draft draft(folder_ / "writable"); !draft.file().is_open()) return cannot_write(error_text(errno));
  return {};
}

Result<std::optional<Package>> PackageStore::find(const fs::path& model, const CompileOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(const Hashes hashes, hash(model, options));
  Result<Package> package = open_or_fetch(hashes.key);
  if (!package.ok()) return std::optional<Package>();
  package->content = hashes.content;
  return std::optional<Package>(std::move(package).value());
}

Result<Package> PackageStore::get(const fs::path& model, const CompileOptions& options, const CompileWatch& watch) {
  FOLIOT_ASSIGN_OR_RETURN(const Hashes hashes, hash(model, options));
  return get_with(hashes, model, options, watch);
}

Result<Package> PackageStore::get_first(const fs::path& model, CompileOptions options, const CompileWatch& watch) {
  options.first_size_only = true;
  FOLIOT_ASSIGN_OR_RETURN(const Hashes hashes, hash(model, options));
  return get_with(hashes, model, options, watch);
}

Result<Package> PackageStore::get_with(const Hashes& hashes, const fs::path& model, const CompileOptions& options,
                                       const CompileWatch& watch) {
  Turn turn(*this, hashes.key);
  FOLIOT_RETURN_IF_ERROR(turn.wait(watch));
  Result<Package> package = options.first_size_only ? open(hashes.key) : open_or_fetch(hashes.key);
  if (!package.ok()) package = compile_and_open(hashes.key, model, options, watch);
  if (package.ok()) package->content = hashes.content;
  return package;
}

Result<Package> PackageStore::compile_and_open(const std::string& key, const fs::path& model,
                                               const CompileOptions& options, const CompileWatch& watch) {
  std::error_code error;
  fs::create_directories(folder_, error);
  Draft draft(file_of(key));
  if (error || !draft.file().is_open()) return cannot_write(error ? error.message() : error_text(errno));
  FOLIOT_RETURN_IF_ERROR(compile_to(draft, model, options, watch));
  FOLIOT_ASSIGN_OR_RETURN(const std::string key_now, key_of(model, options));
  if (key_now != key) {
    return Status::unavailable(fmt::format("{} changed while it was compiled; load it again", model.string()));
  }
  if (options.first_size_only) return open_file(key, draft.path());
  if (!draft.publish()) {
    return Status::internal(fmt::format("cannot write {}: {}", file_of(key).string(), error_text(errno)));
  }
  Result<Package> package = open(key);
  if (!package.ok()) {
    fs::remove(file_of(key), error);
  } else if (share_ != nullptr) {
    share_->offer(key, file_of(key));
  }
  return package;
}

Status PackageStore::compile_to(const Draft& draft, const fs::path& model, const CompileOptions& options,
                                const CompileWatch& watch) {
  const Status compiled = compile_(model, options, draft.file().number(), watch);
  // The compiling process knows the file and not its name, which a message about a full
  // disk needs.
  if (compiled.code() == StatusCode::kResourceExhausted) {
    return compiled.with_context(fmt::format("compiling into {}", folder_.string()));
  }
  return compiled;
}

Result<Package> PackageStore::open(const std::string& key) {
  if (std::optional<Package> package = find_open(key)) return *std::move(package);
  return open_file(key, file_of(key));
}

// What was shared is checked as what lies here: a damaged package is compiled in its place, and offered.
Result<Package> PackageStore::open_or_fetch(const std::string& key) {
  Result<Package> package = open(key);
  if (package.ok() || share_ == nullptr) return package;
  std::error_code error;
  fs::create_directories(folder_, error);
  Draft draft(file_of(key));
  if (!draft.file().is_open() || !share_->fetch(key, draft.file().number())) return package;
  FOLIOT_RETURN_IF_ERROR(open_package(draft.path(), tier_).status());
  if (!draft.publish()) return package;
  return open(key);
}

std::optional<Package> PackageStore::find_open(const std::string& key) {
  Package package;
  {
    const MutexLock lock(mutex_);
    const auto found = open_.find(key);
    if (found == open_.end()) return std::nullopt;
    const Open& open = found->second;
    package = {.program = open.program.lock(), .weights = open.weights.lock(), .file = open.file.lock()};
  }
  if (package.program == nullptr || package.weights == nullptr || package.file == nullptr) return std::nullopt;
  return package.file->check().ok() ? std::optional(std::move(package)) : std::nullopt;
}

Result<Package> PackageStore::open_file(const std::string& key, const fs::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(Package package, open_package(file, tier_));
  const std::string device = package.program->device_kind + " " + package.program->device_fingerprint;
  if (device != device_) {
    return Status::invalid_argument(
        fmt::format("{} was compiled for {}, and this is {}", file.string(), device, device_));
  }
  const MutexLock lock(mutex_);
  // Each is looked at a few times in all, however many there are.
  if (open_.size() >= open_max_) {
    std::erase_if(open_, [](const auto& entry) { return entry.second.program.expired(); });
    open_max_ = 2 * open_.size() + 1;
  }
  open_[key] = {package.program, package.weights, package.file};
  return package;
}

}  // namespace foliot
