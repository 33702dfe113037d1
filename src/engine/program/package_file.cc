#include "engine/program/package_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "foundation/base/error_text.h"
#include "foundation/base/hash.h"

namespace foliot {

Status check_weights(const File& file, const WeightsRange& range) {
  constexpr uint64_t kBytesAtATime = uint64_t{1} << 20;  // stays in a processor's cache
  std::vector<std::byte> piece(std::min(range.bytes, kBytesAtATime));
  StreamHash hash;
  for (uint64_t at = 0; at < range.bytes; at += piece.size()) {
    const auto bytes = std::span(piece).first(std::min<uint64_t>(piece.size(), range.bytes - at));
    if (const int error = read_fully(file, range.offset + at, bytes)) {
      return Status::internal(error == ENODATA ? "it was cut short" : error_text(error));
    }
    hash.update(bytes);
  }
  if (hash.digest64() != range.hash) return Status::invalid_argument("the weights are damaged");
  return {};
}

PackageFile::PackageFile(File file, const struct stat& whole, WeightsRange range)
    : file_(std::move(file)), range_(std::move(range)), whole_(whole) {}

bool PackageFile::is_as_when_whole() const {
  struct stat now {};
  return ::fstat(file_.descriptor(), &now) == 0 && now.st_size == whole_.st_size &&
         now.st_mtim.tv_sec == whole_.st_mtim.tv_sec && now.st_mtim.tv_nsec == whole_.st_mtim.tv_nsec;
}

bool PackageFile::is_unchanged() {
  const MutexLock lock(mutex_);
  return damage_.ok() && is_as_when_whole();
}

Status PackageFile::check() {
  Status found;
  {
    const MutexLock lock(mutex_);
    if (!damage_.ok() || is_as_when_whole()) return damage_;
    struct stat before {};
    found =
        ::fstat(file_.descriptor(), &before) == 0 ? check_weights(file_, range_) : Status::internal(error_text(errno));
    if (found.ok()) whole_ = before;
  }
  return found.ok() ? found : fail(found.message());
}

Status PackageFile::fail(const std::string& why) {
  std::map<std::string, std::function<void()>> watches;
  Status damage;
  {
    const MutexLock lock(mutex_);
    if (damage_.ok()) {
      damage_ = Status::internal(fmt::format("{} was damaged while in use: {}", range_.path, why));
      watches.swap(watches_);
    }
    damage = damage_;
  }
  for (const auto& [user, on_damage] : watches) on_damage();
  return damage;
}

void PackageFile::watch(const std::string& user, std::function<void()> on_damage) {
  {
    const MutexLock lock(mutex_);
    if (damage_.ok()) {
      watches_[user] = std::move(on_damage);
      return;
    }
  }
  on_damage();
}

}  // namespace foliot
