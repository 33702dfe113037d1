#include "edge/jobs/folder_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "foundation/base/error_text.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

Status mark_failure(const std::filesystem::path& file, int error) {
  return Status::invalid_argument(fmt::format("{}: {}", file.string(), error_text(error)));
}

// Whole, and then its name: another server may read it at any time.
Status write_mark(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path made = file.string() + "." + text;
  {
    const Descriptor descriptor(::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!descriptor.is_open()) return mark_failure(made, errno);
    const ssize_t written = ::write(descriptor.number(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size()) || ::fsync(descriptor.number()) != 0) {
      return mark_failure(made, written < 0 ? errno : ENOSPC);
    }
  }
  const int error = ::link(made.c_str(), file.c_str()) == 0 ? 0 : errno;
  ::unlink(made.c_str());
  return error == 0 || error == EEXIST ? Status() : mark_failure(file, error);
}

}  // namespace

Result<std::string> folder_mark(const std::filesystem::path& folder, const std::string& fresh) {
  const std::filesystem::path file = folder / "shared";
  std::error_code error;  // Of a file that cannot be looked at; reading it names it.
  if (!std::filesystem::exists(file, error) && (!error || error == std::errc::no_such_file_or_directory)) {
    FOLIOT_RETURN_IF_ERROR(write_mark(file, fresh));
  }
  std::ifstream stream(file);
  std::string text;
  if (!std::getline(stream, text) || text.empty()) {
    return Status::invalid_argument(fmt::format("{}: cannot be read; remove it if it is empty", file.string()));
  }
  return text;
}

}  // namespace foliot
