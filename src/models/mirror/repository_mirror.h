// RepositoryMirror: a repository of models in an object store, kept as a folder of this machine, which is served and
// watched as any other.
//
// A look lists the objects, and reads only those whose ETag or size is another than before. A folder of the repository
// (a model with its versions, a pipeline, a task) is replaced whole, once all of it is here and verified; until then,
// and if that fails, it stays as it was. A folder without objects is removed. What was loaded of a folder that failed
// is kept, and the next look goes on from there.
//
// In the mirror's folder lie models/, which is served, incoming/ and partial/, and the record of what is there, by
// which a restart reads nothing again. Nothing else may change them.
//
// Threading: look() by one thread at a time; it starts kConnections threads of its own.
#ifndef FOLIOT_MODELS_MIRROR_REPOSITORY_MIRROR_H_
#define FOLIOT_MODELS_MIRROR_REPOSITORY_MIRROR_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "foundation/objectstore/object_store.h"
#include "foundation/platform/descriptor.h"
#include "foundation/platform/thread.h"
#include "models/mirror/mirror_layout.h"
#include "models/mirror/mirror_record.h"

namespace foliot {

struct MirrorOptions {
  std::filesystem::path folder;  // made if it is not there
  // Of all files in it, those that are being loaded included; a folder of the repository that does not fit is left out.
  uint64_t bytes_max = std::numeric_limits<uint64_t>::max();
  std::string name;  // of the model, where the prefix is one alone
  // Makes a connection to the store, whose calls end once `cancelled` returns true.
  std::function<std::unique_ptr<ObjectStore>(std::function<bool()> cancelled)> connect;
  std::function<void(Severity, const std::string&)> log;  // from any thread
};

class RepositoryMirror {
 public:
  // So that the latency of small files adds up for a quarter of them only.
  static constexpr size_t kConnections = 4;

  // Takes the folder for this process. Errors: kInvalidArgument if it holds something else, or mirrors another place;
  // kUnavailable if another process has it; kInternal if it cannot be written.
  static Result<std::unique_ptr<RepositoryMirror>> open(MirrorOptions options);
  ~RepositoryMirror() { stop(); }

  std::filesystem::path models() const { return options_.folder / "models"; }
  // One look. What of single folders fails is logged, once until it changes. Errors: those of ObjectStore::list().
  Status look();
  // From now on it looks every `interval`. Returns after the first look: with its error if nothing is here from before,
  // and kNotFound if the place has no models. `cancelled` is asked several times a second, and ends it.
  Status start(Duration interval, const std::function<bool()>& cancelled);
  void stop();

 private:
  struct Changes {
    size_t brought = 0;
    size_t removed = 0;
    uint64_t bytes = 0;  // loaded
    size_t unverified = 0;
  };
  struct Task {
    std::string name;
    const MirroredFolder* folder = nullptr;
  };

  explicit RepositoryMirror(MirrorOptions options);
  Status take_folder();
  void run(Duration interval);
  void remove_gone(const std::map<std::string, MirroredFolder>& folders);
  bool is_current(const MirroredFolder& folder) const;
  void bring_all(std::vector<Task> tasks);
  Status bring(ObjectStore& store, const Task& task);
  Status reserve(const Task& task, uint64_t bytes);
  Status load(ObjectStore& store, const StoredObject& object);
  Status put_in_place(const Task& task, const std::vector<const StoredObject*>& loaded);
  std::filesystem::path partial_of(const StoredObject& object) const;
  void drop_partials(const std::map<std::string, MirroredFolder>& folders);
  void report(const std::string& name, const Status& status);

  const MirrorOptions options_;
  std::string place_;
  Descriptor lock_;  // of the folder
  std::atomic<bool> stopping_{false};

  mutable Mutex mutex_;
  MirrorRecord record_ GUARDED_BY(mutex_);
  uint64_t reserved_bytes_ GUARDED_BY(mutex_) = 0;                  // of folders that are being loaded
  Changes changes_ GUARDED_BY(mutex_);                              // of this look
  std::map<std::string, std::string> reported_ GUARDED_BY(mutex_);  // failures, by folder
  std::optional<Status> first_look_ GUARDED_BY(mutex_);
  Condition changed_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_MIRROR_REPOSITORY_MIRROR_H_
