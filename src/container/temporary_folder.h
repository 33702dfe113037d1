// TemporaryFolder: a folder of its own for a process, removed with all that is in it.
//
// Threading: none.
#ifndef FOLIOT_CONTAINER_TEMPORARY_FOLDER_H_
#define FOLIOT_CONTAINER_TEMPORARY_FOLDER_H_

#include <filesystem>
#include <utility>

#include "base/status.h"

namespace foliot {

class TemporaryFolder {
 public:
  // Below TMPDIR, or /tmp; for this user only. Errors: kResourceExhausted.
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTAINER_TEMPORARY_FOLDER_H_
