// JobKind: how jobs of one kind are checked and run.
#ifndef FOLIOT_EDGE_JOBS_JOB_KIND_H_
#define FOLIOT_EDGE_JOBS_JOB_KIND_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "edge/jobs/job.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// What a running job may do. Threading: the thread of the run.
class JobContext {
 public:
  virtual ~JobContext() = default;
  // The run is to end soon, with any status: the job was cancelled, or the server stops.
  virtual bool is_over() const = 0;
  // The first of these: the job will not go on.
  virtual bool is_cancelled() const = 0;
  // So much of it lasts. Returns once that is kept, or cannot be: then it is kept later, and a job that goes on
  // meanwhile may do that part again after a crash.
  virtual void keep(uint64_t done, uint64_t total, const std::map<std::string, uint64_t>& variants) = 0;
  // What was measured of a model; it lasts once keep() has returned, as above.
  virtual void keep_accuracy(const std::string& model, double accuracy) = 0;
  // So much of the disk its outputs take from now on; others see it at once, and it lasts as above.
  virtual void keep_bytes(uint64_t bytes) = 0;
  // Why it does not advance, or which step is under way, for clients; empty: it does.
  virtual void set_waiting(std::string why) = 0;
  // Returns early if the run is to end.
  virtual void wait(Duration duration) = 0;
};

class JobKind {
 public:
  virtual ~JobKind() = default;
  virtual std::string_view name() const = 0;
  // Checks what was asked before it is kept, and sets what the job says of its inputs (Job::inputs, Job::total). It may
  // claim what the job will write. Errors: JobService's. Threading: one at a time, beside run().
  virtual Status accept(Job& job) = 0;
  // An accepted job will not run, or not go on: it could not be kept, or was cancelled while it was queued. What it
  // claimed is given back. Threading: as accept().
  virtual void discard(const Job& job) = 0;
  // Does the job from where it is (Job::done). A status that is not ok is why it has failed, unless the context is
  // over. Threading: several jobs at a time.
  virtual Status run(const Job& job, JobContext& context) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_KIND_H_
