#include "repository/package_store.h"

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

#include "base/error_text.h"
#include "base/hash.h"
#include "platform/descriptor.h"
#include "repository/model_folder.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// A file beside the package, removed unless it becomes the package.
class Draft {
 public:
  explicit Draft(const fs::path& package)
      : package_(package), path_(package.string() + ".XXXXXX"), file_(::mkostemp(path_.data(), O_CLOEXEC)) {}
  ~Draft() {
    if (file_.is_open() && !published_) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  const Descriptor& file() const { return file_; }
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

}  // namespace

PackageStore::PackageStore(fs::path folder, WeightsTier tier, std::string device, Compile compile)
    : folder_(std::move(folder)), tier_(tier), device_(std::move(device)), compile_(std::move(compile)) {}

fs::path PackageStore::file_of(const std::string& key) const { return folder_ / (key + ".foliot"); }

Result<std::string> PackageStore::key_of(const fs::path& model, const CompileOptions& options) const {
  FOLIOT_ASSIGN_OR_RETURN(Hashes hashes, hash(model, options));
  return std::move(hashes.key);
}

Result<PackageStore::Hashes> PackageStore::hash(const fs::path& model, const CompileOptions& options) const {
  FOLIOT_ASSIGN_OR_RETURN(const auto files, list_model_files(model));
  StreamHash hash;
  for (const fs::path& file : files) {
    const std::string name = file.lexically_relative(model.parent_path()).string();
    hash.update(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    FOLIOT_RETURN_IF_ERROR(hash.update_from(file));
  }
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
  Result<Package> package = open(hashes.key);
  if (!package.ok()) return std::optional<Package>();
  package->content = hashes.content;
  return std::optional<Package>(std::move(package).value());
}

Result<Package> PackageStore::get(const fs::path& model, const CompileOptions& options, const CompileWatch& watch) {
  FOLIOT_ASSIGN_OR_RETURN(const Hashes hashes, hash(model, options));
  const std::string& key = hashes.key;
  Result<Package> package = open(key);
  if (!package.ok()) package = compile_and_open(key, model, options, watch);
  if (package.ok()) package->content = hashes.content;
  return package;
}

Result<Package> PackageStore::compile_and_open(const std::string& key, const fs::path& model,
                                               const CompileOptions& options, const CompileWatch& watch) {
  FOLIOT_RETURN_IF_ERROR(compile_to(file_of(key), model, options, watch));
  FOLIOT_ASSIGN_OR_RETURN(const std::string key_now, key_of(model, options));
  if (key_now != key) {
    fs::remove(file_of(key));
    return Status::unavailable(fmt::format("{} changed while it was compiled; load it again", model.string()));
  }
  Result<Package> package = open(key);
  if (!package.ok()) fs::remove(file_of(key));
  return package;
}

Status PackageStore::compile_to(const fs::path& package, const fs::path& model, const CompileOptions& options,
                                const CompileWatch& watch) {
  std::error_code error;
  fs::create_directories(folder_, error);
  Draft draft(package);
  if (error || !draft.file().is_open()) {
    return cannot_write(error ? error.message() : error_text(errno));
  }
  const Status compiled = compile_(model, options, draft.file().number(), watch);
  // The compiling process knows the file and not its name, which a message about a full
  // disk needs.
  if (compiled.code() == StatusCode::kResourceExhausted) {
    return compiled.with_context(fmt::format("compiling into {}", folder_.string()));
  }
  FOLIOT_RETURN_IF_ERROR(compiled);
  if (draft.publish()) return {};
  return Status::internal(fmt::format("cannot write {}: {}", package.string(), error_text(errno)));
}

Result<Package> PackageStore::open(const std::string& key) {
  std::erase_if(open_, [](const auto& entry) { return entry.second.program.expired(); });
  Open& shared = open_[key];
  if (Package package{shared.program.lock(), shared.weights.lock()}; package.program && package.weights) {
    return package;
  }
  FOLIOT_ASSIGN_OR_RETURN(Package package, open_package(file_of(key), tier_));
  const std::string device = package.program->device_kind + " " + package.program->device_fingerprint;
  if (device != device_) {
    return Status::invalid_argument(
        fmt::format("{} was compiled for {}, and this is {}", file_of(key).string(), device, device_));
  }
  shared = {package.program, package.weights};
  return package;
}

}  // namespace foliot
