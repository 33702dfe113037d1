#include "repository/package_store.h"

#include <fmt/format.h>

#include <utility>

namespace foliot {

PackageStore::PackageStore(std::filesystem::path folder, WeightsTier tier, DeviceFactory make_device)
    : folder_(std::move(folder)), tier_(tier), make_device_(std::move(make_device)) {}

std::filesystem::path PackageStore::file_of(const std::string& key) const { return folder_ / (key + ".foliot"); }

Result<Package> PackageStore::get(const std::filesystem::path& model, const CompileOptions& options,
                                  const Progress& progress) {
  const std::unique_ptr<Device> device = make_device_();
  FOLIOT_ASSIGN_OR_RETURN(const std::string key, compile_key(model, options, *device));
  if (Result<Package> package = open(key); package.ok()) return package;

  FOLIOT_ASSIGN_OR_RETURN(const CompiledProgram compiled, compile(model, options, *device, progress));
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    return Status::internal(
        fmt::format("cannot make the folder for compiled models {}: {}; choose another with --cache", folder_.string(),
                    error.message()));
  }
  FOLIOT_RETURN_IF_ERROR(write_package(file_of(key), compiled.program, compiled.weights));
  return open(key);
}

Result<Package> PackageStore::open(const std::string& key) {
  Open& shared = open_[key];
  if (Package package{shared.program.lock(), shared.weights.lock()}; package.program && package.weights) {
    return package;
  }
  FOLIOT_ASSIGN_OR_RETURN(Package package, open_package(file_of(key), tier_));
  shared = {package.program, package.weights};
  return package;
}

}  // namespace foliot
