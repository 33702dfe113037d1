#include "node/files/file_watch.h"

#include <sys/stat.h>

#include <utility>

namespace foliot {

FileWatch::FileWatch(std::vector<WatchedFiles> watched) {
  for (WatchedFiles& what : watched) {
    const std::vector<Mark> marks = marks_of(what).value_or(std::vector<Mark>());
    watched_.push_back({std::move(what), marks, marks});
  }
}

std::optional<std::vector<FileWatch::Mark>> FileWatch::marks_of(const WatchedFiles& what) {
  std::vector<Mark> marks;
  const auto files = what.list ? what.list() : what.files;
  if (!files) return std::nullopt;
  for (const std::filesystem::path& file : *files) {
    Mark& mark = marks.emplace_back(Mark{.path = file.string()});
    struct stat about {};
    if (stat(file.c_str(), &about) != 0) continue;
    mark = {.path = file.string(),
            .file = about.st_ino,
            .size = about.st_size,
            .changed_nanoseconds = about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec};
  }
  return marks;
}

void FileWatch::look() {
  for (Watched& each : watched_) {
    std::optional<std::vector<Mark>> marks = marks_of(each.what);
    if (!marks) continue;
    const std::vector<Mark> before = std::exchange(each.seen, *std::move(marks));
    if (each.seen != before || each.seen == each.known) continue;
    each.known = each.seen;
    each.what.on_change();
  }
}

Status FileWatch::start(Duration interval) {
  if (watched_.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "file-watch"}, [this, interval] { run(interval); }));
  return Status();
}

void FileWatch::run(Duration interval) {
  MutexLock lock(mutex_);
  while (!changed_.wait_for(mutex_, interval, [this]() REQUIRES(mutex_) { return stopping_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void FileWatch::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace foliot
