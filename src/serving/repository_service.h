// RepositoryService: loads, updates and unloads models while serving: when a client
// asks for it, and, if so configured, when the repository changes. It yields to
// everything else.
//
// One model is loaded at a time, and changes of one model are carried out in
// their order; an unload of another does not wait for a load.
#ifndef FOLIOT_SERVING_REPOSITORY_SERVICE_H_
#define FOLIOT_SERVING_REPOSITORY_SERVICE_H_

#include <array>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/catalog.h"
#include "platform/thread.h"
#include "repository/package_store.h"
#include "repository/repository_watch.h"
#include "serving/model_host.h"

namespace foliot {

struct RepositoryOptions {
  std::filesystem::path folder;
  ModelConfig defaults;
  std::vector<std::string> models{};       // as in scan_repository()
  std::optional<Duration> watch_interval;  // nullopt: only what clients ask for
  // Called for changes that were seen and failed, from a thread of its own.
  std::function<void(const std::string&)> on_failure = [](const std::string&) {};
};

// Threading: load() and unload() from any thread; the rest belongs to the owner.
class RepositoryService : public ModelRepository {
 public:
  explicit RepositoryService(RepositoryOptions options) : options_(std::move(options)) {}
  ~RepositoryService() override { stop(); }

  // From now on requests are carried out; until then they are refused. `served`:
  // what the repository held when the server started.
  Status start(Catalog& catalog, PackageStore& packages, ModelHost& host, const std::vector<ModelFolder>& served);
  // Ends a compilation under way, and refuses what waits.
  void stop();

  // At most kJobsMax wait; one more is refused as kUnavailable.
  void load(const std::string& name, std::function<void(Status)> done) override;
  void unload(const std::string& name, std::function<void(Status)> done) override;

 private:
  static constexpr size_t kJobsMax = 1024;
  struct Job {
    bool load = true;
    std::string name;
    std::function<void(Status)> done;
  };

  void enqueue(Job job);
  void work();
  std::optional<Job> take_job();
  void sweep();
  void carry_out(Job job);
  Status load_now(const std::string& name);
  Status load_folder(const ModelFolder& folder);
  void unload_now(Job job);
  void unloaded(const std::string& name);
  Result<ModelFolder> find_folder(const std::string& name) const;
  void watch();
  void heed(const RepositoryWatch::Changes& changes);
  bool is_running();

  const RepositoryOptions options_;
  Catalog* catalog_ = nullptr;
  PackageStore* packages_ = nullptr;
  ModelHost* host_ = nullptr;
  std::optional<RepositoryWatch> watch_;  // of the watching thread

  std::mutex mutex_;                 // guards what follows, up to the threads
  std::condition_variable changed_;  // the workers', each of which can do what there is to do
  std::condition_variable stopped_;  // the watching thread's
  std::deque<Job> jobs_;
  std::set<std::string> busy_;  // models with a change under way
  bool loading_ = false;
  bool sweep_due_ = false;        // a model that leaves may go further
  std::set<std::string> failed_;  // changes that the watch saw and that are to be tried again
  bool running_ = false;
  std::array<Thread, 2> workers_;  // one of them may be loading
  Thread watcher_;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_REPOSITORY_SERVICE_H_
