// FakeJobService: for tests of the protocols. Takes any job but those of the kind "wrong"; answers a submission from
// another thread, as the real one does, and runs nothing.
#ifndef FOLIOT_EDGE_JOBS_FAKE_JOB_SERVICE_H_
#define FOLIOT_EDGE_JOBS_FAKE_JOB_SERVICE_H_

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "edge/jobs/job_service.h"
#include "edge/jobs/job_table.h"
#include "foundation/base/mutex.h"

namespace foliot {

class FakeJobService : public JobService {
 public:
  ~FakeJobService() override {
    for (std::thread& thread : threads_) thread.join();
  }

  void set_readable(Status readable) { readable_ = std::move(readable); }
  Status readable() const override { return readable_; }

  void submit(JobRequest request, Done done) override {
    threads_.emplace_back([this, request = std::move(request), done = std::move(done)] {
      done(request.kind == "wrong" ? Result<Job>(Status::invalid_argument("it is wrong")) : add(request));
    });
  }
  void cancel(std::string id, Done done) override {
    MutexLock lock(mutex_);
    Result<Job> job = table_.cancel(id, TimePoint());
    lock.unlock();
    done(std::move(job));
  }
  std::optional<Job> find(std::string_view id) const override {
    const MutexLock lock(mutex_);
    return table_.find(id);
  }
  std::vector<Job> list() const override {
    const MutexLock lock(mutex_);
    return table_.list();
  }

 private:
  Result<Job> add(const JobRequest& request) {
    const MutexLock lock(mutex_);
    FOLIOT_ASSIGN_OR_RETURN(Job job, table_.admit(request, "job" + std::to_string(++ids_), TimePoint()));
    table_.add(job);
    return job;
  }

  mutable Mutex mutex_;
  JobTable table_ GUARDED_BY(mutex_){{}};
  int ids_ GUARDED_BY(mutex_) = 0;
  Status readable_;                   // of the test's thread, before calls
  std::vector<std::thread> threads_;  // of the thread that submits
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_FAKE_JOB_SERVICE_H_
