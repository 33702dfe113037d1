// Package: a program on disk, in one file that loads without recompiling.
//
// Layout: a header of 4096 bytes (magic, format version, sizes, checksums), the
// metadata (protobuf message, package.proto), zeros up to a multiple of 4096,
// then the weights, so that they can be read with direct I/O.
//
// Files come from outside: a damaged, truncated or foreign one gives an error
// that names it, never a crash.
#ifndef FOLIOT_ENGINE_PROGRAM_PACKAGE_H_
#define FOLIOT_ENGINE_PROGRAM_PACKAGE_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "engine/device/device.h"
#include "engine/program/file.h"
#include "engine/program/package_file.h"
#include "engine/program/program.h"
#include "foundation/base/status.h"

namespace foliot {

// Where LOAD finds the weights.
enum class WeightsTier {
  kMemory,  // in memory, where the package's file is held from when it is opened
  kDisk,    // on disk, from where every LOAD reads it (file_weights.h)
};

// Writes to a temporary file beside `path`, syncs and renames: a reader sees the
// whole package or none. Errors: kResourceExhausted when the disk is full (and
// nothing is left behind), kInternal otherwise; both name the path.
Status write_package(const std::filesystem::path& path, const Program& program, std::span<const std::byte> weights);
// The same into an empty file that the caller has opened, will sync and name.
Status write_package(const File& file, const Program& program, std::span<const std::byte> weights);

struct Package {
  std::shared_ptr<const Program> program;
  std::shared_ptr<WeightsSource> weights;
  std::shared_ptr<PackageFile> file{};  // notices damage while it is in use; null: it is in none
  std::string content{};                // ModelInfo::content; not in the file
};

// Errors: kNotFound, kInvalidArgument (damaged, or written by another version of
// Foliot), kResourceExhausted. Header and metadata are checked against their hashes
// each time; the weights only if the file was written to since they were last found
// whole (intact_mark.h), and so by each LOAD (package_file.h). Replacing the file, as write_package()
// does, is fine.
Result<Package> open_package(const std::filesystem::path& path, WeightsTier tier);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_PACKAGE_H_
