// PackageStore: compiled programs, kept on disk under the hash of all that they
// were compiled from, so that nothing is compiled twice.
#ifndef FOLIOT_REPOSITORY_PACKAGE_STORE_H_
#define FOLIOT_REPOSITORY_PACKAGE_STORE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "compiler/compiler.h"
#include "program/package.h"

namespace foliot {

// Threading: one thread at a time.
class PackageStore {
 public:
  using DeviceFactory = std::function<std::unique_ptr<Device>()>;

  // `folder` is made when the first package is written.
  PackageStore(std::filesystem::path folder, WeightsTier tier, DeviceFactory make_device);

  // The package of this model, compiled now if it is not there yet, or if what is
  // there is damaged. Models with the same content share one in memory.
  Result<Package> get(const std::filesystem::path& model, const CompileOptions& options, const Progress& progress = {});

 private:
  std::filesystem::path file_of(const std::string& key) const;
  Result<Package> open(const std::string& key);

  std::filesystem::path folder_;
  WeightsTier tier_;
  DeviceFactory make_device_;
  struct Open {
    std::weak_ptr<const Program> program;
    std::weak_ptr<WeightsSource> weights;
  };
  std::map<std::string, Open> open_;
};

}  // namespace foliot

#endif  // FOLIOT_REPOSITORY_PACKAGE_STORE_H_
