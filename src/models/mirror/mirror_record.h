// MirrorRecord: which version of which object each file of a mirror is, kept beside the files.
//
// A line for each file: "ETAG BYTES TIME KEY", the time being when it was last written, in nanoseconds since 1970, by
// which a file that something else changed is found. The first line names the place that is mirrored.
#ifndef FOLIOT_MODELS_MIRROR_MIRROR_RECORD_H_
#define FOLIOT_MODELS_MIRROR_MIRROR_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

struct MirroredFile {
  std::string etag;
  uint64_t bytes = 0;
  int64_t written_nanoseconds = 0;

  bool operator==(const MirroredFile&) const = default;
};

struct MirrorRecord {
  std::string place;
  std::map<std::string, MirroredFile> files;  // by path below the mirror's models

  // What `path` holds; empty if there is no such file, or it is no record: what it described is loaded anew.
  static MirrorRecord read(const std::filesystem::path& path);
  // Replaces the file whole. Errors: kInternal, or kResourceExhausted if the disk is full.
  Status write(const std::filesystem::path& path) const;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_MIRROR_MIRROR_RECORD_H_
