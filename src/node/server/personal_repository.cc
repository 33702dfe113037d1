#include "node/server/personal_repository.h"

#include <fmt/format.h>

#include <utility>

namespace foliot {

Status PersonalRepository::start(Role role, Work work) {
  const MutexLock lock(mutex_);
  Worker& worker = workers_[role];
  if (worker.is_busy) {
    return Status::unavailable(role == kLoader ? "a personal model is being loaded already; try again later"
                                               : "versions are being listed already; try again");
  }
  FOLIOT_ASSIGN_OR_RETURN(worker.thread,
                          Thread::start({.name = "foliot-load", .nice = 10}, [this, role, work = std::move(work)] {
                            const std::function<void()> answer = work();
                            {
                              const MutexLock over(mutex_);
                              workers_[role].is_busy = false;
                            }
                            answer();
                          }));
  worker.is_busy = true;
  return Status();
}

void PersonalRepository::load(const std::string& name, std::function<void(Status)> done) {
  load_version(name, {}, std::move(done));
}

void PersonalRepository::load_version(const std::string& name, const VersionRequest& request,
                                      std::function<void(Status)> done) {
  if (!personal_.has(name)) return others_.load_version(name, request, std::move(done));
  const Status started = start(kLoader, [this, name, request, done] {
    return [done, status = personal_.load(name, request)] { done(status); };
  });
  if (!started.ok()) done(started);
}

void PersonalRepository::list_versions(const std::string& name, std::function<void(Result<VersionList>)> done) {
  if (!personal_.has(name)) return others_.list_versions(name, std::move(done));
  const Status started =
      start(kLister, [this, name, done] { return [done, versions = personal_.versions(name)] { done(versions); }; });
  if (!started.ok()) done(started);
}

void PersonalRepository::unload(const std::string& name, std::function<void(Status)> done) {
  if (!personal_.has(name)) return others_.unload(name, std::move(done));
  done(Status::invalid_argument(fmt::format(
      "'{}' is a personal model, which is served until the server stops; remove its folder and restart", name)));
}

}  // namespace foliot
