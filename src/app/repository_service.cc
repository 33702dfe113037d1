#include "app/repository_service.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {

Status RepositoryService::start(Catalog& catalog, PackageStore& packages, ModelHost& host) {
  catalog_ = &catalog;
  packages_ = &packages;
  host_ = &host;
  {
    std::lock_guard lock(mutex_);
    running_ = true;
  }
  Result<Thread> thread = Thread::start({.name = "repository", .nice = 19}, [this] { run(); });
  if (!thread.ok()) return thread.status();
  thread_ = std::move(thread).value();
  return Status();
}

void RepositoryService::stop() {
  std::deque<Job> left;
  {
    std::lock_guard lock(mutex_);
    running_ = false;
    left.swap(jobs_);
  }
  changed_.notify_all();
  for (Job& job : left) job.done(Status::unavailable("the server is shutting down"));
  thread_.join();
}

void RepositoryService::load(const std::string& name, std::function<void(Status)> done) {
  enqueue({true, name, std::move(done)});
}

void RepositoryService::unload(const std::string& name, std::function<void(Status)> done) {
  enqueue({false, name, std::move(done)});
}

void RepositoryService::enqueue(Job job) {
  Status refusal;
  {
    std::lock_guard lock(mutex_);
    if (!running_) {
      refusal = Status::unavailable("the server is starting or shutting down; try again later");
    } else if (jobs_.size() >= kRequestsMax) {
      refusal =
          Status::unavailable(fmt::format("{} loads and unloads are waiting already; try again later", jobs_.size()));
    } else {
      jobs_.push_back(std::move(job));
    }
  }
  if (refusal.ok()) {
    changed_.notify_one();
  } else {
    job.done(refusal);
  }
}

void RepositoryService::run() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !running_ || !jobs_.empty(); });
      if (!running_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job.done(carry_out(job));
  }
}

Status RepositoryService::carry_out(const Job& job) { return job.load ? load_now(job.name) : host_->remove(job.name); }

Status RepositoryService::load_now(const std::string& name) {
  FOLIOT_ASSIGN_OR_RETURN(const auto folders, scan_repository(repository_, defaults_));
  const auto folder =
      std::find_if(folders.begin(), folders.end(), [&](const ModelFolder& f) { return f.name == name; });
  if (folder == folders.end()) {
    return Status::not_found(fmt::format("there is no model '{}' in {}", name, repository_.string()));
  }
  const auto entries = catalog_->snapshot();
  const auto earlier = entries->find(name);
  const bool served = earlier != entries->end() && earlier->second.state == ModelState::kReady;
  // An earlier version goes on until this one is ready, or failed.
  if (!served) catalog_->put({name, folder->version, ModelState::kLoading, {}, nullptr});
  Status status = folder->status;
  if (status.ok()) {
    const Result<Package> package = packages_->get(folder->model, folder->config.compile);
    status = package.ok() ? host_->add(*folder, *package) : package.status();
  }
  if (!status.ok() && !served) {
    catalog_->put({name, folder->version, ModelState::kUnavailable, status.message(), nullptr});
  }
  return status;
}

}  // namespace foliot
