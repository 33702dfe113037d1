#include "models/mirror/object_sources.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "foundation/objectstore/object_address.h"
#include "foundation/objectstore/s3_store.h"
#include "foundation/platform/clock.h"
#include "models/mirror/stored_packages.h"

namespace foliot {
namespace {

auto connect_to(const ObjectAddress& address, const std::string& endpoint) {
  return [address, endpoint](std::function<bool()> cancelled) -> std::unique_ptr<ObjectStore> {
    return std::make_unique<S3Store>(
        S3Options{.address = address, .endpoint = endpoint, .cancelled = std::move(cancelled)});
  };
}

}  // namespace

Result<ObjectSources> open_object_sources(const ObjectSourceOptions& options, const SourcePlaces& places, Logger& log,
                                          const std::function<bool()>& cancelled) {
  ObjectSources sources;
  const auto write = [&log](Severity level, const std::string& line) { log.write(level, line); };
  const std::string repository = places.repository.string();
  const bool is_mirrored = ObjectAddress::is_one(repository);
  if (is_mirrored == options.mirror.empty()) {
    return is_mirrored ? Status::invalid_argument(fmt::format(
                             "'{}' is copied to this machine; name a folder for it by --mirror", repository))
                       : Status::invalid_argument(
                             fmt::format("--mirror is for a repository s3://BUCKET/PREFIX, not '{}'", repository));
  }
  if (ObjectAddress::is_one(places.cache.string())) {
    FOLIOT_ASSIGN_OR_RETURN(const ObjectAddress address, ObjectAddress::parse(places.cache.string()));
    FOLIOT_ASSIGN_OR_RETURN(
        sources.packages,
        StoredPackages::start({.connect = connect_to(address, options.endpoint), .log = write, .now = monotonic_now}));
    places.cache.clear();
  }
  if (!is_mirrored) return sources;
  FOLIOT_ASSIGN_OR_RETURN(const ObjectAddress address, ObjectAddress::parse(repository));
  FOLIOT_ASSIGN_OR_RETURN(
      sources.mirror,
      RepositoryMirror::open({.folder = options.mirror,
                              .bytes_max = options.mirror_bytes_max.value_or(std::numeric_limits<uint64_t>::max()),
                              .name = address.name(),
                              .connect = connect_to(address, options.endpoint),
                              .log = write}));
  if (!places.watch_interval) places.watch_interval = kMirrorInterval;
  FOLIOT_RETURN_IF_ERROR(sources.mirror->start(*places.watch_interval, cancelled));
  places.repository = sources.mirror->models();
  return sources;
}

}  // namespace foliot
