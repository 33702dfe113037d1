// PackageFile: the file of a package while its program is in use. What was written to it, or cut off,
// since it was last found whole is noticed, and the package is damaged from then on, for good.
//
// Noticed is what changes the file's size or time of modification, as intact_mark.h says: not what decays
// beneath the file system.
//
// Threading: any; while one thread hashes the weights, others wait for it.
#ifndef FOLIOT_ENGINE_PROGRAM_PACKAGE_FILE_H_
#define FOLIOT_ENGINE_PROGRAM_PACKAGE_FILE_H_

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "engine/program/file.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"

namespace foliot {

// Where a package's weights lie; `path` is for messages only.
struct WeightsRange {
  std::string path;
  uint64_t offset = 0;  // a multiple of kBlockBytes
  uint64_t bytes = 0;
  uint64_t hash = 0;
};

// The weights' bytes have their hash. Errors: kInvalidArgument if not, kInternal if they cannot be read; without a
// path.
Status check_weights(const File& file, const WeightsRange& range);

class PackageFile {
 public:
  // `whole`: the file's, taken before its bytes were looked at and found whole.
  PackageFile(File file, const struct stat& whole, WeightsRange range);

  const File& file() const { return file_; }
  const WeightsRange& range() const { return range_; }

  // Whether nothing was written to it since it was found whole.
  bool is_unchanged();
  // That it is whole: its weights are hashed if it was written to. Errors: kInternal, naming the path: it is damaged.
  Status check();
  // It cannot be read any more, for this reason: it is damaged. Returns check()'s error.
  Status fail(const std::string& why);
  // Calls this once, when it is found to be damaged, by the thread that finds it; at once if it is. In place of what
  // was given for the same user, such as a model. `on_damage` must not call back.
  void watch(const std::string& user, std::function<void()> on_damage);

 private:
  bool is_as_when_whole() const REQUIRES(mutex_);

  const File file_;
  const WeightsRange range_;
  Mutex mutex_;
  struct stat whole_ GUARDED_BY(mutex_);
  Status damage_ GUARDED_BY(mutex_);  // ok: there is none
  std::map<std::string, std::function<void()>> watches_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_PACKAGE_FILE_H_
