// JobStore: where jobs are kept so that they outlive the process. A port: SqliteJobStore is that of one
// server, RedisJobStore that of several, FakeJobStore keeps them in memory. All of them pass one suite
// (job_store_test.cc).
//
// A change lasts once its call has returned without an error. After an error the job is either as before or as
// it was to be, whole in both cases. Jobs are small: at most some 32 KiB each, and JobTable bounds their number.
//
// Errors name the store: kResourceExhausted where there is no room (a full disk), kUnavailable where it cannot be
// reached now, kInternal for all else.
//
// Threading: one at a time. All functions block.
#ifndef FOLIOT_EDGE_JOBS_JOB_STORE_H_
#define FOLIOT_EDGE_JOBS_JOB_STORE_H_

#include <string>
#include <vector>

#include "edge/jobs/job.h"
#include "foundation/base/status.h"

namespace foliot {

class JobStore {
 public:
  virtual ~JobStore() = default;
  // All jobs, in the order of their numbers, but those that are damaged, which are reported and stay (stored_job.h).
  virtual Result<std::vector<Job>> read() = 0;
  // Adds it, or replaces the one of its id.
  virtual Status put(const Job& job) = 0;
  // Nothing, if there is none.
  virtual Status remove(const std::string& id) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_STORE_H_
