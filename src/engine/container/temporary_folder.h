// TemporaryFolder: a folder of its own for a process, removed with all that is in it.
//
// It is locked while its owner lives, so that remove_abandoned() knows those that a killed server left.
//
// Threading: none.
#ifndef FOLIOT_ENGINE_CONTAINER_TEMPORARY_FOLDER_H_
#define FOLIOT_ENGINE_CONTAINER_TEMPORARY_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <utility>

#include "foundation/base/status.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

class TemporaryFolder {
 public:
  // Below TMPDIR, or /tmp; for this user only. Errors: kResourceExhausted.
  static Result<TemporaryFolder> make();
  // Removes folders of this user, and of the users that its containers were, whose owner is gone. How many.
  static size_t remove_abandoned();

  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  // Of the files that are in it on disk, each 4 KiB at least; counting ends above `enough`.
  uint64_t bytes(uint64_t enough) const;

 private:
  TemporaryFolder(std::filesystem::path path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  Descriptor lock_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_TEMPORARY_FOLDER_H_
