#include "models/mirror/repository_mirror.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "foundation/base/error_text.h"
#include "foundation/base/folder_listing.h"
#include "foundation/base/hash.h"
#include "foundation/base/units.h"
#include "foundation/objectstore/download.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecordName = "record";
constexpr Duration kCancelInterval = Duration::milliseconds(100);
// Models that are loaded while others are served must not slow these.
constexpr int kMirrorNice = 10;

Status file_failure(const char* what, const fs::path& path, int error) {
  const std::string text = fmt::format("cannot {} {}: {}", what, path.string(), error_text(error));
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return is_full ? Status::resource_exhausted(text + "; make room, or choose another --mirror")
                 : Status::internal(text);
}

// nullopt: there is no such file, or none that is a file.
std::optional<MirroredFile> look_at(const fs::path& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return MirroredFile{.etag = {},
                      .bytes = static_cast<uint64_t>(about.st_size),
                      .written_nanoseconds = about.st_mtim.tv_sec * int64_t{1'000'000'000} + about.st_mtim.tv_nsec};
}

bool is_of_folder(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path[folder.size()] == '/' && path.starts_with(folder);
}

// Replaces `place` by `draft`, which is then what was there, or nothing.
Status exchange(const fs::path& draft, const fs::path& place) {
  if (::rename(draft.c_str(), place.c_str()) == 0) return Status();  // there was none, or an empty one
  if (::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return Status();
  // Some network file systems cannot exchange: for a moment there is none.
  const fs::path before = draft.string() + ".before";
  if (::rename(place.c_str(), before.c_str()) != 0) return file_failure("replace", place, errno);
  if (::rename(draft.c_str(), place.c_str()) != 0) {
    const int error = errno;
    ::rename(before.c_str(), place.c_str());
    return file_failure("replace", place, error);
  }
  std::error_code ignored;
  fs::remove_all(before, ignored);
  return Status();
}

}  // namespace

RepositoryMirror::RepositoryMirror(MirrorOptions options) : options_(std::move(options)) {}

Result<std::unique_ptr<RepositoryMirror>> RepositoryMirror::open(MirrorOptions options) {
  std::unique_ptr<RepositoryMirror> mirror(new RepositoryMirror(std::move(options)));
  mirror->place_ = mirror->options_.connect([] { return false; })->place();
  FOLIOT_RETURN_IF_ERROR(mirror->take_folder());
  return mirror;
}

Status RepositoryMirror::take_folder() {
  const fs::path& folder = options_.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return file_failure("make the mirror", folder, error.value());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_folder(folder));
  const MutexLock lock(mutex_);
  record_ = MirrorRecord::read(folder / kRecordName);
  if (record_.place.empty() && !entries.empty() && !fs::exists(folder / "incoming", error)) {
    return Status::invalid_argument(
        fmt::format("the mirror {} is not empty, and is no mirror; give an empty folder by --mirror", folder.string()));
  }
  if (!record_.place.empty() && record_.place != place_) {
    return Status::invalid_argument(fmt::format("the folder {} mirrors {}, not {}; give another one by --mirror",
                                                folder.string(), record_.place, place_));
  }
  record_.place = place_;
  for (const char* const name : {"incoming", "partial", "models"}) {
    fs::create_directories(folder / name, error);
    if (error) return file_failure("make", folder / name, error.value());
  }
  lock_ = Descriptor(::open((folder / "incoming").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.is_open() || ::flock(lock_.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return file_failure("take the mirror", folder, errno);
    return Status::unavailable(
        fmt::format("the mirror {} is another process's; give each its own by --mirror", folder.string()));
  }
  // A file that is not as it was written is loaded again.
  std::erase_if(record_.files, [&](const auto& entry) {
    std::optional<MirroredFile> there = look_at(models() / entry.first);
    if (there) there->etag = entry.second.etag;
    return there != entry.second;
  });
  return Status();
}

Status RepositoryMirror::look() {
  const auto store = options_.connect([this] { return stopping_.load(); });
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<StoredObject> objects, store->list());
  const auto folders = lay_out(objects, options_.name);
  {
    const MutexLock lock(mutex_);
    changes_ = {};
  }
  remove_gone(folders);
  std::vector<Task> tasks;
  for (const auto& [name, folder] : folders) {
    if (!folder.status.ok()) {
      report(name, folder.status);
    } else if (is_current(folder)) {
      report(name, Status());
    } else {
      tasks.push_back({name, &folder});
    }
  }
  bring_all(std::move(tasks));
  if (!stopping_) drop_partials(folders);
  const Changes changes = [this] {
    const MutexLock lock(mutex_);
    return changes_;
  }();
  if (changes.brought + changes.removed == 0) return Status();
  options_.log(Severity::kInfo, fmt::format("{}: {} folders loaded ({}), {} removed", place_, changes.brought,
                                            format_bytes(changes.bytes), changes.removed));
  if (changes.unverified > 0) {
    options_.log(Severity::kWarning, fmt::format("{}: {} objects were checked for their length alone, since their "
                                                 "ETags are no hash of what they hold",
                                                 place_, changes.unverified));
  }
  return Status();
}

// What of the record has no objects any more, and what else lies among the models.
void RepositoryMirror::remove_gone(const std::map<std::string, MirroredFolder>& folders) {
  const Result<std::vector<fs::path>> entries = list_folder(models());
  if (!entries.ok()) return report("", entries.status());
  for (const fs::path& entry : *entries) {
    const std::string name = entry.filename().string();
    if (name.starts_with('.') || folders.contains(name)) continue;
    // Renamed first, so that no half of it is seen.
    const fs::path gone = options_.folder / "incoming" / (name + ".gone");
    std::error_code error;
    fs::remove_all(gone, error);
    if (::rename(entry.c_str(), gone.c_str()) != 0) {
      report(name, file_failure("remove", entry, errno));
      continue;
    }
    fs::remove_all(gone, error);
    const MutexLock lock(mutex_);
    std::erase_if(record_.files, [&](const auto& file) { return is_of_folder(file.first, name); });
    reported_.erase(name);
    ++changes_.removed;
  }
  const MutexLock lock(mutex_);
  if (changes_.removed == 0) return;
  if (const Status status = record_.write(options_.folder / kRecordName); !status.ok()) {
    options_.log(Severity::kError, status.message());
  }
}

bool RepositoryMirror::is_current(const MirroredFolder& folder) const {
  const MutexLock lock(mutex_);
  const std::string& any = folder.paths.begin()->first;
  const std::string name = any.substr(0, any.find('/'));
  size_t known = 0;
  for (auto file = record_.files.lower_bound(name + "/");
       file != record_.files.end() && is_of_folder(file->first, name); ++file, ++known) {
    const auto path = folder.paths.find(file->first);
    if (path == folder.paths.end()) return false;
    const StoredObject& object = folder.objects[path->second];
    if (object.etag != file->second.etag || object.bytes != file->second.bytes) return false;
  }
  return known == folder.paths.size();
}

void RepositoryMirror::bring_all(std::vector<Task> tasks) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    const auto store = options_.connect([this] { return stopping_.load(); });
    for (size_t i = next++; i < tasks.size() && !stopping_; i = next++) report(tasks[i].name, bring(*store, tasks[i]));
  };
  std::vector<Thread> threads;
  for (size_t i = 1; i < std::min(kConnections, tasks.size()); ++i) {
    Result<Thread> thread = Thread::start({.name = "mirror", .nice = kMirrorNice}, work);
    if (thread.ok()) threads.push_back(std::move(thread).value());
  }
  work();
}

Status RepositoryMirror::bring(ObjectStore& store, const Task& task) {
  std::vector<const StoredObject*> needed;
  {
    const MutexLock lock(mutex_);
    for (const auto& [path, index] : task.folder->paths) {
      const StoredObject& object = task.folder->objects[index];
      const auto file = record_.files.find(path);
      const bool is_there =
          file != record_.files.end() && file->second.etag == object.etag && file->second.bytes == object.bytes;
      if (!is_there) needed.push_back(&object);
    }
  }
  uint64_t bytes = 0;
  for (const StoredObject* object : needed) bytes += object->bytes;
  FOLIOT_RETURN_IF_ERROR(reserve(task, bytes));
  Status status;
  for (size_t i = 0; i < needed.size() && status.ok(); ++i) status = load(store, *needed[i]);
  if (status.ok()) status = put_in_place(task, needed);
  const MutexLock lock(mutex_);
  reserved_bytes_ -= bytes;
  if (!status.ok()) return status;
  ++changes_.brought;
  changes_.bytes += bytes;
  return Status();
}

Status RepositoryMirror::reserve(const Task& task, uint64_t bytes) {
  const MutexLock lock(mutex_);
  uint64_t used = reserved_bytes_;
  for (const auto& [path, file] : record_.files) used += file.bytes;
  if (bytes > options_.bytes_max || used > options_.bytes_max - bytes) {
    return Status::resource_exhausted(
        fmt::format("'{}' needs {} more, and the mirror holds {} of at most {}; raise --mirror-limit, or remove models "
                    "from {}",
                    task.name, format_bytes(bytes), format_bytes(used), format_bytes(options_.bytes_max), place_));
  }
  reserved_bytes_ += bytes;
  return Status();
}

fs::path RepositoryMirror::partial_of(const StoredObject& object) const {
  const std::string version = fmt::format("{}\n{}\n{}", object.key, object.etag, object.bytes);
  return options_.folder / "partial" / hash_hex(std::as_bytes(std::span(version)));
}

Status RepositoryMirror::load(ObjectStore& store, const StoredObject& object) {
  const fs::path path = partial_of(object);
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open()) return file_failure("write", path, errno);
  FOLIOT_ASSIGN_OR_RETURN(const bool verified, download(store, object, file.number()));
  const MutexLock lock(mutex_);
  if (!verified) ++changes_.unverified;
  return Status();
}

// Makes the folder anew beside the one that is there, of what was loaded and of links to what has not changed.
Status RepositoryMirror::put_in_place(const Task& task, const std::vector<const StoredObject*>& loaded) {
  const fs::path incoming = options_.folder / "incoming";
  std::error_code error;
  fs::remove_all(incoming / task.name, error);
  std::map<std::string, MirroredFile> files;
  for (const auto& [path, index] : task.folder->paths) {
    const StoredObject& object = task.folder->objects[index];
    const fs::path draft = incoming / path;
    fs::create_directories(draft.parent_path(), error);
    if (error) return file_failure("make", draft.parent_path(), error.value());
    const bool is_new = std::ranges::find(loaded, &object) != loaded.end();
    const fs::path source = is_new ? partial_of(object) : models() / path;
    const int failed = is_new ? ::rename(source.c_str(), draft.c_str()) : ::link(source.c_str(), draft.c_str());
    const std::optional<MirroredFile> there = look_at(draft);
    if (failed != 0 || !there) return file_failure("take", source, errno);
    files[path] = *there;
    files[path].etag = object.etag;
  }
  FOLIOT_RETURN_IF_ERROR(exchange(incoming / task.name, models() / task.name));
  fs::remove_all(incoming / task.name, error);
  // The models are in use by now; the record must not say more than the disk holds.
  for (const StoredObject* object : loaded) {
    const auto path = std::ranges::find_if(
        task.folder->paths, [&](const auto& entry) { return &task.folder->objects[entry.second] == object; });
    const Descriptor file(::open((models() / path->first).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open() || ::fdatasync(file.number()) != 0) return file_failure("write", models() / path->first, errno);
  }
  const MutexLock lock(mutex_);
  std::erase_if(record_.files, [&](const auto& file) { return is_of_folder(file.first, task.name); });
  record_.files.merge(files);
  return record_.write(options_.folder / kRecordName);
}

// What is begun of objects that are not there any more, or are in place.
void RepositoryMirror::drop_partials(const std::map<std::string, MirroredFolder>& folders) {
  std::set<fs::path> wanted;
  for (const auto& [name, folder] : folders) {
    if (!folder.status.ok() || is_current(folder)) continue;
    for (const StoredObject& object : folder.objects) wanted.insert(partial_of(object));
  }
  const Result<std::vector<fs::path>> partials = list_folder(options_.folder / "partial");
  if (!partials.ok()) return;
  std::error_code error;
  for (const fs::path& partial : *partials) {
    if (!wanted.contains(partial)) fs::remove(partial, error);
  }
}

void RepositoryMirror::report(const std::string& name, const Status& status) {
  if (stopping_) return;
  {
    const MutexLock lock(mutex_);
    const auto before = reported_.find(name);
    if (before == reported_.end() ? status.ok() : before->second == status.message()) return;
    if (status.ok()) {
      reported_.erase(before);
    } else {
      reported_[name] = status.message();
    }
  }
  if (status.ok()) {
    options_.log(Severity::kInfo,
                 fmt::format("{} is as in the store again", name.empty() ? place_ : fmt::format("'{}'", name)));
  } else {
    const std::string what = name.empty() ? "the mirror" : fmt::format("'{}'", name);
    options_.log(Severity::kError, fmt::format("{} stays as it is here: {}", what, status.message()));
  }
}

Status RepositoryMirror::start(Duration interval, const std::function<bool()>& cancelled) {
  FOLIOT_ASSIGN_OR_RETURN(thread_,
                          Thread::start({.name = "mirror", .nice = kMirrorNice}, [this, interval] { run(interval); }));
  const MutexLock lock(mutex_);
  while (!first_look_ && !cancelled()) changed_.wait_for(mutex_, kCancelInterval);
  if (!first_look_) return Status::unavailable("stopped while starting");
  if (!record_.files.empty()) return Status();
  FOLIOT_RETURN_IF_ERROR(*first_look_);
  if (!reported_.empty()) return Status::unavailable(reported_.begin()->second);
  return Status::not_found(fmt::format("there is no model in {}; put one there as NAME/model.onnx", place_));
}

void RepositoryMirror::run(Duration interval) {
  while (!stopping_) {
    const Status status = look();
    report("", status.with_context("listing"));
    const MutexLock lock(mutex_);
    if (!first_look_) first_look_ = status;
    changed_.notify_all();
    changed_.wait_for(mutex_, interval, [this] { return stopping_.load(); });
  }
}

void RepositoryMirror::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace foliot
