// ObjectSources: what a server has in object stores: its repository, and what it has compiled.
#ifndef FOLIOT_MODELS_MIRROR_OBJECT_SOURCES_H_
#define FOLIOT_MODELS_MIRROR_OBJECT_SOURCES_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "models/mirror/repository_mirror.h"
#include "models/repository/package_share.h"

namespace foliot {

struct ObjectSourceOptions {
  std::string endpoint;                      // S3Options::endpoint
  std::filesystem::path mirror;              // folder for a repository that is an address; empty: none
  std::optional<uint64_t> mirror_bytes_max;  // MirrorOptions::bytes_max
};

struct ObjectSources {
  std::unique_ptr<RepositoryMirror> mirror{};  // null: the repository is a folder
  std::shared_ptr<PackageShare> packages{};    // null: the cache is a folder
};

// Where a part reads its models, and where it keeps what it compiled: folders, or addresses (ObjectAddress).
struct SourcePlaces {
  std::filesystem::path& repository;
  std::filesystem::path& cache;
  std::optional<Duration>& watch_interval;
};

// Brings what is named by an address here, and has `places` name folders of this machine: the mirror, and the
// repository's own folder of packages. A mirror is looked at as often as the repository is watched, which is every
// kMirrorInterval unless it is said. Errors: kInvalidArgument naming the flag, and those of RepositoryMirror.
// `log` outlives them. `cancelled`: as RepositoryMirror::start().
inline constexpr Duration kMirrorInterval = Duration::seconds(10);
Result<ObjectSources> open_object_sources(const ObjectSourceOptions& options, const SourcePlaces& places, Logger& log,
                                          const std::function<bool()>& cancelled);

}  // namespace foliot

#endif  // FOLIOT_MODELS_MIRROR_OBJECT_SOURCES_H_
