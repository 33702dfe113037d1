// RepositoryService: loads, updates and unloads models while serving: when a client
// asks for it, and, if so configured, when the repository changes. It yields to
// everything else.
//
// A model that is not compiled and not served yet is compiled for its smallest batch size,
// served, and then compiled as a whole, which takes its place as a new version would. Up to
// `compilations` models are compiled in either step at a time, in the order of CompileOrder,
// and what a client loads before others: the second step of one model, however long, holds
// up the first of none. Changes of one model are carried out in their order; an unload of
// another does not wait for a load.
//
// A model whose package is found to be damaged while it is served is taken out of service at once, and
// loaded again, which compiles it.
#ifndef FOLIOT_NODE_REPOSITORY_REPOSITORY_SERVICE_H_
#define FOLIOT_NODE_REPOSITORY_REPOSITORY_SERVICE_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/thread.h"
#include "models/repository/package_store.h"
#include "models/repository/repository_watch.h"
#include "node/repository/compile_order.h"
#include "node/repository/converted_models.h"
#include "node/repository/model_host.h"

namespace foliot {

struct RepositoryOptions {
  std::filesystem::path folder;
  ModelConfig defaults;
  std::vector<std::string> models{};       // as in scan_repository()
  std::filesystem::path cache{};           // as in scan_repository()
  std::optional<Duration> watch_interval;  // nullopt: only what clients ask for
  uint32_t compilations = 1;               // at a time, in either step; at least 1
  // Called for changes that were seen and failed, from a thread of its own.
  std::function<void(const std::string&)> on_failure = [](const std::string&) {};
  // Called with each of Program::notes of what is taken into service, from any thread.
  std::function<void(const std::string&)> on_note = [](const std::string&) {};
  // Called with the rules among the versions of a model that are to be loaded, from any thread.
  std::function<void(const std::string& name, const VersionRules& rules)> on_rules = [](const std::string&,
                                                                                        const VersionRules&) {};
  // Likewise, where a model that has had several versions is to have one alone.
  std::function<void(const std::string& name)> on_one_version = [](const std::string&) {};
};

// Threading: load() and unload() from any thread; the rest belongs to the owner.
class RepositoryService : public ModelRepository {
 public:
  explicit RepositoryService(RepositoryOptions options);
  ~RepositoryService() override { stop(); }

  // From now on requests are carried out; until then they are refused. `served`:
  // what the repository held when the server started.
  Status start(Catalog& catalog, PackageStore& packages, const std::vector<ModelFolder>& served);
  // Once, after start(): where models are served. Until then they are only compiled.
  void attach(ModelHost& host);
  // Ends compilations under way, and refuses what waits. Calling it again does nothing.
  void stop();
  // Once, after start(): loads these models, which the catalog shows as LOADING. Callbacks come
  // from any thread, `done` once for each model, unless stop() comes before; no other follows
  // the last of these.
  struct LoadWatch {
    std::function<void(const std::string& model, std::string_view step, double share)> progress;
    std::function<void(const std::string& model, const Status& status)> done;
  };
  void load_all(const std::vector<ModelFolder>& models, LoadWatch watch);

  // At most kJobsMax wait; one more is refused as kUnavailable. Of a model with several versions: all of them; what is
  // served of its name and is not there any more then leaves, if each could be loaded.
  void load(const std::string& name, std::function<void(Status)> done) override;
  void unload(const std::string& name, std::function<void(Status)> done) override;
  // As load(), of a model that lies elsewhere.
  void load_folder(ModelFolder folder, std::function<void(Status)> done);

 private:
  static constexpr size_t kJobsMax = 1024;
  struct Job {
    enum class Kind : uint8_t { kLoad, kComplete, kUnload, kMend };
    Kind kind = Kind::kLoad;
    std::string name;
    std::function<void(Status)> done{};
    // As it was found before; nullopt: it is looked for.
    std::optional<ModelFolder> folder{};
    std::string signature{};  // of the folder, in the second step
    Progress progress{};
  };
  // The loads of a model that has had several versions: several may be under way, and the newest decides.
  struct Versions {
    uint64_t asked = 0;              // loads so far; their numbers count from 1
    uint64_t settled = 0;            // the newest that succeeded
    std::set<std::string> served{};  // by that one
  };
  // What is known of a model that waits in order_.
  struct Known {
    ModelFolder folder;
    std::string signature;
  };
  struct Loaded {
    Status status;
    // What is left to be compiled as a whole.
    std::optional<Known> incomplete{};
  };

  void enqueue(Job job);
  void work();
  std::optional<Job> take_job() REQUIRES(mutex_);
  std::optional<Job> take_asked_job() REQUIRES(mutex_);
  std::optional<Job> take_own_job() REQUIRES(mutex_);
  uint32_t* count_of(Job::Kind kind) REQUIRES(mutex_);
  void sweep();
  void carry_out(Job job);
  bool take_folder(Job& job);
  void load_versions(const std::string& name, const std::vector<ModelFolder>& folders,
                     std::function<void(Status)> done);
  void versions_loaded(const std::string& name, uint64_t number, const std::set<std::string>& kept,
                       const Status& status);
  void unload_others(const std::string& name, const std::set<std::string>& kept);
  Loaded load_now(const Job& job);
  Loaded load_found(const ModelFolder& folder, bool served, const CompileWatch& watch);
  Status load_whole(const ModelFolder& folder, const CompileWatch& watch);
  Status load_container(const ModelFolder& folder, const CompileWatch& watch);
  Status load_converted(const ModelFolder& folder, const CompileWatch& watch);
  Status start_container(const ModelFolder& folder, const CompileWatch& watch);
  void complete_now(const Job& job);
  Status add(const ModelFolder& folder, const Package& package);
  Status serve(const ModelFolder& folder, const Package& package);
  // Waits for attach(). nullptr: this stops.
  ModelHost* host();
  void unload_now(Job job);
  void mend(const std::string& name);
  void mend_now(const Job& job);
  void unloaded(const std::string& name);
  Result<std::vector<ModelFolder>> find_folders(const std::string& name) const;
  void watch();
  void heed(const RepositoryWatch::Changes& changes, const std::vector<ModelFolder>& folders);
  bool is_running();
  bool is_to_be_unloaded(const std::string& name);

  const RepositoryOptions options_;
  ConvertedModels converted_;
  Catalog* catalog_ = nullptr;
  PackageStore* packages_ = nullptr;
  std::optional<RepositoryWatch> watch_;  // of the watching thread

  LoadWatch load_watch_;  // of order_'s models: set before there are any
  Mutex hosting_;         // of the thread that changes the ModelHost

  Mutex mutex_;
  Condition changed_;  // the workers', each of which can do what there is to do
  Condition stopped_;  // the watching thread's
  Condition attached_;
  ModelHost* host_ GUARDED_BY(mutex_) = nullptr;  // null: not attached yet
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  CompileOrder order_ GUARDED_BY(mutex_);
  std::map<std::string, Known> known_ GUARDED_BY(mutex_);         // of order_
  std::set<std::string> busy_ GUARDED_BY(mutex_);                 // models with a change under way
  uint32_t loading_ GUARDED_BY(mutex_) = 0;                       // of these
  uint32_t completing_ GUARDED_BY(mutex_) = 0;                    // of these
  bool sweep_due_ GUARDED_BY(mutex_) = false;                     // a model that leaves may go further
  std::map<std::string, Versions> versioned_ GUARDED_BY(mutex_);  // by names of models that have had several versions
  std::set<std::string> failed_ GUARDED_BY(mutex_);  // changes that the watch saw and that are to be tried again
  bool running_ GUARDED_BY(mutex_) = false;
  std::vector<Thread> workers_;  // all but one of them may be compiling
  Thread watcher_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_REPOSITORY_SERVICE_H_
