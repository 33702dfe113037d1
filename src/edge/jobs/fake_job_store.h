// FakeJobStore: jobs in memory, shared by all stores of one FakeJobStore::Disk; fails when it is set to.
#ifndef FOLIOT_EDGE_JOBS_FAKE_JOB_STORE_H_
#define FOLIOT_EDGE_JOBS_FAKE_JOB_STORE_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "edge/jobs/job_store.h"
#include "foundation/base/mutex.h"

namespace foliot {

class FakeJobStore : public JobStore {
 public:
  struct Disk {
    Mutex mutex;
    std::map<std::string, std::string> jobs GUARDED_BY(mutex);  // as JSON, by id
    std::atomic<bool> full = false;
    std::atomic<bool> fails_after_put = false;  // what is put is there, and the answer is lost
    std::atomic<int> puts = 0;                  // that succeeded
    // Before each; empty: nothing. Set before there are threads.
    std::function<void(const Job& job)> on_put{};
  };
  explicit FakeJobStore(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {}

  Result<std::vector<Job>> read() override {
    const MutexLock lock(disk_->mutex);
    std::vector<Job> all;
    for (const auto& [id, json] : disk_->jobs) {
      FOLIOT_ASSIGN_OR_RETURN(Job job, job_from_json(json));
      all.push_back(std::move(job));
    }
    std::ranges::sort(all, {}, &Job::number);
    return all;
  }
  Status put(const Job& job) override {
    if (disk_->on_put) disk_->on_put(job);
    const MutexLock lock(disk_->mutex);
    if (disk_->full) return Status::resource_exhausted("the fake disk is full");
    disk_->jobs[job.id] = to_json(job);
    if (disk_->fails_after_put) return Status::unavailable("the fake disk does not answer");
    ++disk_->puts;
    return Status();
  }
  Status remove(const std::string& id) override {
    const MutexLock lock(disk_->mutex);
    if (disk_->full) return Status::resource_exhausted("the fake disk is full");
    if (disk_->fails_after_put) return Status::unavailable("the fake disk does not answer");
    disk_->jobs.erase(id);
    return Status();
  }

 private:
  const std::shared_ptr<Disk> disk_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_FAKE_JOB_STORE_H_
