// LeaseThread: takes and renews a JobLease on a thread of its own, as JobKeeping says, so that nothing else delays it.
//
// Threading: one owner; kept() and holder() by any thread, yield() by any but its own.
#ifndef FOLIOT_EDGE_JOBS_LEASE_THREAD_H_
#define FOLIOT_EDGE_JOBS_LEASE_THREAD_H_

#include <functional>
#include <memory>
#include <string>

#include "edge/jobs/job_keeping.h"
#include "edge/jobs/job_lease.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/thread.h"

namespace foliot {

class LeaseThread {
 public:
  struct Kept {
    std::string token;
    TimePoint until{};  // by `now`; the past: this server does not keep the jobs
  };
  // `now`: any thread. `on_change`, from its thread: kept() may be another.
  LeaseThread(std::unique_ptr<JobLease> lease, const JobKeepingTimes& times, std::function<std::string()> make_token,
              std::function<TimePoint()> now, std::function<void()> on_change)
      : lease_(std::move(lease)),
        times_(times),
        now_(std::move(now)),
        on_change_(std::move(on_change)),
        keeping_(times, std::move(make_token)) {}
  ~LeaseThread() { stop(); }

  // Once. Errors: kResourceExhausted.
  Status start();
  // Gives the lease back, if it has it. Calling it again does nothing. REQUIRES: nothing is kept any more.
  void stop();

  Kept kept() const;
  // The name of the server that had the lease when it was last asked for, for operators; empty: none.
  std::string holder() const;
  // Gives the lease back, and does not take it for so long: this server cannot use it now.
  void yield(Duration pause);

 private:
  void run();
  // The lock is not held meanwhile.
  void release(const std::string& token) REQUIRES(mutex_);

  const std::unique_ptr<JobLease> lease_;  // of the thread
  const JobKeepingTimes times_;
  const std::function<TimePoint()> now_;
  const std::function<void()> on_change_;
  mutable Mutex mutex_;
  Condition changed_;
  JobKeeping keeping_ GUARDED_BY(mutex_);
  std::string holder_ GUARDED_BY(mutex_);
  std::string to_release_ GUARDED_BY(mutex_);
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_LEASE_THREAD_H_
