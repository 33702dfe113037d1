#include "edge/jobs/lease_thread.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace foliot {

Status LeaseThread::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "job-lease"}, [this] { run(); }));
  return Status();
}

void LeaseThread::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

LeaseThread::Kept LeaseThread::kept() const {
  const MutexLock lock(mutex_);
  return {keeping_.token(), keeping_.kept_until()};
}

std::string LeaseThread::holder() const {
  const MutexLock lock(mutex_);
  return holder_;
}

void LeaseThread::yield(Duration pause) {
  {
    const MutexLock lock(mutex_);
    to_release_ = keeping_.token();
    keeping_.yield(now_(), pause);
  }
  changed_.notify_all();
}

void LeaseThread::run() {
  MutexLock lock(mutex_);
  while (!is_stopping_) {
    if (!to_release_.empty()) {
      release(std::exchange(to_release_, {}));
      continue;
    }
    const std::optional<JobKeeping::Call> call = keeping_.next(now_());
    if (!call) {
      const Duration wait = std::max(keeping_.next_call() - now_(), Duration());
      changed_.wait_for(mutex_, wait);
      continue;
    }
    lock.unlock();
    const Result<JobLeaseReply> reply =
        call->renews ? lease_->renew(call->token, times_.lease) : lease_->take(call->token, times_.lease);
    lock.lock();
    // It may have been yielded meanwhile.
    if (call->token == keeping_.token()) {
      keeping_.answered(reply.ok() ? Result<bool>(reply->is_mine) : reply.status(), now_());
    }
    if (reply.ok()) holder_ = reply->holder;
    lock.unlock();
    on_change_();
    lock.lock();
  }
  // One that ended by this server's clock is not given back: what it ran may still be ending.
  if (keeping_.keeps(now_())) release(std::string(keeping_.token()));  // a copy: yield() makes another token
}

void LeaseThread::release(const std::string& token) {
  mutex_.unlock();
  [[maybe_unused]] const Status status = lease_->release(token);  // else it ends by itself
  mutex_.lock();
}

}  // namespace foliot
