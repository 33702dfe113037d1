// FakeJobKind: jobs of the kind "stepped", of three steps each, which a test lets them take.
//
// Threading: any.
#ifndef FOLIOT_EDGE_JOBS_FAKE_JOB_KIND_H_
#define FOLIOT_EDGE_JOBS_FAKE_JOB_KIND_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "edge/jobs/job_kind.h"
#include "foundation/base/mutex.h"

namespace foliot {

class FakeJobKind : public JobKind {
 public:
  std::string_view name() const override { return "stepped"; }
  Status accept(Job& job) override {
    if (job.request == R"({"wrong":true})") return Status::invalid_argument("'wrong' is wrong");
    job.total = 3;
    const MutexLock lock(mutex_);
    claimed_.insert(job.id);
    return Status();
  }
  void discard(const Job& job) override {
    const MutexLock lock(mutex_);
    claimed_.erase(job.id);
  }
  Status run(const Job& job, JobContext& context) override {
    uint64_t done = job.done;
    {
      const MutexLock lock(mutex_);
      ++runs_;
      running_most_ = std::max(running_most_, ++running_);
    }
    changed_.notify_all();
    while (done < 3 && !context.is_over()) {
      if (take_step()) {
        context.keep(++done, 3, {});
      } else {
        context.set_waiting("the test");
        context.wait(Duration::milliseconds(1));
      }
    }
    const MutexLock lock(mutex_);
    --running_;
    if (done < 3) return Status::unavailable("it was ended");
    return failure_;
  }

  void allow(int steps) {
    const MutexLock lock(mutex_);
    steps_ += steps;
  }
  void fail(const Status& status) {
    const MutexLock lock(mutex_);
    failure_ = status;
  }
  void await_runs(int runs) {
    MutexLock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(mutex_, Duration::seconds(60), [&]() REQUIRES(mutex_) { return runs_ >= runs; }));
  }
  int running_most() {
    const MutexLock lock(mutex_);
    return running_most_;
  }
  // That were allowed, and not taken.
  int steps_left() {
    const MutexLock lock(mutex_);
    return steps_;
  }
  size_t claimed() {
    const MutexLock lock(mutex_);
    return claimed_.size();
  }

 private:
  bool take_step() {
    const MutexLock lock(mutex_);
    if (steps_ == 0) return false;
    --steps_;
    return true;
  }

  Mutex mutex_;
  Condition changed_;
  std::set<std::string> claimed_ GUARDED_BY(mutex_);
  int steps_ GUARDED_BY(mutex_) = 0;
  int runs_ GUARDED_BY(mutex_) = 0;
  int running_ GUARDED_BY(mutex_) = 0;
  int running_most_ GUARDED_BY(mutex_) = 0;
  Status failure_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_FAKE_JOB_KIND_H_
