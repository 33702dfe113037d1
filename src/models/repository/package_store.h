// PackageStore: compiled programs, kept on disk under the hash of all that they
// were compiled from, so that nothing is compiled twice. A program of the first batch
// size alone is not kept: its file is gone when it is opened, so that only whole
// packages are found by a later start, however this one ends. Several processes may share the
// folder: each package appears whole, and is never written again in place.
#ifndef FOLIOT_MODELS_REPOSITORY_PACKAGE_STORE_H_
#define FOLIOT_MODELS_REPOSITORY_PACKAGE_STORE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/compiler/compiler.h"
#include "engine/program/package.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "models/repository/compile_process.h"
#include "models/repository/package_share.h"

namespace foliot {

// Threading: any thread. Of several that want the same package one compiles it and the
// others wait.
class PackageStore {
 public:
  // Writes the package of this model into the open, empty file `output`. Any thread.
  using Compile = std::function<Status(const std::filesystem::path& model, const CompileOptions& options, int output,
                                       const CompileWatch& watch)>;

  // `folder` is made when it is needed. `device`: all that
  // compiling depends on beside the model (Device::kind() and fingerprint()). `share`: asked before compiling, and
  // offered what was compiled; null: none.
  PackageStore(std::filesystem::path folder, WeightsTier tier, std::string device, Compile compile,
               std::shared_ptr<PackageShare> share = nullptr);

  // Errors: kInternal, naming the folder and what to do, if no package could be written.
  // Makes the folder.
  Status check_writable() const;
  // The name of this model's package: a hash of the files that it is made of, of
  // the options and of the device. Errors: kNotFound, kInternal.
  Result<std::string> key_of(const std::filesystem::path& model, const CompileOptions& options) const;
  // The package of this model, if it was compiled before, here or where it is shared, and is whole. Errors: those
  // of key_of().
  Result<std::optional<Package>> find(const std::filesystem::path& model, const CompileOptions& options);
  // The package of this model, compiled now if it is not there yet, or if what is
  // there is damaged or was made for another device. Models with the same content share one in memory. Errors:
  // those of compiling; kUnavailable if its files changed meanwhile.
  Result<Package> get(const std::filesystem::path& model, const CompileOptions& options,
                      const CompileWatch& watch = {});
  // The program of the smallest batch size alone (CompileOptions::first_size_only),
  // compiled now. Errors: as get().
  Result<Package> get_first(const std::filesystem::path& model, CompileOptions options, const CompileWatch& watch = {});

 private:
  struct Hashes {
    std::string content;  // ModelInfo::content
    std::string key;
  };
  Result<Hashes> hash(const std::filesystem::path& model, const CompileOptions& options) const;
  std::filesystem::path file_of(const std::string& key) const;
  Status cannot_write(const std::string& reason) const;
  class Draft;
  class Turn;
  Result<Package> get_with(const Hashes& hashes, const std::filesystem::path& model, const CompileOptions& options,
                           const CompileWatch& watch);
  Result<Package> open(const std::string& key);
  Result<Package> open_or_fetch(const std::string& key);
  std::optional<Package> find_open(const std::string& key);
  Result<Package> open_file(const std::string& key, const std::filesystem::path& file);
  Result<Package> compile_and_open(const std::string& key, const std::filesystem::path& model,
                                   const CompileOptions& options, const CompileWatch& watch);
  Status compile_to(const Draft& draft, const std::filesystem::path& model, const CompileOptions& options,
                    const CompileWatch& watch);

  const std::filesystem::path folder_;
  const WeightsTier tier_;
  const std::string device_;
  const Compile compile_;
  const std::shared_ptr<PackageShare> share_;  // null: none
  struct Open {
    std::weak_ptr<const Program> program;
    std::weak_ptr<WeightsSource> weights;
    std::weak_ptr<PackageFile> file;
  };
  Mutex mutex_;
  Condition turned_;  // some key is not compiled any more
  std::set<std::string> compiling_ GUARDED_BY(mutex_);
  std::map<std::string, Open> open_ GUARDED_BY(mutex_);
  size_t open_max_ GUARDED_BY(mutex_) = 1;  // of open_, before what is closed is taken out
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_PACKAGE_STORE_H_
