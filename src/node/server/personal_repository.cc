#include "node/server/personal_repository.h"

#include <fmt/format.h>

#include <utility>

namespace foliot {

void PersonalRepository::load(const std::string& name, std::function<void(Status)> done) {
  if (!personal_.has(name)) return others_.load(name, std::move(done));
  std::unique_lock lock(mutex_);
  if (is_loading_) {
    lock.unlock();
    return done(Status::unavailable("a personal model is being loaded already; try again later"));
  }
  Result<Thread> thread = Thread::start({.name = "foliot-load", .nice = 10}, [this, name, done] {
    const Status status = personal_.load(name);
    {
      const std::lock_guard over(mutex_);
      is_loading_ = false;
    }
    done(status);
  });
  if (!thread.ok()) {
    lock.unlock();
    return done(thread.status());
  }
  is_loading_ = true;
  loader_ = std::move(thread).value();
}

void PersonalRepository::unload(const std::string& name, std::function<void(Status)> done) {
  if (!personal_.has(name)) return others_.unload(name, std::move(done));
  done(Status::invalid_argument(fmt::format(
      "'{}' is a personal model, which is served until the server stops; remove its folder and restart", name)));
}

}  // namespace foliot
