// RepositoryService: loads and unloads models while serving, one after another on
// a thread of its own that gives way to everything else.
#ifndef FOLIOT_APP_REPOSITORY_SERVICE_H_
#define FOLIOT_APP_REPOSITORY_SERVICE_H_

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include "app/model_host.h"
#include "core/catalog.h"
#include "platform/thread.h"
#include "repository/package_store.h"

namespace foliot {

// Threading: load() and unload() from any thread; the rest belongs to the owner.
class RepositoryService : public ModelRepository {
 public:
  RepositoryService(std::filesystem::path repository, ModelConfig defaults)
      : repository_(std::move(repository)), defaults_(std::move(defaults)) {}
  ~RepositoryService() override { stop(); }

  // From now on requests are carried out; until then they are refused.
  Status start(Catalog& catalog, PackageStore& packages, ModelHost& host);
  // Ends after the request under way; the others are refused.
  void stop();

  void load(const std::string& name, std::function<void(Status)> done) override;
  void unload(const std::string& name, std::function<void(Status)> done) override;

 private:
  static constexpr size_t kRequestsMax = 1024;
  struct Job {
    bool load = true;
    std::string name;
    std::function<void(Status)> done;
  };

  void enqueue(Job job);
  void run();
  Status carry_out(const Job& job);
  Status load_now(const std::string& name);

  std::filesystem::path repository_;
  ModelConfig defaults_;
  Catalog* catalog_ = nullptr;
  PackageStore* packages_ = nullptr;
  ModelHost* host_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool running_ = false;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_APP_REPOSITORY_SERVICE_H_
