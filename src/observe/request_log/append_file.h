// AppendFile: a file that only grows, by whole pieces: a piece that could not be
// written whole is removed, so a full disk leaves no half of a line.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_APPEND_FILE_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_APPEND_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

class AppendFile {
 public:
  // Begins the file anew. Errors: kInvalidArgument naming the file.
  static Result<AppendFile> create(const std::filesystem::path& path);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  // All of `bytes`, or false and nothing.
  bool append(std::string_view bytes);
  uint64_t size() const { return size_; }

 private:
  explicit AppendFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  uint64_t size_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_APPEND_FILE_H_
