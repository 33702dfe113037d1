// Catalog: the models that are served, as the front end sees them, and the port
// through which a client may load and unload them.
#ifndef FOLIOT_FOUNDATION_CORE_CATALOG_H_
#define FOLIOT_FOUNDATION_CORE_CATALOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"
#include "foundation/core/version_list.h"
#include "foundation/core/version_table.h"

namespace foliot {

enum class ModelState : uint8_t { kUnavailable, kLoading, kReady, kUnloading };
std::string_view to_string(ModelState state);  // "UNAVAILABLE", "LOADING", "READY", "UNLOADING"

// What answers the calls of a name; each is made of what comes before it.
enum class EntryRole : uint8_t {
  kModel,
  kPipeline,     // stages, each with a model (room pipeline): `info` has them
  kApplication,  // several models or pipelines (room selection): `info` is their interface
  kPersonal,     // weights for each user (room personal)
  kTask,         // models of which one is chosen for each call (room tasks): `info` is their interface
};
// "model", "pipeline", "application", "personal model", "task".
std::string_view to_string(EntryRole role);

struct CatalogEntry {
  std::string name;
  std::string version;
  ModelState state = ModelState::kUnavailable;
  // Why it is unavailable; of one that is ready: why another version is not served
  // in its place.
  std::string reason;
  std::shared_ptr<const ModelInfo> info;  // set when kReady
  // False: a client unloaded it, so that it is not served is as it should be.
  bool wanted = true;
  EntryRole role = EntryRole::kModel;
  // Those that it is made of; none of a model. What asks for it asks for these.
  std::vector<std::string> models{};
  // Of a model with several versions, each of which has an entry of its own; `info` and `version` are those of the
  // highest that is ready. Null: it is one version alone.
  std::shared_ptr<const VersionTable> versions{};
};

// Name -> entry. A version of several has the name of versioned_name().
//
// Threading: any thread. Entries are immutable: readers share them with the catalog and
// never wait for each other. A change takes a time that does not grow with the number of
// models, so that ten thousand of them can come one by one.
class Catalog {
 public:
  using EntryPtr = std::shared_ptr<const CatalogEntry>;
  using Entries = std::map<std::string, EntryPtr, std::less<>>;

  void put(CatalogEntry entry);
  void put_all(std::vector<CatalogEntry> entries);
  void remove(std::string_view name);
  EntryPtr find(std::string_view name) const;  // null: there is no such model
  bool empty() const;
  // A copy of all, by name.
  Entries snapshot() const;
  // Called with each entry that was put from now on, and with null for each that was removed,
  // by the thread that did it; it may change other entries.
  using OnChange = std::function<void(const std::string& name, const EntryPtr& entry)>;
  using Watch = std::shared_ptr<const OnChange>;
  // Until the last copy of the result is gone; a call may still be under way then. Watches are
  // called in the order in which they began.
  [[nodiscard]] Watch watch(OnChange on_change);

  // True from set_ready() on: every model that should be served at the start is
  // compiled and profiled, or is known to be broken. What is loaded later does not
  // change it.
  bool ready() const;
  // False again: the workers that serve them are lost.
  void set_ready(bool ready = true);
  // Whether requests should be sent here: ready() and, of the models that are wanted, at
  // least one is served (`strict`: all of them). Without any wanted model there is
  // nothing that could not be served: true.
  bool can_serve(bool strict) const;
  // A client asks for a model that is not served yet, or for what is made of such models.
  // Without effect if there is none.
  void ask_for(std::string_view name) const;
  // Those that were asked for since the last call, in their order, each once.
  std::vector<std::string> take_asked();
  // Grows whenever a model that is wanted becomes unavailable, is no longer, or is so for
  // another reason.
  uint64_t unavailable_revision() const { return unavailable_revision_.load(); }

 private:
  void count(const CatalogEntry& entry, int by) REQUIRES(mutex_);
  void notify(const std::string& name, const EntryPtr& entry) const;
  void ask_for(const CatalogEntry& entry) const REQUIRES_SHARED(mutex_) REQUIRES(asked_mutex_);

  mutable SharedMutex mutex_;
  Entries entries_ GUARDED_BY(mutex_);
  size_t wanted_ GUARDED_BY(mutex_) = 0;
  size_t served_ GUARDED_BY(mutex_) = 0;  // of those that are wanted
  bool ready_ GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> unavailable_revision_{0};

  mutable Mutex watch_mutex_;
  std::vector<std::weak_ptr<const OnChange>> watches_ GUARDED_BY(watch_mutex_);

  mutable Mutex asked_mutex_;                                        // taken after mutex_
  mutable std::vector<std::string> asked_ GUARDED_BY(asked_mutex_);  // names of entries
  mutable std::set<std::string, std::less<>> asked_names_ GUARDED_BY(asked_mutex_);
};

// Loads and unloads models at run time; calls may take as long as a compilation.
class ModelRepository {
 public:
  virtual ~ModelRepository() = default;
  // `done` is called exactly once, from any thread.
  virtual void load(const std::string& name, std::function<void(Status)> done) = 0;
  virtual void unload(const std::string& name, std::function<void(Status)> done) = 0;
  // Of personal models. Errors of others: kInvalidArgument.
  virtual void load_version(const std::string& name, const VersionRequest& request, std::function<void(Status)> done);
  virtual void list_versions(const std::string& name, std::function<void(Result<VersionList>)> done);
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_CATALOG_H_
