#include "answer/personal/service/catalog_follower.h"

#include <string>

namespace foliot {
namespace {

// How often wait_until_idle() looks whether it is over.
constexpr Duration kLookInterval = Duration::milliseconds(50);

}  // namespace

Status CatalogFollower::start() {
  watch_ = catalog_.watch([this](const std::string&, const Catalog::EntryPtr&) { request(); });
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "foliot-features"}, [this] { run(); }));
  return Status();
}

void CatalogFollower::stop() {
  watch_.reset();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  idle_.notify_all();
  thread_.join();
}

void CatalogFollower::request() {
  {
    const MutexLock lock(mutex_);
    is_wanted_ = true;
  }
  changed_.notify_all();
}

void CatalogFollower::wait_until_idle(const std::function<bool()>& is_over) {
  MutexLock lock(mutex_);
  while ((is_wanted_ || is_working_) && !stopping_ && !is_over()) idle_.wait_for(mutex_, kLookInterval);
}

void CatalogFollower::run() {
  MutexLock lock(mutex_);
  bool is_done = true;
  while (true) {
    const auto is_called = [this]() REQUIRES(mutex_) { return stopping_ || is_wanted_; };
    if (is_done) {
      changed_.wait(mutex_, is_called);
    } else {
      changed_.wait_for(mutex_, retry_after_, is_called);
    }
    if (stopping_) return;
    is_wanted_ = false;
    is_working_ = true;
    lock.unlock();
    is_done = work_();
    lock.lock();
    is_working_ = false;
    idle_.notify_all();
  }
}

}  // namespace foliot
