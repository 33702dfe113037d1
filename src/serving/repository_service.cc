#include "serving/repository_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "process/periodic_yield.h"

namespace foliot {
namespace {

// A tenth of a serving thread's share, where both want all of it; how soon serving
// threads get theirs is the business of PeriodicYield.
constexpr int kRepositoryNice = 10;

Status shutting_down() { return Status::unavailable("the server is starting or shutting down; try again later"); }

}  // namespace

Status RepositoryService::start(Catalog& catalog, PackageStore& packages, ModelHost& host,
                                const std::vector<ModelFolder>& served) {
  catalog_ = &catalog;
  packages_ = &packages;
  host_ = &host;
  {
    std::lock_guard lock(mutex_);
    running_ = true;
    sweep_due_ = true;
  }
  host.set_on_progress([this] {
    {
      std::lock_guard lock(mutex_);
      sweep_due_ = true;
    }
    changed_.notify_one();
  });
  for (Thread& worker : workers_) {
    FOLIOT_ASSIGN_OR_RETURN(worker, Thread::start({.name = "repository", .nice = kRepositoryNice}, [this] { work(); }));
  }
  if (!options_.watch_interval) return Status();
  watch_.emplace(served);
  FOLIOT_ASSIGN_OR_RETURN(watcher_, Thread::start({.name = "watch", .nice = kRepositoryNice}, [this] { watch(); }));
  return Status();
}

void RepositoryService::stop() {
  std::deque<Job> waiting;
  {
    std::lock_guard lock(mutex_);
    running_ = false;
    waiting.swap(jobs_);
  }
  changed_.notify_all();
  stopped_.notify_all();
  for (Job& job : waiting) job.done(shutting_down());
  watcher_.join();
  for (Thread& worker : workers_) worker.join();
  if (ModelHost* host = std::exchange(host_, nullptr)) {
    host->set_on_progress({});
    host->abandon();
  }
}

bool RepositoryService::is_running() {
  std::lock_guard lock(mutex_);
  return running_;
}

void RepositoryService::load(const std::string& name, std::function<void(Status)> done) {
  enqueue({true, name, std::move(done)});
}

void RepositoryService::unload(const std::string& name, std::function<void(Status)> done) {
  enqueue({false, name, std::move(done)});
}

void RepositoryService::enqueue(Job job) {
  std::unique_lock lock(mutex_);
  Status refusal;
  if (!running_) {
    refusal = shutting_down();
  } else if (jobs_.size() >= kJobsMax) {
    refusal =
        Status::unavailable(fmt::format("{} loads and unloads are waiting already; try again later", jobs_.size()));
  }
  if (!refusal.ok()) {
    lock.unlock();  // the client may ask again at once
    return job.done(refusal);
  }
  jobs_.push_back(std::move(job));
  lock.unlock();
  changed_.notify_one();
}

// The first that may begin: no other change of its model is under way or before
// it, and no other load is.
std::optional<RepositoryService::Job> RepositoryService::take_job() {
  std::set<std::string> earlier = busy_;
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    if (!earlier.insert(job->name).second || (job->load && loading_)) continue;
    Job taken = std::move(*job);
    jobs_.erase(job);
    busy_.insert(taken.name);
    loading_ = loading_ || taken.load;
    return taken;
  }
  return std::nullopt;
}

void RepositoryService::work() {
  std::unique_lock lock(mutex_);
  while (running_) {
    if (std::exchange(sweep_due_, false)) {
      lock.unlock();
      sweep();
      lock.lock();
    }
    if (std::optional<Job> job = take_job()) {
      lock.unlock();
      const std::string name = job->name;
      const bool load = job->load;
      carry_out(*std::move(job));
      lock.lock();
      busy_.erase(name);
      if (load) loading_ = false;
      sweep_due_ = true;  // a model may leave that has no lease
      changed_.notify_all();
    } else if (running_ && !sweep_due_) {
      changed_.wait(lock);
    }
  }
}

void RepositoryService::sweep() {
  const PeriodicYield courtesy;
  host_->sweep();
}

void RepositoryService::carry_out(Job job) {
  const PeriodicYield courtesy;
  if (!job.load) return unload_now(std::move(job));
  const Status status = load_now(job.name);
  job.done(status);
}

Result<ModelFolder> RepositoryService::find_folder(const std::string& name) const {
  FOLIOT_ASSIGN_OR_RETURN(const auto folders, scan_repository(options_.folder, options_.defaults, options_.models));
  const auto found = std::ranges::find(folders, name, &ModelFolder::name);
  if (found != folders.end()) return *found;
  return Status::not_found(fmt::format("there is no model '{}' in {}", name, options_.folder.string()));
}

Status RepositoryService::load_now(const std::string& name) {
  constexpr size_t kNameBytesMax = 255;
  if (name.size() > kNameBytesMax)
    return Status::invalid_argument(
        fmt::format("a model's name of {} bytes; at most {} are allowed", name.size(), kNameBytesMax));
  FOLIOT_ASSIGN_OR_RETURN(const ModelFolder folder, find_folder(name));
  const Catalog::EntryPtr found = catalog_->find(name);
  const bool served = found != nullptr && found->state == ModelState::kReady;
  // An earlier version goes on until this one is ready, or failed.
  if (!served) catalog_->put({name, folder.version, ModelState::kLoading, {}, nullptr});
  Status status = folder.status.ok() ? load_folder(folder) : folder.status;
  if (status.ok()) return status;
  CatalogEntry entry = served ? *found : CatalogEntry{name, folder.version};
  entry.reason = served ? fmt::format("version {} was not taken into service: {}", folder.version, status.message())
                        : status.message();
  catalog_->put(std::move(entry));
  return status;
}

Status RepositoryService::load_folder(const ModelFolder& folder) {
  const CompileWatch watch{.progress = {}, .cancelled = [this] { return !is_running(); }};
  FOLIOT_ASSIGN_OR_RETURN(const Package package, packages_->get(folder.model, folder.config.compile, watch));
  return host_->add(folder, package);
}

void RepositoryService::unload_now(Job job) {
  const auto done = std::make_shared<std::function<void(Status)>>(std::move(job.done));
  const Status status = host_->remove(job.name, [this, done, name = job.name](const Status& gone) {
    if (gone.ok()) unloaded(name);
    (*done)(gone);
  });
  if (!status.ok()) (*done)(status);
}

// Keeps an entry only of what could be loaded again.
void RepositoryService::unloaded(const std::string& name) {
  const Catalog::EntryPtr found = catalog_->find(name);
  if (found == nullptr || found->state != ModelState::kUnloading) return;
  if (find_folder(name).ok()) {
    catalog_->put({.name = name,
                   .version = found->version,
                   .state = ModelState::kUnavailable,
                   .reason = "unloaded",
                   .info = nullptr,
                   .wanted = false});
  } else {
    catalog_->remove(name);
  }
}

void RepositoryService::watch() {
  const std::chrono::nanoseconds interval(options_.watch_interval->nanoseconds());
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (stopped_.wait_for(lock, interval, [this] { return !running_; })) return;
      for (const std::string& name : std::exchange(failed_, {})) watch_->report_again(name);
    }
    // A repository that cannot be read now has lost no models.
    if (const auto folders = scan_repository(options_.folder, options_.defaults, options_.models); folders.ok()) {
      heed(watch_->look(*folders));
    }
  }
}

void RepositoryService::heed(const RepositoryWatch::Changes& changes) {
  for (const std::string& name : changes.load) {
    load(name, [this, name](const Status& status) {
      if (status.ok()) return;
      options_.on_failure(fmt::format("model '{}' was not loaded: {}", name, status.message()));
      std::lock_guard lock(mutex_);
      if (status.code() == StatusCode::kUnavailable) failed_.insert(name);
    });
  }
  for (const std::string& name : changes.unload) {
    unload(name, [this, name](const Status& status) {
      if (status.ok()) return;
      // It was never served; its entry only said why.
      if (status.code() == StatusCode::kNotFound) catalog_->remove(name);
    });
  }
}

}  // namespace foliot
