#include "models/mirror/mirror_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>

#include "foundation/base/error_text.h"
#include "foundation/platform/descriptor.h"

namespace foliot {
namespace {

constexpr std::string_view kHeading = "foliot-mirror-1 ";

}  // namespace

MirrorRecord MirrorRecord::read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  MirrorRecord record;
  if (!std::getline(file, line) || !line.starts_with(kHeading)) return {};
  record.place = line.substr(kHeading.size());
  while (std::getline(file, line)) {
    std::istringstream words(line);
    MirroredFile mirrored;
    std::string key;
    if (!(words >> mirrored.etag >> mirrored.bytes >> mirrored.written_nanoseconds) || words.get() != ' ' ||
        !std::getline(words, key)) {
      return {.place = record.place, .files = {}};
    }
    record.files.emplace(std::move(key), std::move(mirrored));
  }
  return record;
}

Status MirrorRecord::write(const std::filesystem::path& path) const {
  std::string text = fmt::format("{}{}\n", kHeading, place);
  for (const auto& [key, file] : files) {
    text += fmt::format("{} {} {} {}\n", file.etag, file.bytes, file.written_nanoseconds, key);
  }
  const std::string draft = path.string() + ".new";
  const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  bool written = file.is_open();
  for (std::string_view rest = text; written && !rest.empty();) {
    const ssize_t count = ::write(file.number(), rest.data(), rest.size());
    written = count > 0;
    if (written) rest.remove_prefix(static_cast<size_t>(count));
  }
  if (written && ::fsync(file.number()) == 0 && ::rename(draft.c_str(), path.c_str()) == 0) return Status();
  const int error = errno;
  return {error == ENOSPC || error == EDQUOT ? StatusCode::kResourceExhausted : StatusCode::kInternal,
          fmt::format("cannot write {}: {}", path.string(), error_text(error))};
}

}  // namespace foliot
