// PackageStore: compiled programs, kept on disk under the hash of all that they
// were compiled from, so that nothing is compiled twice.
#ifndef FOLIOT_REPOSITORY_PACKAGE_STORE_H_
#define FOLIOT_REPOSITORY_PACKAGE_STORE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "compiler/compiler.h"
#include "program/package.h"
#include "repository/compile_process.h"

namespace foliot {

// Threading: one thread at a time.
class PackageStore {
 public:
  // Writes the package of this model into the open, empty file `output`.
  using Compile = std::function<Status(const std::filesystem::path& model, const CompileOptions& options, int output,
                                       const CompileWatch& watch)>;

  // `folder` is made when it is needed. `device`: all that
  // compiling depends on beside the model (Device::kind() and fingerprint()).
  PackageStore(std::filesystem::path folder, WeightsTier tier, std::string device, Compile compile);

  // Errors: kInternal, naming the folder and what to do, if no package could be written.
  // Makes the folder.
  Status check_writable() const;
  // The name of this model's package: a hash of the files that it is made of, of
  // the options and of the device. Errors: kNotFound, kInternal.
  Result<std::string> key_of(const std::filesystem::path& model, const CompileOptions& options) const;
  // The package of this model, if it was compiled before and is whole. Errors: those of
  // key_of().
  Result<std::optional<Package>> find(const std::filesystem::path& model, const CompileOptions& options);
  // The package of this model, compiled now if it is not there yet, or if what is
  // there is damaged or was made for another device. Models with the same content share one in memory. Errors:
  // those of compiling; kUnavailable if its files changed meanwhile.
  Result<Package> get(const std::filesystem::path& model, const CompileOptions& options,
                      const CompileWatch& watch = {});

 private:
  struct Hashes {
    std::string content;  // ModelInfo::content
    std::string key;
  };
  Result<Hashes> hash(const std::filesystem::path& model, const CompileOptions& options) const;
  std::filesystem::path file_of(const std::string& key) const;
  Status cannot_write(const std::string& reason) const;
  Result<Package> open(const std::string& key);
  Result<Package> compile_and_open(const std::string& key, const std::filesystem::path& model,
                                   const CompileOptions& options, const CompileWatch& watch);
  Status compile_to(const std::filesystem::path& package, const std::filesystem::path& model,
                    const CompileOptions& options, const CompileWatch& watch);

  std::filesystem::path folder_;
  WeightsTier tier_;
  std::string device_;
  Compile compile_;
  struct Open {
    std::weak_ptr<const Program> program;
    std::weak_ptr<WeightsSource> weights;
  };
  std::map<std::string, Open> open_;
};

}  // namespace foliot

#endif  // FOLIOT_REPOSITORY_PACKAGE_STORE_H_
