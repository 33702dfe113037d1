// FileWatch: looks every few seconds whether files have changed, and calls their
// reader. A change counts once the files have stayed the same from one look to the
// next, so that a certificate and its key may be replaced one after the other.
//
// Threading: the watch has a thread of its own, which calls on_change().
#ifndef FOLIOT_NODE_FILES_FILE_WATCH_H_
#define FOLIOT_NODE_FILES_FILE_WATCH_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/thread.h"

namespace foliot {

// Files that belong together.
struct WatchedFiles {
  std::vector<std::filesystem::path> files;
  std::function<void()> on_change;
  // In place of `files`, which are others from one look to the next; nullopt: they cannot be listed
  // now, and none has changed.
  std::function<std::optional<std::vector<std::filesystem::path>>()> list{};
};

class FileWatch {
 public:
  // Takes the files as they are now as known.
  explicit FileWatch(std::vector<WatchedFiles> watched);
  ~FileWatch() { stop(); }

  // Looks every `interval` from now on; without files there is nothing to do. Errors:
  // as Thread::start().
  Status start(Duration interval);
  void stop();
  // One look; what start() does again and again.
  void look();

 private:
  // Distinguishes one content of a file from another, without reading it; of a file
  // that cannot be seen: its path, and zeros.
  struct Mark {
    std::string path;
    uint64_t file = 0;
    int64_t size = 0;
    int64_t changed_nanoseconds = 0;
    bool operator==(const Mark&) const = default;
  };
  struct Watched {
    WatchedFiles what;
    std::vector<Mark> known;
    std::vector<Mark> seen;
  };

  static std::optional<std::vector<Mark>> marks_of(const WatchedFiles& what);
  void run(Duration interval);

  std::vector<Watched> watched_;
  Mutex mutex_;
  Condition changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_FILE_WATCH_H_
